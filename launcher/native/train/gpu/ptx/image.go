package ptx

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// Decode converts a data set's bytes to the network's input: it crops each image from its
// zero-padded version, may mirror it, and normalises it.
type Decode struct {
	From    cuda.Pointer // [image][channel][line][point] byte
	Changes cuda.Pointer // [image][3] byte: offset of the window in points and lines, and 1 if mirrored
	Values  cuda.Pointer // [channel][256]: the normalised value of each byte
	To      cuda.Pointer // images of Shape
	Shape   Shape
	Margin  int32
}

func (s *Set) Decode(stream cuda.Stream, args Decode) error {
	a := &arguments{kernel: "decode"}
	a.need(args.From, args.Changes, args.Values, args.To)
	if args.Margin < 0 || args.Margin > 127 {
		a.refuse("a margin of %d; want 0 to 127, so that a byte holds a place in both", args.Margin)
	}
	return launch(s, a, a.size(args.Shape.dimensions()...), stream, &args)
}

// Im2col copies the inputs of each output pixel of a 3×3 convolution into a row [tap y][tap x][in
// channel], with zeros for the padding. The product of these rows with the transposed weights, [out
// channel][tap y][tap x][in channel], is the convolution's output.
type Im2col struct {
	From   cuda.Pointer // images of In; a multiple of 16, as To, if their channels are multiples of 4
	To     cuda.Pointer // [pixel of Out][9·In.Channels]
	In     Shape
	Out    Shape // its Channels do not matter
	Stride int32 // 1 or 2
}

func (s *Set) Im2col(stream cuda.Stream, args Im2col) error {
	a := &arguments{kernel: "im2col"}
	return launch(s, a, a.columns(args), stream, &args)
}

// Im2colBfloat16 is Im2col with each element rounded as ToBfloat16 does.
type Im2colBfloat16 struct {
	From   cuda.Pointer // images of In; a multiple of 16, as To, if their channels are multiples of 4
	To     cuda.Pointer // [pixel of Out][9·In.Channels] bfloat16
	In     Shape
	Out    Shape // its Channels do not matter
	Stride int32 // 1 or 2
}

func (s *Set) Im2colBfloat16(stream cuda.Stream, args Im2colBfloat16) error {
	a := &arguments{kernel: "im2col_bfloat16"}
	return launch(s, a, a.columns(Im2col(args)), stream, &args)
}

// columns returns the number of threads of Im2col.
func (a *arguments) columns(args Im2col) int64 {
	a.need(args.From, args.To)
	threads := a.convolution(args.In, args.Out, args.Stride)
	if args.In.Channels%4 == 0 { // four in a thread
		a.aligned(args.From, args.To)
		threads /= 4
	}
	return threads
}

// convolution returns the number of elements in the rows of Im2col.
func (a *arguments) convolution(in, out Shape, stride int32) int64 {
	if stride != 1 && stride != 2 {
		a.refuse("a stride of %d; want 1 or 2", stride)
		return 0
	}
	if want := in.Convolved(out.Channels, stride); out != want {
		a.refuse("images of %+v give %+v with stride %d, not %+v", in, want, stride, out)
	}
	a.size(in.dimensions()...)
	return a.size(out.Images, out.Lines, out.Points, 9, in.Channels)
}

// Col2im is the transpose of Im2col, for the gradient by the images: each element is the sum of the
// elements of From into which Im2col copies it.
type Col2im struct {
	From   cuda.Pointer // [pixel of Out][9·In.Channels]
	To     cuda.Pointer // images of In
	In     Shape
	Out    Shape // its Channels do not matter
	Stride int32 // 1 or 2
}

func (s *Set) Col2im(stream cuda.Stream, args Col2im) error {
	a := &arguments{kernel: "col2im"}
	a.need(args.From, args.To)
	a.convolution(args.In, args.Out, args.Stride)
	return launch(s, a, a.size(args.In.dimensions()...), stream, &args)
}

// Pool computes the mean of each channel over each image.
type Pool struct {
	From  cuda.Pointer // images of Shape
	To    cuda.Pointer // [image][channel]
	Shape Shape
}

func (s *Set) Pool(stream cuda.Stream, args Pool) error {
	a := &arguments{kernel: "pool"}
	a.need(args.From, args.To)
	a.size(args.Shape.dimensions()...)
	return launch(s, a, a.size(args.Shape.Images, args.Shape.Channels), stream, &args)
}

// PoolGradient is Pool's backward pass: every pixel gets its part of the image's gradient.
type PoolGradient struct {
	From  cuda.Pointer // [image][channel]
	To    cuda.Pointer // images of Shape
	Shape Shape
}

func (s *Set) PoolGradient(stream cuda.Stream, args PoolGradient) error {
	a := &arguments{kernel: "pool_gradient"}
	a.need(args.From, args.To)
	return launch(s, a, a.size(args.Shape.dimensions()...), stream, &args)
}
