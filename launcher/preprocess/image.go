package preprocess

import (
	"fmt"
	"math"
)

// Pixels are an image in memory, row by row. Each pixel has three bytes: red, green and blue.
type Pixels struct {
	Width, Height int
	RGB           []byte
}

// grow sets the size of the image, and allocates memory if needed. The content is then undefined.
func (p *Pixels) grow(width, height int) {
	p.Width, p.Height = width, height
	if n := 3 * width * height; cap(p.RGB) < n {
		p.RGB = make([]byte, n)
	} else {
		p.RGB = p.RGB[:n]
	}
}

// A Decoder decodes JPEG files. Each thread needs its own.
type Decoder interface {
	Decode(file []byte, into *Pixels) error
	Close()
}

// Grow sets the size of an image before a decoder stores pixels in it. It returns an error if the
// size is not valid.
func Grow(p *Pixels, width, height int) error {
	if width < 1 || height < 1 || width > maxSide || height > maxSide || width*height > maxPixels {
		return fmt.Errorf("an image of %d × %d pixels; want 1 to %d each way, %d in all", width, height, maxSide, maxPixels)
	}
	p.grow(width, height)
	return nil
}

// Limits on the size of an image. They are needed because the header of a small file can state a
// size that does not fit into memory.
const (
	maxSide   = 1 << 16
	maxPixels = 1 << 26
)

// scaler resizes the shorter side of an image and cuts a square from the middle, like torchvision's
// Resize(resize) and CenterCrop(crop). It uses Pillow's method: a triangle filter, which is widened
// by the factor of reduction, in 22-bit fixed point. It resizes along rows first, then along
// columns. Pixels outside the crop are not computed.
type scaler struct {
	resize, crop int
	width        int // size of the image for which the taps were computed
	height       int
	across, down taps
	rows         []byte // the image after resizing along rows
	out          []byte
	columns      []int32
}

// taps are the weights of the resize filter along one axis. For each pixel of the result, they give
// the first source pixel, and the weights of that pixel and the following ones.
type taps struct {
	first   []int
	weights [][]int32
}

const precision = 32 - 8 - 2

// newTaps returns the taps for scaling from length to size pixels, for count pixels of the result
// from offset on. See precompute_coeffs and normalize_coeffs_8bpc in Pillow's Resample.c.
func newTaps(length, size, offset, count int) taps {
	scale := float64(length) / float64(size)
	filter := max(scale, 1)
	support := filter // half the width of the filter: the triangle's is 1
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

// middle returns the offset of a centred crop: half of what is cut off, rounded to even as in
// Python.
func middle(size, crop int) int { return int(math.RoundToEven(float64(size-crop) / 2)) }

// aim computes the filter weights (taps) for images of the given size. It does nothing if the
// previous image had the same size, which is usual.
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

// do resizes and crops an image and returns the crop × crop pixels. The next call overwrites them.
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

// along resizes one row of pixels.
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

// Mean and standard deviation of red, green and blue in ImageNet. Trainings normalise images with
// them: they subtract the mean and divide by the deviation.
var (
	imageMean      = [3]float32{0.485, 0.456, 0.406}
	imageDeviation = [3]float32{0.229, 0.224, 0.225}
)

// normalised is a table of the normalised value of each byte, by channel.
var normalised = func() (table [3][256]float32) {
	for c := range table {
		for v := range table[c] {
			table[c][v] = (float32(v)/255 - imageMean[c]) / imageDeviation[c]
		}
	}
	return table
}()

// normalise converts pixels to normalised float32 values: first all of red, then green, then blue.
func normalise(rgb []byte, to []float32) {
	n := len(rgb) / 3
	red, green, blue := to[:n], to[n:2*n], to[2*n:3*n]
	for i := range red {
		p := rgb[3*i:][:3]
		red[i], green[i], blue[i] = normalised[0][p[0]], normalised[1][p[1]], normalised[2][p[2]]
	}
}
