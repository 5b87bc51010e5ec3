package ptx

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// Batch normalisation (Ioffe and Szegedy 2015) over the rows of an array, which are
// all pixels of all images:
//
//	z = scale·(y − mean)/√(variance + ε) + shift
//
// The forward pass consists of Moments, SumRows, NormStatistics (in evaluations, only NormAverages)
// and Normalise. The backward pass consists of Rectify, GradientMoments, SumRows,
// NormGradientCoefficients and NormGradient.

// Moments computes the sum and the sum of squares of each channel over chunks of rows.
type Moments struct {
	From                  cuda.Pointer // [Rows][Channels]
	To                    cuda.Pointer // [chunk][2·Channels] float64: sums, then sums of squares
	Rows, Channels, Chunk int32
}

func (s *Set) Moments(stream cuda.Stream, args Moments) error {
	a := &arguments{kernel: "moments"}
	a.need(args.From, args.To)
	return launch(s, a, a.moments(args.Rows, args.Channels, args.Chunk), stream, &args)
}

// moments returns the number of pairs of sums.
func (a *arguments) moments(rows, channels, chunk int32) int64 {
	a.size(rows, channels)
	return a.size(a.chunks(rows, chunk), 2, channels) / 2
}

// NormStatistics computes the coefficients of Normalise from the sums, and updates the running
// averages. Their variance is the unbiased one.
type NormStatistics struct {
	Sums                         cuda.Pointer // [Rows][2·Channels] float64, whose rows it sums
	Scale, Shift                 cuda.Pointer // parameters
	RunningMean, RunningVariance cuda.Pointer
	Inverse                      cuda.Pointer // [Channels] float64: 1/√(variance + ε)
	Coefficients                 cuda.Pointer // [3][Channels]: means, scales, shifts
	Count                        float64      // values per channel, over all ranks included in Sums
	Epsilon                      float64
	Momentum                     float32 // weight of this batch in the running averages
	Rows, Channels               int32
}

func (s *Set) NormStatistics(stream cuda.Stream, args NormStatistics) error {
	a := &arguments{kernel: "norm_statistics"}
	a.need(args.Sums, args.Scale, args.Shift, args.RunningMean, args.RunningVariance, args.Inverse, args.Coefficients)
	a.size(args.Rows, 2, args.Channels)
	a.count(args.Count)
	return launch(s, a, a.size(3, args.Channels)/3, stream, &args)
}

func (a *arguments) count(n float64) {
	if !(n >= 1) {
		a.refuse("statistics of %v values; want 1 or more", n)
	}
}

// NormAverages computes the coefficients of Normalise from the running averages.
type NormAverages struct {
	RunningMean, RunningVariance cuda.Pointer
	Scale, Shift                 cuda.Pointer // parameters
	Coefficients                 cuda.Pointer // [3][Channels]
	Epsilon                      float64
	Channels                     int32
}

func (s *Set) NormAverages(stream cuda.Stream, args NormAverages) error {
	a := &arguments{kernel: "norm_averages"}
	a.need(args.RunningMean, args.RunningVariance, args.Scale, args.Shift, args.Coefficients)
	return launch(s, a, a.size(3, args.Channels)/3, stream, &args)
}

// Normalise computes the outcome of a unit:
//
//	to = max(scale·(y − mean) + shift + shortcut, 0)
//
// The shortcut, if any, is option A of He et al. 2016: every Stride-th pixel of every Stride-th
// line of another layer's output, with channels of zeros added on both sides.
type Normalise struct {
	From          cuda.Pointer // y, images of Shape
	Coefficients  cuda.Pointer // [3][Channels]
	Shortcut      cuda.Pointer // images of ShortcutShape, or 0
	To            cuda.Pointer // images of Shape
	Shape         Shape
	ShortcutShape Shape
	Stride        int32
}

func (s *Set) Normalise(stream cuda.Stream, args Normalise) error {
	a := &arguments{kernel: "normalise"}
	a.need(args.From, args.Coefficients, args.To)
	if args.Shortcut != 0 {
		a.shortcut(args.ShortcutShape, args.Shape, args.Stride)
	}
	return launch(s, a, a.size(args.Shape.dimensions()...), stream, &args)
}

// shortcut checks that images of shape from can be a shortcut to images of shape to.
func (a *arguments) shortcut(from, to Shape, stride int32) {
	a.size(from.dimensions()...)
	a.size(to.dimensions()...)
	if stride < 1 || from.Channels > to.Channels || (to.Channels-from.Channels)%2 != 0 || from.Convolved(to.Channels, stride) != to {
		a.refuse("images of %+v cannot be a shortcut to %+v with stride %d", from, to, stride)
	}
}

// Rectify is the backward pass of the ReLU. The result is the gradient by the outcome, plus the one
// through the shortcut if the outcome is another unit's shortcut, and 0 where the outcome is not
// positive.
type Rectify struct {
	From      cuda.Pointer // gradient by the outcome, images of Shape
	Outcome   cuda.Pointer // images of Shape
	User      cuda.Pointer // Rectify's result for the unit with the shortcut, images of UserShape, or 0
	To        cuda.Pointer // images of Shape; may be From
	Shape     Shape
	UserShape Shape
	Stride    int32 // distance between the shortcut's pixels
}

func (s *Set) Rectify(stream cuda.Stream, args Rectify) error {
	a := &arguments{kernel: "rectify"}
	a.need(args.From, args.Outcome, args.To)
	if args.User != 0 {
		a.shortcut(args.Shape, args.UserShape, args.Stride)
		if args.User == args.To && args.Shape != args.UserShape {
			a.refuse("the gradient of the shortcut's user would be overwritten while it is read")
		}
	}
	return launch(s, a, a.size(args.Shape.dimensions()...), stream, &args)
}

// GradientMoments computes the sums of the gradient g and of g·(y − mean) of each channel over
// chunks of rows.
type GradientMoments struct {
	Gradient, From        cuda.Pointer // g and y, [Rows][Channels]
	Mean                  cuda.Pointer // [Channels]
	To                    cuda.Pointer // [chunk][2·Channels] float64
	Rows, Channels, Chunk int32
}

func (s *Set) GradientMoments(stream cuda.Stream, args GradientMoments) error {
	a := &arguments{kernel: "gradient_moments"}
	a.need(args.Gradient, args.From, args.Mean, args.To)
	return launch(s, a, a.moments(args.Rows, args.Channels, args.Chunk), stream, &args)
}

// NormGradientCoefficients computes this rank's share of the gradients of scale and shift, and the
// coefficients of NormGradient. If the statistics are over all ranks' batches, All has the sums
// over the ranks; otherwise it equals Own. With x̂ = (y − mean)/√(variance + ε),
//
//	∂/∂shift = Σg, ∂/∂scale = Σg·x̂
//	∂/∂y = scale/√(variance + ε) · (g − Σg/count − x̂·Σ(g·x̂)/count)
type NormGradientCoefficients struct {
	Own                          cuda.Pointer // [OwnRows][2·Channels] float64, of which it takes the sum
	All                          cuda.Pointer // [AllRows][2·Channels] float64, likewise
	Inverse                      cuda.Pointer // of NormStatistics
	Scale                        cuda.Pointer // parameter
	Mean                         cuda.Pointer // [Channels]
	ScaleGradient, ShiftGradient cuda.Pointer // [Channels]
	Coefficients                 cuda.Pointer // [4][Channels]
	Count                        float64      // values of a channel, on all ranks whose sums All are
	OwnRows, AllRows, Channels   int32
}

func (s *Set) NormGradientCoefficients(stream cuda.Stream, args NormGradientCoefficients) error {
	a := &arguments{kernel: "norm_gradient_coefficients"}
	a.need(args.Own, args.All, args.Inverse, args.Scale, args.Mean, args.ScaleGradient, args.ShiftGradient, args.Coefficients)
	a.size(args.OwnRows, 2, args.Channels)
	a.size(args.AllRows, 2, args.Channels)
	a.count(args.Count)
	return launch(s, a, a.size(4, args.Channels)/4, stream, &args)
}

// NormGradient computes the gradient by y.
type NormGradient struct {
	Gradient, From cuda.Pointer // g and y, [Rows][Channels]
	Coefficients   cuda.Pointer // [4][Channels]
	To             cuda.Pointer // [Rows][Channels]; may be Gradient
	Rows, Channels int32
}

func (s *Set) NormGradient(stream cuda.Stream, args NormGradient) error {
	a := &arguments{kernel: "norm_gradient"}
	a.need(args.Gradient, args.From, args.Coefficients, args.To)
	return launch(s, a, a.size(args.Rows, args.Channels), stream, &args)
}
