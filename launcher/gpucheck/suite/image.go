//go:build cgo

package suite

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// shapes are of images: odd and even, lines and points that differ, one pixel, more
// than one block of threads.
var shapes = []ptx.Shape{
	{Images: 1, Lines: 1, Points: 1, Channels: 1},
	{Images: 2, Lines: 5, Points: 7, Channels: 3},
	{Images: 3, Lines: 6, Points: 4, Channels: 16},
	{Images: 2, Lines: 9, Points: 8, Channels: 5},
	{Images: 1, Lines: 2, Points: 1, Channels: 2},
}

// Decoding against its definition: the window, in the padded image, of the image or of
// its mirror image.
func decode(b *bench) {
	for _, shape := range shapes {
		for _, margin := range []int{0, 1, 4} {
			n, lines, points, channels := int(shape.Images), int(shape.Lines), int(shape.Points), int(shape.Channels)
			images, changes := make([]byte, elements(shape)), make([]byte, 3*n)
			for i := range images {
				images[i] = byte(b.random.IntN(256))
			}
			for i := range changes {
				changes[i] = byte(b.random.IntN(2*margin + 1))
				if i%3 == 2 {
					changes[i] = byte(i / 3 % 2)
				}
			}
			values := b.draw(256 * channels)
			want := make([]float64, len(images))
			each(shape, func(image, y, x, c int) {
				line, point := y+int(changes[3*image+1])-margin, x
				if changes[3*image+2] == 1 {
					point = points - 1 - x
				}
				point += int(changes[3*image]) - margin
				if line >= 0 && line < lines && point >= 0 && point < points {
					want[at(shape, image, y, x, c)] = values[256*c+int(images[((image*channels+c)*lines+line)*points+point])]
				}
			})
			to := room[float32](b, len(want))
			b.did(b.Decode(b.stream, ptx.Decode{From: put(b, images), Changes: put(b, changes), Values: b.single(values), To: to, Shape: shape, Margin: int32(margin)}))
			near[float32](b, fmt.Sprintf("%+v with a margin of %d", shape, margin), to, want, 0)
		}
	}
}

// The images of a data set become what they become on CPUs, bit for bit.
func decodesAsOnCPUs(b *bench) {
	var values, want []float32
	for _, channel := range dataset.Values {
		values = append(values, channel[:]...)
	}
	var images, changes []byte
	for _, t := range []dataset.Transform{dataset.Identity, {}, {DX: 8, DY: 8}, {DX: 2, DY: 7, Mirror: true}, {DX: 8, DY: 1, Mirror: true}} {
		image, decoded, mirror := make([]byte, dataset.ImageBytes), make([]float32, dataset.ImageBytes), byte(0)
		for i := range image {
			image[i] = byte(b.random.IntN(256))
		}
		if t.Mirror {
			mirror = 1
		}
		dataset.Decode(image, t, decoded)
		images, changes, want = append(images, image...), append(changes, t.DX, t.DY, mirror), append(want, decoded...)
	}
	shape := ptx.Shape{Images: int32(len(changes) / 3), Lines: dataset.Height, Points: dataset.Width, Channels: dataset.Channels}
	to := room[float32](b, len(want))
	b.did(b.Decode(b.stream, ptx.Decode{From: put(b, images), Changes: put(b, changes), Values: put(b, values), To: to, Shape: shape, Margin: dataset.Margin}))
	same(b, "images decoded as on CPUs", to, want)
}

func im2col(b *bench) {
	for _, in := range shapes {
		for _, stride := range []int32{1, 2} {
			out := in.Convolved(4, stride)
			images := b.draw(elements(in))
			want := columns(images, in, out, int(stride))
			to := room[float32](b, len(want))
			b.did(b.Im2col(b.stream, ptx.Im2col{From: b.single(images), To: to, In: in, Out: out, Stride: stride}))
			near[float32](b, fmt.Sprintf("columns of %+v, stride %d", in, stride), to, want, 0)

			// As im2col does, and then rounding.
			alike, rounded := room[uint16](b, len(want)), room[uint16](b, len(want))
			b.did(b.Im2colBfloat16(b.stream, ptx.Im2colBfloat16{From: b.single(images), To: alike, In: in, Out: out, Stride: stride}))
			b.did(b.ToBfloat16(b.stream, ptx.ToBfloat16{From: to, To: rounded, Count: int32(len(want))}))
			same(b, fmt.Sprintf("columns of %+v, stride %d, in bfloat16", in, stride), alike, get[uint16](b, rounded, len(want)))

			gradient := b.draw(len(want))
			back := room[float32](b, elements(in))
			b.did(b.Col2im(b.stream, ptx.Col2im{From: b.single(gradient), To: back, In: in, Out: out, Stride: stride}))
			near[float32](b, fmt.Sprintf("images of %+v from columns, stride %d", in, stride), back, fromColumns(gradient, in, out, int(stride)), 1e-6)
		}
	}
}

func pool(b *bench) {
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
		b.did(b.Pool(b.stream, ptx.Pool{From: b.single(images), To: to, Shape: shape}))
		near[float32](b, fmt.Sprintf("means of %+v", shape), to, means, 1e-6)
		to = room[float32](b, len(images))
		b.did(b.PoolGradient(b.stream, ptx.PoolGradient{From: b.single(gradient), To: to, Shape: shape}))
		near[float32](b, fmt.Sprintf("gradient by %+v", shape), to, back, 1e-6)
	}
}
