package cpu

import "math"

// adam is what a step of Adam or AdamW takes beside the numbers: see
// Engine.Update.
type adam struct {
	beta1, rest1, beta2, rest2 float32 // and 1 less each
	coupled                    float32 // weight decay that is added to the gradient
	keep                       float32 // what AdamW's weight decay leaves of a weight
	size, root, epsilon        float32 // of the step; √(1−β₂ᵗ)
}

func newAdam(o Options, rate float64, step int) adam {
	a := adam{beta1: float32(o.Beta1), rest1: float32(1 - o.Beta1), beta2: float32(o.Beta2), rest2: float32(1 - o.Beta2), keep: 1, epsilon: float32(o.Epsilon)}
	if o.Optimizer == "adamw" {
		a.keep = float32(1 - rate*o.WeightDecay)
	} else {
		a.coupled = float32(o.WeightDecay)
	}
	a.size = float32(rate / (1 - math.Pow(o.Beta1, float64(step))))
	a.root = float32(math.Sqrt(1 - math.Pow(o.Beta2, float64(step))))
	return a
}

// step changes weights and both means. Each operation is rounded by itself, so
// that no processor fuses two and ranks keep equal bits.
func (a adam) step(w, mean, squares, gradients []float32) {
	mean, squares, gradients = mean[:len(w)], squares[:len(w)], gradients[:len(w)]
	for i := range w {
		g := gradients[i] + float32(a.coupled*w[i])
		mean[i] = float32(a.beta1*mean[i]) + float32(a.rest1*g)
		squares[i] = float32(a.beta2*squares[i]) + float32(a.rest2*float32(g*g))
		root := float32(math.Sqrt(float64(squares[i])))
		w[i] = float32(a.keep*w[i]) - float32(a.size*float32(mean[i]/(float32(root/a.root)+a.epsilon)))
	}
}
