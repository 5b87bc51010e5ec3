package netspec

import "fmt"

// Trained is a trained model.
type Trained struct {
	Model   string // name of the model, as in workload.model
	Classes int
	// Height, Width and Channels are the shape of an image.
	Height, Width, Channels int
	Tensors                 []Tensor // parameters, and statistics of batch normalisation
}

// A Tensor is a named array in row-major order.
type Tensor struct {
	Name  string // layer number, from 1, and role: layer3.weight
	Shape []int
	Data  []float32
}

// Fill copies the tensors of a trained model into the given ones, which must have the same names,
// shapes and order.
func (t *Trained) Fill(into []Tensor) error {
	if len(t.Tensors) != len(into) {
		return fmt.Errorf("%d tensors; %s has %d", len(t.Tensors), t.Model, len(into))
	}
	for i, to := range into {
		from := t.Tensors[i]
		if from.Name != to.Name || fmt.Sprint(from.Shape) != fmt.Sprint(to.Shape) || len(from.Data) != len(to.Data) {
			return fmt.Errorf("tensor %d is %s %v of %d numbers; that of %s is %s %v of %d", i+1, from.Name, from.Shape, len(from.Data), t.Model, to.Name, to.Shape, len(to.Data))
		}
		copy(to.Data, from.Data)
	}
	return nil
}
