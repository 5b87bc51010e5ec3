package cpu

import "github.com/scalebench/scalebench/launcher/native/train/cpu/simd"

const taps = 3

// A conv is a 3×3 convolution with zero padding 1 and no bias, for one image at a
// time. Its weights are w[out channel][tap y][tap x][in channel].
//
// Images come padded, as NHWC with a margin of a pixel of zeros. In this layout, the inputs of an
// output pixel are three runs of adjacent numbers, one for each row of taps. So the kernels slide
// over the image without copying: the taps of a row and their channels form one index. The gradient
// by the input is a correlation, too: of the padded gradient by the output with the reversed
// weights.
type conv struct {
	kernels *simd.Set
	in, out simd.Shape
	stride  int

	packed simd.Matrix // weights by (tap y, tap x, in channel) and out channel
	phases []phase     // parts of the gradient with respect to the input
}

// A phase has the input pixels of one parity. With stride 2, a pixel in an even row is only used by
// the middle tap row of one output row, and a pixel in an odd row by the outer tap rows of two;
// columns likewise. With stride 1 there is one phase.
type phase struct {
	y, x         int   // first of its pixels
	tapsY, tapsX []int // kernel taps in the order of the gradient's pixels
	weights      simd.Matrix
}

func newConv(kernels *simd.Set, in simd.Shape, channels, stride int) *conv {
	c := &conv{kernels: kernels, in: in, stride: stride}
	c.out = simd.Shape{Lines: (in.Lines-1)/stride + 1, Points: (in.Points-1)/stride + 1, Channels: channels}
	c.packed = packing(c.rows(), channels)
	if in.Channels%simd.Group != 0 {
		return c // an image, which has no gradient
	}
	// Tap t of output pixel o reads the padded input pixel stride·o + t.
	seen := [][]int{{2, 1, 0}}
	if stride == 2 {
		seen = [][]int{{1}, {2, 0}}
	}
	for y, tapsY := range seen {
		for x, tapsX := range seen {
			p := phase{y: y, x: x, tapsY: tapsY, tapsX: tapsX}
			p.weights = packing(len(tapsY)*len(tapsX)*channels, in.Channels)
			c.phases = append(c.phases, p)
		}
	}
	return c
}

// packing returns a matrix whose groups of columns are adjacent in memory.
func packing(rows, columns int) simd.Matrix {
	return simd.Matrix{Data: make([]float32, rows*columns), Step: simd.Group, Block: simd.Group * rows}
}

// rows returns the number of inputs of an output pixel.
func (c *conv) rows() int { return taps * taps * c.in.Channels }

// padded returns the size of an image with its margin, and the length of its lines.
func padded(s simd.Shape) (size, line int) {
	line = (s.Points + 2) * s.Channels
	return (s.Lines + 2) * line, line
}

// inside returns the part of a padded image without the margin.
func inside(data []float32, s simd.Shape) simd.Image {
	_, line := padded(s)
	return simd.Image{Data: data[line+s.Channels:], Gap: 2 * s.Channels}
}

// groups returns the number of parts into which the work of pack and unpack is divided.
func (c *conv) groups() int { return c.out.Channels / simd.Group }

// pack lays out the weights of some groups of output channels for forward.
func (c *conv) pack(w []float32, from, to int) {
	k := c.rows()
	for o := from * simd.Group; o < to*simd.Group; o++ {
		column := c.packed.Data[o/simd.Group*c.packed.Block+o%simd.Group:]
		for i, v := range w[o*k : (o+1)*k] {
			column[i*simd.Group] = v
		}
	}
}

// packGradient lays out the weights of some groups of output channels for
// backward.
func (c *conv) packGradient(w []float32, from, to int) {
	for _, p := range c.phases {
		for i, ty := range p.tapsY {
			for j, tx := range p.tapsX {
				for o := from * simd.Group; o < to*simd.Group; o++ {
					row := (i*len(p.tapsX)+j)*c.out.Channels + o
					in := w[((o*taps+ty)*taps+tx)*c.in.Channels:][:c.in.Channels]
					for at := row * p.weights.Step; len(in) > 0; at += p.weights.Block {
						in = in[copy(p.weights.Data[at:at+simd.Group], in):]
					}
				}
			}
		}
	}
}

// unpack is the inverse of pack, for gradients.
func (c *conv) unpack(packed, g []float32, from, to int) {
	k := c.rows()
	for o := from * simd.Group; o < to*simd.Group; o++ {
		column := packed[o/simd.Group*c.packed.Block+o%simd.Group:]
		row := g[o*k : (o+1)*k]
		for i := range row {
			row[i] = column[i*simd.Group]
		}
	}
}

// forward computes y, without margin, from a padded image.
func (c *conv) forward(x, y []float32) {
	_, line := padded(c.in)
	n, channels := c.out.Points, c.out.Channels
	w := simd.Window{Runs: taps, Run: taps * c.in.Channels, RunStep: line}
	for i := range c.out.Lines {
		c.kernels.Correlate(simd.Line{Data: y[i*n*channels:], Step: channels},
			simd.Line{Data: x[i*c.stride*line:], Step: c.stride * c.in.Channels}, n, channels, w, c.packed)
	}
}

// gradient computes the gradient by the input, without margin, from the padded
// gradient by the output.
func (c *conv) gradient(dy, dx []float32) {
	_, line := padded(c.out)
	channels := c.in.Channels
	for _, p := range c.phases {
		w := simd.Window{Runs: len(p.tapsY), Run: len(p.tapsX) * c.out.Channels, RunStep: line}
		n := (c.in.Points - p.x + c.stride - 1) / c.stride
		// The window starts at the first output pixel that uses the input pixel. For the first
		// input pixel with stride 1, that is in the margin.
		first := func(at, latest int) int { return (at + 1 - latest) / c.stride }
		for y := p.y; y < c.in.Lines; y += c.stride {
			from := (first(y, p.tapsY[0])+1)*line + (first(p.x, p.tapsX[0])+1)*c.out.Channels
			c.kernels.Correlate(simd.Line{Data: dx[(y*c.in.Points+p.x)*channels:], Step: c.stride * channels},
				simd.Line{Data: dy[from:], Step: c.out.Channels}, n, channels, w, p.weights)
		}
	}
}

// weights adds the gradient by the packed weights to total, from a padded image and the gradient by
// the output, padded as well. It processes a few lines at a time, which stay in the first-level
// cache for all taps.
func (c *conv) weights(x, dy, total []float32) {
	const pixels = 128
	_, line := padded(c.in)
	d := inside(dy, c.out)
	_, dLine := padded(c.out)
	lines := max(pixels/c.out.Points, 1)
	height := taps * c.in.Channels
	for y := 0; y < c.out.Lines; y += lines {
		n := min(lines, c.out.Lines-y)
		for t := range taps {
			c.kernels.Outer(simd.Matrix{Data: total[t*height*simd.Group:], Step: c.packed.Step, Block: c.packed.Block}, height, c.out.Channels,
				simd.Points{Data: x[(y*c.stride+t)*line:], LineStep: c.stride * line, Step: c.stride * c.in.Channels},
				simd.Points{Data: d.Data[y*dLine:], LineStep: dLine, Step: c.out.Channels}, n, c.out.Points)
		}
	}
}
