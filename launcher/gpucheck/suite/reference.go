//go:build cgo

package suite

import (
	"math"

	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// What the kernels compute, in double precision, written from the definitions: loops
// over images, lines, points and channels, sums in the order in which they come.

// at returns the index of a pixel's channel in a batch of images.
func at(s ptx.Shape, image, y, x, channel int) int {
	return ((image*int(s.Lines)+y)*int(s.Points)+x)*int(s.Channels) + channel
}

func elements(s ptx.Shape) int { return int(s.Images * s.Lines * s.Points * s.Channels) }

// each calls f for each element of images.
func each(s ptx.Shape, f func(image, y, x, channel int)) {
	for image := range int(s.Images) {
		for y := range int(s.Lines) {
			for x := range int(s.Points) {
				for c := range int(s.Channels) {
					f(image, y, x, c)
				}
			}
		}
	}
}

// columns returns the inputs of each pixel of a 3×3 convolution with padding 1.
func columns(images []float64, in, out ptx.Shape, stride int) []float64 {
	var list []float64
	pixels := out
	pixels.Channels = 1
	each(pixels, func(image, y, x, _ int) {
		for ty := range 3 {
			for tx := range 3 {
				line, point := y*stride+ty-1, x*stride+tx-1
				for c := range int(in.Channels) {
					v := 0.0
					if line >= 0 && line < int(in.Lines) && point >= 0 && point < int(in.Points) {
						v = images[at(in, image, line, point, c)]
					}
					list = append(list, v)
				}
			}
		}
	})
	return list
}

// fromColumns scatters what columns gathers.
func fromColumns(list []float64, in, out ptx.Shape, stride int) []float64 {
	images := make([]float64, elements(in))
	pixels := out
	pixels.Channels = 1
	i := 0
	each(pixels, func(image, y, x, _ int) {
		for ty := range 3 {
			for tx := range 3 {
				line, point := y*stride+ty-1, x*stride+tx-1
				for c := range int(in.Channels) {
					if line >= 0 && line < int(in.Lines) && point >= 0 && point < int(in.Points) {
						images[at(in, image, line, point, c)] += list[i]
					}
					i++
				}
			}
		}
	})
	return images
}

// A unit is batch normalisation of images, a shortcut, or nil, and a ReLU.
type unit struct {
	name          string
	shape         ptx.Shape
	scale, shift  []float64
	shortcut      []float64
	shortcutShape ptx.Shape
	stride        int
	epsilon       float64
}

// statistics returns the mean and the biased variance of each channel, in two passes.
func (u unit) statistics(y []float64) (mean, variance []float64) {
	c := int(u.shape.Channels)
	mean, variance = make([]float64, c), make([]float64, c)
	n := float64(len(y) / c)
	for i, v := range y {
		mean[i%c] += v / n
	}
	for i, v := range y {
		variance[i%c] += (v - mean[i%c]) * (v - mean[i%c]) / n
	}
	return mean, variance
}

// outcome returns max(scale·(y − mean)/√(variance + ε) + shift + shortcut, 0), and the ReLU's argument.
func (u unit) outcome(y, mean, variance []float64) (outcome, before []float64) {
	each(u.shape, func(image, line, point, c int) {
		v := u.scale[c]*(y[at(u.shape, image, line, point, c)]-mean[c])/math.Sqrt(variance[c]+u.epsilon) + u.shift[c]
		if own := c - int(u.shape.Channels-u.shortcutShape.Channels)/2; u.shortcut != nil && own >= 0 && own < int(u.shortcutShape.Channels) {
			v += u.shortcut[at(u.shortcutShape, image, line*u.stride, point*u.stride, own)]
		}
		outcome, before = append(outcome, max(v, 0)), append(before, v)
	})
	return outcome, before
}

// derivative of f by each of the parameters, by differences to both sides.
func derivative(parameters []float64, f func() float64) []float64 {
	const h = 1e-5
	list := make([]float64, len(parameters))
	for i, v := range parameters {
		parameters[i] = v + h
		above := f()
		parameters[i] = v - h
		list[i] = (above - f()) / (2 * h)
		parameters[i] = v
	}
	return list
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// crossEntropy returns −log of the softmax of the label's logit.
func crossEntropy(logits []float64, label int) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(v - logits[label])
	}
	return math.Log(sum)
}
