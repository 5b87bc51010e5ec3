package ptx

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

// SGD is a step of stochastic gradient descent with momentum and weight decay:
//
//	v ← momentum·v + (g + decay·w)
//	w ← w − rate·v
//
// Each operation is rounded separately, as on CPUs.
type SGD struct {
	Weights, Velocity, Gradients cuda.Pointer // [Count]
	Count                        int32
	Rate, Momentum, Decay        float32
}

func (s *Set) SGD(stream cuda.Stream, args SGD) error {
	a := &arguments{kernel: "sgd"}
	a.need(args.Weights, args.Velocity, args.Gradients)
	return launch(s, a, a.size(args.Count), stream, &args)
}

// Adam is a step of Adam or AdamW:
//
//	g ← g + coupled·w
//	m ← β₁·m + rest₁·g,  v ← β₂·v + rest₂·g²
//	w ← keep·w − size · m/(√v/root + ε)
//
// For step t from 1, size is rate/(1−β₁ᵗ) and root is √(1−β₂ᵗ). Weight decay is
// Adam's coupled with a keep of 1, or AdamW's keep of 1 − rate·decay with a coupled
// of 0.
type Adam struct {
	Weights, Mean, Squares, Gradients cuda.Pointer // [Count]
	Count                             int32
	Beta1, Rest1, Beta2, Rest2        float32 // 1 − β₁ and 1 − β₂ follow their β
	Coupled, Keep                     float32
	Size, Root, Epsilon               float32
}

func (s *Set) Adam(stream cuda.Stream, args Adam) error {
	a := &arguments{kernel: "adam"}
	a.need(args.Weights, args.Mean, args.Squares, args.Gradients)
	return launch(s, a, a.size(args.Count), stream, &args)
}

// ToBfloat16 rounds to the nearest bfloat16, ties to even.
type ToBfloat16 struct {
	From  cuda.Pointer // [Count]
	To    cuda.Pointer // [Count] bfloat16
	Count int32
}

func (s *Set) ToBfloat16(stream cuda.Stream, args ToBfloat16) error {
	a := &arguments{kernel: "to_bfloat16"}
	a.need(args.From, args.To)
	return launch(s, a, a.size(args.Count), stream, &args)
}

// FromBfloat16 converts to float32, which is exact.
type FromBfloat16 struct {
	From  cuda.Pointer // [Count] bfloat16
	To    cuda.Pointer // [Count]
	Count int32
}

func (s *Set) FromBfloat16(stream cuda.Stream, args FromBfloat16) error {
	a := &arguments{kernel: "from_bfloat16"}
	a.need(args.From, args.To)
	return launch(s, a, a.size(args.Count), stream, &args)
}
