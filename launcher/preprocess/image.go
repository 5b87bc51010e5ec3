package preprocess

import (
	"fmt"
	"math"
)

// Pixels are an image: red, green and blue of each pixel in turn, row by row.
type Pixels struct {
	Width, Height int
	RGB           []byte
}

// grow gives the image a size; its content is then undefined.
func (p *Pixels) grow(width, height int) {
	p.Width, p.Height = width, height
	if n := 3 * width * height; cap(p.RGB) < n {
		p.RGB = make([]byte, n)
	} else {
		p.RGB = p.RGB[:n]
	}
}

// A Decoder turns files in JPEG into pixels. It belongs to one thread.
type Decoder interface {
	Decode(file []byte, into *Pixels) error
	Close()
}

// Grow gives an image the size of what a decoder puts there.
func Grow(p *Pixels, width, height int) error {
	if width < 1 || height < 1 || width > maxSide || height > maxSide || width*height > maxPixels {
		return fmt.Errorf("an image of %d × %d pixels; want 1 to %d each way, %d in all", width, height, maxSide, maxPixels)
	}
	p.grow(width, height)
	return nil
}

// What an image may have at most: a header of a few bytes can promise more than
// there is memory.
const (
	maxSide   = 1 << 16
	maxPixels = 1 << 26
)

// scaler resizes the shorter side of an image and cuts a square from the middle, as
// torchvision's Resize(resize) and CenterCrop(crop) do, by Pillow's method: the
// triangle filter, widened by the factor of reduction, in 22-bit fixed point, first
// along rows and then along columns. What the crop does not show is not computed.
type scaler struct {
	resize, crop int
	width        int // of the image that the taps are for
	height       int
	across, down taps
	rows         []byte // resized along rows
	out          []byte
	columns      []int32
}

// taps are, for each pixel of the result, the first one of the source and the weights
// of so many from there on.
type taps struct {
	first   []int
	weights [][]int32
}

const precision = 32 - 8 - 2

// newTaps returns the taps of count pixels, starting at offset, of an image scaled from length to
// size pixels. See precompute_coeffs and normalize_coeffs_8bpc in Pillow's Resample.c.
func newTaps(length, size, offset, count int) taps {
	scale := float64(length) / float64(size)
	filter := max(scale, 1)
	support := filter // of the triangle: 1
	var t taps
	for i := offset; i < offset+count; i++ {
		center := (float64(i) + 0.5) * scale
		first := max(int(center-support+0.5), 0)
		end := min(int(center+support+0.5), length)
		weights := make([]float64, end-first)
		sum := 0.0
		for x := range weights {
			weights[x] = max(0, 1-math.Abs((float64(x+first)-center+0.5)/filter))
			sum += weights[x]
		}
		fixed := make([]int32, len(weights))
		for x, w := range weights {
			if sum != 0 {
				w /= sum
			}
			fixed[x] = int32(0.5 + w*(1<<precision))
		}
		t.first, t.weights = append(t.first, first), append(t.weights, fixed)
	}
	return t
}

// middle returns where a centred crop begins: half of the remainder, rounded to even as in Python.
func middle(size, crop int) int { return int(math.RoundToEven(float64(size-crop) / 2)) }

// aim prepares the taps for images of one size, usually that of the previous image.
func (s *scaler) aim(width, height int) {
	if s.width == width && s.height == height {
		return
	}
	s.width, s.height = width, height
	w, h := s.resize, s.resize
	if width < height {
		h = s.resize * height / width
	} else {
		w = s.resize * width / height
	}
	s.across = newTaps(width, w, middle(w, s.crop), s.crop)
	s.down = newTaps(height, h, middle(h, s.crop), s.crop)
	s.out = make([]byte, 3*s.crop*s.crop)
	s.columns = make([]int32, 3*s.crop)
}

// do returns the square of crop × crop pixels; the next call overwrites it.
func (s *scaler) do(p *Pixels) []byte {
	s.aim(p.Width, p.Height)
	last := len(s.down.first) - 1
	top, bottom := s.down.first[0], s.down.first[last]+len(s.down.weights[last])
	row := 3 * s.crop
	if n := (bottom - top) * row; cap(s.rows) < n {
		s.rows = make([]byte, n)
	} else {
		s.rows = s.rows[:n]
	}
	for y := top; y < bottom; y++ {
		s.across.along(p.RGB[3*p.Width*y:3*p.Width*(y+1)], s.rows[(y-top)*row:(y-top+1)*row])
	}
	for i, first := range s.down.first {
		sums := s.columns
		for x := range sums {
			sums[x] = 1 << (precision - 1)
		}
		for k, weight := range s.down.weights[i] {
			from := s.rows[(first-top+k)*row:][:len(sums)]
			for x, v := range from {
				sums[x] += int32(v) * weight
			}
		}
		to := s.out[i*row:][:len(sums)]
		for x, sum := range sums {
			to[x] = clip(sum)
		}
	}
	return s.out
}

// along resizes one row.
func (t *taps) along(from, to []byte) {
	for i, first := range t.first {
		r, g, b := int32(1<<(precision-1)), int32(1<<(precision-1)), int32(1<<(precision-1))
		weights := t.weights[i]
		pixels := from[3*first:][:3*len(weights)]
		for _, weight := range weights {
			r += int32(pixels[0]) * weight
			g += int32(pixels[1]) * weight
			b += int32(pixels[2]) * weight
			pixels = pixels[3:]
		}
		pixel := to[3*i:][:3]
		pixel[0], pixel[1], pixel[2] = clip(r), clip(g), clip(b)
	}
}

// clip converts a fixed-point sum to a byte. Weights are at least 0 and add up to 1, except for rounding.
func clip(sum int32) byte { return byte(min(sum>>precision, 255)) }

// Mean and deviation of ImageNet's red, green and blue, which trainings subtract and
// divide by.
var (
	imageMean      = [3]float32{0.485, 0.456, 0.406}
	imageDeviation = [3]float32{0.229, 0.224, 0.225}
)

// normalised are the values that a byte becomes, by channel.
var normalised = func() (table [3][256]float32) {
	for c := range table {
		for v := range table[c] {
			table[c][v] = (float32(v)/255 - imageMean[c]) / imageDeviation[c]
		}
	}
	return table
}()

// normalise converts pixels to channels, one after the other, as float32.
func normalise(rgb []byte, to []float32) {
	n := len(rgb) / 3
	red, green, blue := to[:n], to[n:2*n], to[2*n:3*n]
	for i := range red {
		p := rgb[3*i:][:3]
		red[i], green[i], blue[i] = normalised[0][p[0]], normalised[1][p[1]], normalised[2][p[2]]
	}
}
