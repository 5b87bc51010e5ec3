package cpu

import "math"

// Adam holds the scalars of a step of Adam or AdamW: see Engine.Update.
type Adam struct {
	Beta1, Rest1, Beta2, Rest2 float32 // 1 − β₁ and 1 − β₂ follow their β
	Coupled                    float32 // weight decay that is added to the gradient
	Keep                       float32 // factor of AdamW's weight decay on each weight
	Size, Root, Epsilon        float32 // step size; √(1−β₂ᵗ)
}

// NewAdam returns the scalars of step t, from 1, at a learning rate.
func NewAdam(o Options, rate float64, t int) Adam {
	a := Adam{Beta1: float32(o.Beta1), Rest1: float32(1 - o.Beta1), Beta2: float32(o.Beta2), Rest2: float32(1 - o.Beta2), Keep: 1, Epsilon: float32(o.Epsilon)}
	if o.Optimizer == "adamw" {
		a.Keep = float32(1 - rate*o.WeightDecay)
	} else {
		a.Coupled = float32(o.WeightDecay)
	}
	a.Size = float32(rate / (1 - math.Pow(o.Beta1, float64(t))))
	a.Root = float32(math.Sqrt(1 - math.Pow(o.Beta2, float64(t))))
	return a
}

// step updates the weights and both means. Each operation is rounded separately, so that no
// processor fuses two of them, and all ranks get equal bits.
func (a Adam) step(w, mean, squares, gradients []float32) {
	mean, squares, gradients = mean[:len(w)], squares[:len(w)], gradients[:len(w)]
	for i := range w {
		g := gradients[i] + float32(a.Coupled*w[i])
		mean[i] = float32(a.Beta1*mean[i]) + float32(a.Rest1*g)
		squares[i] = float32(a.Beta2*squares[i]) + float32(a.Rest2*float32(g*g))
		root := float32(math.Sqrt(float64(squares[i])))
		w[i] = float32(a.Keep*w[i]) - float32(a.Size*float32(mean[i]/(float32(root/a.Root)+a.Epsilon)))
	}
}
