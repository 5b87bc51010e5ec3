package ptx

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// Bias adds a number to each column, and then cuts off at zero if asked to.
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

// BiasGradient rounds the sum of the rows that ColumnSums or SumRows left.
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

// CrossEntropy computes each image's softmax cross-entropy, −log of the probability that its logits
// give to its label, and whether no other class is likelier; among equals the first counts. The
// loss of a label outside the classes is NaN.
type CrossEntropy struct {
	Logits          cuda.Pointer // [Images][Classes]
	Labels          cuda.Pointer // [Images] uint8
	Gradient        cuda.Pointer // [Images][Classes]: Scale times that by the logits; 0: not wanted
	To              cuda.Pointer // [Images][2] float64: the loss, and 1 if it is right, else 0
	Scale           float32
	Images, Classes int32
}

func (s *Set) CrossEntropy(stream cuda.Stream, args CrossEntropy) error {
	a := &arguments{kernel: "cross_entropy"}
	a.need(args.Logits, args.Labels, args.To)
	a.size(args.Images, args.Classes)
	return launch(s, a, a.size(args.Images, 2)/2, stream, &args)
}
