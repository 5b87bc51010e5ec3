package kernel_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/gpu/kernel"
)

// shapes are of images: odd and even, lines and points that differ, one pixel, more
// than one block of threads.
var shapes = []kernel.Shape{
	{Images: 1, Lines: 1, Points: 1, Channels: 1},
	{Images: 2, Lines: 5, Points: 7, Channels: 3},
	{Images: 3, Lines: 6, Points: 4, Channels: 16},
	{Images: 2, Lines: 9, Points: 8, Channels: 5},
	{Images: 1, Lines: 2, Points: 1, Channels: 2},
}

func TestIm2col(t *testing.T) {
	b := newBench(t)
	for _, in := range shapes {
		for _, stride := range []int32{1, 2} {
			out := in.Convolved(4, stride)
			images := b.draw(elements(in))
			want := columns(images, in, out, int(stride))
			to := room[float32](b, len(want))
			b.did(b.Im2col(b.stream, kernel.Im2col{From: b.single(images), To: to, In: in, Out: out, Stride: stride}))
			near[float32](b, fmt.Sprintf("columns of %+v, stride %d", in, stride), to, want, 0)

			// As im2col does, and then rounding.
			alike, rounded := room[uint16](b, len(want)), room[uint16](b, len(want))
			b.did(b.Im2colBfloat16(b.stream, kernel.Im2colBfloat16{From: b.single(images), To: alike, In: in, Out: out, Stride: stride}))
			b.did(b.ToBfloat16(b.stream, kernel.ToBfloat16{From: to, To: rounded, Count: int32(len(want))}))
			if !slices.Equal(get[uint16](b, alike, len(want)), get[uint16](b, rounded, len(want))) {
				b.Errorf("columns of %+v, stride %d, are rounded otherwise", in, stride)
			}

			gradient := b.draw(len(want))
			back := room[float32](b, elements(in))
			b.did(b.Col2im(b.stream, kernel.Col2im{From: b.single(gradient), To: back, In: in, Out: out, Stride: stride}))
			near[float32](b, fmt.Sprintf("images of %+v from columns, stride %d", in, stride), back, fromColumns(gradient, in, out, int(stride)), 1e-6)
		}
	}
}

func TestPool(t *testing.T) {
	b := newBench(t)
	for _, shape := range shapes {
		images := b.draw(elements(shape))
		pixels := float64(shape.Lines * shape.Points)
		means := make([]float64, shape.Images*shape.Channels)
		gradient := b.draw(len(means))
		back := make([]float64, len(images))
		each(shape, func(image, y, x, c int) {
			means[image*int(shape.Channels)+c] += images[at(shape, image, y, x, c)] / pixels
			back[at(shape, image, y, x, c)] = gradient[image*int(shape.Channels)+c] / pixels
		})
		to := room[float32](b, len(means))
		b.did(b.Pool(b.stream, kernel.Pool{From: b.single(images), To: to, Shape: shape}))
		near[float32](b, fmt.Sprintf("means of %+v", shape), to, means, 1e-6)
		to = room[float32](b, len(images))
		b.did(b.PoolGradient(b.stream, kernel.PoolGradient{From: b.single(gradient), To: to, Shape: shape}))
		near[float32](b, fmt.Sprintf("gradient by %+v", shape), to, back, 1e-6)
	}
}
