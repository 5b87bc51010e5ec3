package cpu

import (
	"math"

	"gonum.org/v1/gonum/blas"
)

// dense is a fully connected layer, y = W·x + b, with a ReLU behind it if asked
// for. Its weights are w[output][input].
type dense struct {
	net          *network
	in, out      *tensor
	relu         bool
	weight, bias *parameter
}

func (n *network) dense(in *tensor, outputs int, relu bool) *dense {
	d := &dense{net: n, in: in, out: n.tensor(1, 1, outputs, true), relu: relu}
	d.weight, d.bias = n.parameter(outputs*in.size(), in.size(), 0), n.parameter(outputs, 0, 0)
	n.add(d)
	return d
}

func (d *dense) forward(n int, _ bool) error {
	k, m := d.in.size(), d.out.c
	d.net.threads.each(n, func(_, from, to int) {
		if from == to {
			return
		}
		out := d.out.data[from*m : to*m]
		for row := out; len(row) > 0; row = row[m:] {
			copy(row, d.bias.w)
		}
		gemm(blas.NoTrans, blas.Trans, to-from, m, k, d.in.data[from*k:], k, d.weight.w, k, 1, out, m)
		if d.relu {
			for i, v := range out {
				out[i] = max(v, 0)
			}
		}
	})
	return nil
}

func (d *dense) backward(n int) error {
	k, m := d.in.size(), d.out.c
	if d.relu {
		d.net.maskReLU(d.out, n)
	}
	// Each thread has some of the outputs, so that no sum is cut up.
	d.net.threads.each(m, func(_, from, to int) {
		if from == to {
			return
		}
		gemm(blas.Trans, blas.NoTrans, to-from, k, n, d.out.grad[from:], m, d.in.data, k, 0, d.weight.g[from*k:], k)
		bias := d.bias.g[from:to]
		clear(bias)
		for image := range n {
			for i, v := range d.out.grad[image*m+from : image*m+to] {
				bias[i] += v
			}
		}
	})
	if d.in.grad == nil {
		return nil
	}
	d.net.threads.each(n, func(_, from, to int) {
		if from < to {
			gemm(blas.NoTrans, blas.NoTrans, to-from, k, m, d.out.grad[from*m:], m, d.weight.w, k, 0, d.in.grad[from*k:], k)
		}
	})
	return nil
}

// crossEntropy is the softmax cross-entropy of image i's logits: −log of the
// probability they give to its label. correct says that no other class is
// likelier. If grad is not nil, it is set to scale times the gradient by the
// logits.
func crossEntropy(logits []float32, label byte, grad []float32, scale float32) (loss float64, correct bool) {
	largest := float32(math.Inf(-1))
	for _, v := range logits {
		largest = max(largest, v)
	}
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v - largest))
	}
	for i := range grad {
		p := math.Exp(float64(logits[i]-largest)) / sum
		if i == int(label) {
			p--
		}
		grad[i] = scale * float32(p)
	}
	own := logits[label]
	correct = own == largest // never for NaN
	for i, v := range logits[:label] {
		correct = correct && (v != own || i == int(label)) // of equals, the first counts
	}
	return math.Log(sum) - float64(own-largest), correct
}
