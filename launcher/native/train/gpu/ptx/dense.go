package ptx

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// Bias adds a number to each column, and then applies a ReLU if requested.
type Bias struct {
	From          cuda.Pointer // [Rows][Columns]
	Bias          cuda.Pointer // [Columns]
	To            cuda.Pointer // [Rows][Columns]; may be From
	Rows, Columns int32
	ReLU          int32 // 1, or 0: none
}

func (s *Set) Bias(stream cuda.Stream, args Bias) error {
	a := &arguments{kernel: "bias"}
	a.need(args.From, args.Bias, args.To)
	return launch(s, a, a.size(args.Rows, args.Columns), stream, &args)
}

// BiasGradient sums the rows that ColumnSums or SumRows computed, and rounds the result to float32.
type BiasGradient struct {
	From          cuda.Pointer // [Rows][Columns] float64
	To            cuda.Pointer // [Columns]
	Rows, Columns int32
}

func (s *Set) BiasGradient(stream cuda.Stream, args BiasGradient) error {
	a := &arguments{kernel: "bias_gradient"}
	a.need(args.From, args.To)
	a.size(args.Rows, args.Columns)
	return launch(s, a, a.size(args.Columns), stream, &args)
}

// CrossEntropy computes each image's softmax cross-entropy, −log of the probability of its label,
// and whether its label is the likeliest class (the first one, among equally likely classes). The
// loss of a label outside the classes is NaN.
type CrossEntropy struct {
	Logits          cuda.Pointer // [Images][Classes]
	Labels          cuda.Pointer // [Images] uint8
	Gradient        cuda.Pointer // [Images][Classes]: Scale times the gradient by the logits; 0: not computed
	To              cuda.Pointer // [Images][2] float64: the loss, and 1 for a right classification, else 0
	Scale           float32
	Images, Classes int32
}

func (s *Set) CrossEntropy(stream cuda.Stream, args CrossEntropy) error {
	a := &arguments{kernel: "cross_entropy"}
	a.need(args.Logits, args.Labels, args.To)
	a.size(args.Images, args.Classes)
	return launch(s, a, a.size(args.Images, 2)/2, stream, &args)
}
