package cpu

import "gonum.org/v1/gonum/blas"

// conv is a 3×3 convolution with zero padding 1 and no bias. Its weights are
// w[out channel][tap y][tap x][in channel].
//
// Output pixels are taken 64 at a time: their inputs are gathered as rows of a
// matrix, so that each pass is a product of matrices.
type conv struct {
	net     *network
	in, out *tensor
	stride  int
	weight  *parameter
	// accumulate adds to the input's gradient, which another layer that reads
	// the same input has set already in this backward pass. An input without a
	// gradient needs none.
	accumulate bool
}

const taps = 3

// conv adds a convolution.
func (n *network) conv(in *tensor, channels, stride int, accumulate bool) *conv {
	c := &conv{net: n, in: in, stride: stride, accumulate: accumulate}
	c.out = n.tensor((in.h-1)/stride+1, (in.w-1)/stride+1, channels, true)
	k := taps * taps * in.c
	c.weight = n.parameter(channels*k, k, 0)
	n.needScratch(2*tileRows*k, channels*k)
	n.add(c)
	return c
}

func (c *conv) k() int { return taps * taps * c.in.c }

// segments calls f for every run of input elements that the output pixels
// [from, to) read, which count over all images: f(row, column, at, length)
// says that matrix row `row`, from column `column` on, is length input elements
// from at. What lies outside the image is not mentioned.
func (c *conv) segments(from, to int, f func(row, column, at, length int)) {
	in, out := c.in, c.out
	for p := from; p < to; p++ {
		image, y, x := p/(out.h*out.w), p/out.w%out.h, p%out.w
		left := x*c.stride - 1
		first, last := max(left, 0), min(left+taps, in.w)
		for ty := range taps {
			iy := y*c.stride - 1 + ty
			if iy < 0 || iy >= in.h {
				continue
			}
			f(p-from, (ty*taps+first-left)*in.c, ((image*in.h+iy)*in.w+first)*in.c, (last-first)*in.c)
		}
	}
}

// gather fills the matrix with a row of inputs for each output pixel.
func (c *conv) gather(from, to int, matrix []float32) {
	k := c.k()
	in := c.in.data
	clear(matrix[:(to-from)*k])
	c.segments(from, to, func(row, column, at, length int) {
		copy(matrix[row*k+column:row*k+column+length], in[at:at+length])
	})
}

// scatter adds the matrix, of gradients, to the inputs they belong to.
func (c *conv) scatter(from, to int, matrix []float32) {
	k := c.k()
	c.segments(from, to, func(row, column, at, length int) {
		grad := c.in.grad[at : at+length]
		for i, v := range matrix[row*k+column : row*k+column+length] {
			grad[i] += v
		}
	})
}

func (c *conv) forward(n int, _ bool) error {
	k, pixels, channels := c.k(), c.out.h*c.out.w, c.out.c
	c.net.threads.each(n, func(part, from, to int) {
		matrix := c.net.scratch[part]
		for p := from * pixels; p < to*pixels; p += tileRows {
			end := min(p+tileRows, to*pixels)
			c.gather(p, end, matrix)
			gemm(blas.NoTrans, blas.Trans, end-p, channels, k, matrix, k, c.weight.w, k, 0, c.out.data[p*channels:], channels)
		}
	})
	return nil
}

func (c *conv) backward(n int) error {
	k, pixels, channels := c.k(), c.out.h*c.out.w, c.out.c
	size := len(c.weight.g)
	c.net.threads.each(n, func(part, from, to int) {
		matrix, gradients := c.net.scratch[part][:tileRows*k], c.net.scratch[part][tileRows*k:]
		weights := c.net.partial[part][:size]
		clear(weights)
		if c.in.grad != nil && !c.accumulate {
			clear(c.in.grad[from*c.in.size() : to*c.in.size()])
		}
		for p := from * pixels; p < to*pixels; p += tileRows {
			end := min(p+tileRows, to*pixels)
			out := c.out.grad[p*channels:]
			c.gather(p, end, matrix)
			gemm(blas.Trans, blas.NoTrans, channels, k, end-p, out, channels, matrix, k, 1, weights, k)
			if c.in.grad != nil {
				gemm(blas.NoTrans, blas.NoTrans, end-p, k, channels, out, channels, c.weight.w, k, 0, gradients, k)
				c.scatter(p, end, gradients)
			}
		}
	})
	c.net.sumParts(c.weight.g)
	return nil
}

// sumParts adds up what each thread has in its partial memory, in order.
func (n *network) sumParts(total []float32) {
	n.threads.each(len(total), func(_, from, to int) {
		copy(total[from:to], n.partial[0][from:to])
		for _, partial := range n.partial[1:] {
			for i, v := range partial[from:to] {
				total[from+i] += v
			}
		}
	})
}
