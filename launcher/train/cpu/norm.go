package cpu

import "math"

const (
	normEpsilon  = 1e-5 // added to the variance
	normMomentum = 0.1  // weight of a new batch in the running averages
)

// norm is batch normalisation (Ioffe and Szegedy 2015) with a ReLU behind it if
// asked for:
//
//	y = scale·(x − mean)/√(variance + ε) + shift
//
// In training, mean and variance are the batch's, per channel over images and
// pixels: this worker's batch, or all workers' when the network's reduce is
// set. In evaluation they are running averages over the training batches, where
// the variance is the unbiased one, as in PyTorch.
//
// Input and output share the memory of their gradient.
type norm struct {
	net          *network
	in, out      *tensor
	relu         bool
	scale, shift *parameter

	runningMean, runningVariance []float32

	mean, inverse []float32   // of the last batch: mean and 1/√(variance + ε)
	count         float64     // values a channel in the last batch
	sums          []float64   // 2 for each channel
	partial       [][]float64 // by thread
	a, b          []float32   // by channel
}

func (n *network) norm(in *tensor, relu bool) *norm {
	l := &norm{net: n, in: in, out: n.tensor(in.h, in.w, in.c, false), relu: relu}
	l.out.grad = in.grad
	l.scale, l.shift = n.parameter(in.c, 0, 1), n.parameter(in.c, 0, 0)
	for _, s := range []*[]float32{&l.runningMean, &l.runningVariance, &l.mean, &l.inverse, &l.a, &l.b} {
		*s = make([]float32, in.c)
	}
	for i := range l.runningVariance {
		l.runningVariance[i] = 1
	}
	l.sums = make([]float64, 2*in.c)
	for range n.threads.n {
		l.partial = append(l.partial, make([]float64, 2*in.c))
	}
	n.add(l)
	n.norms = append(n.norms, l)
	return l
}

// sumUp adds the threads' partial sums in order.
func (l *norm) sumUp() {
	clear(l.sums)
	for _, partial := range l.partial {
		for i, v := range partial {
			l.sums[i] += v
		}
	}
}

// statistics sets mean and inverse from the batch and moves the running
// averages.
func (l *norm) statistics(n int) error {
	c, size := l.in.c, l.in.size()
	l.net.threads.each(n, func(part, from, to int) {
		sums, squares := l.partial[part][:c], l.partial[part][c:]
		clear(l.partial[part])
		x := l.in.data[from*size : to*size]
		for ; len(x) > 0; x = x[c:] {
			for i, v := range x[:c] {
				d := float64(v)
				sums[i] += d
				squares[i] += d * d
			}
		}
	})
	l.sumUp()
	l.count = float64(n * l.in.h * l.in.w)
	if l.net.reduce != nil {
		// All ranks' batches are of one size; the count goes along to be sure.
		all := append(l.sums, l.count)
		if err := l.net.reduce(all); err != nil {
			return err
		}
		copy(l.sums, all)
		l.count = all[2*c]
	}
	for i := range c {
		// Sums of squares in double precision lose nothing that single
		// precision inputs have.
		mean := l.sums[i] / l.count
		variance := max(l.sums[c+i]/l.count-mean*mean, 0)
		l.mean[i], l.inverse[i] = float32(mean), float32(1/math.Sqrt(variance+normEpsilon))
		unbiased := variance * l.count / max(l.count-1, 1)
		l.runningMean[i] += normMomentum * (float32(mean) - l.runningMean[i])
		l.runningVariance[i] += normMomentum * (float32(unbiased) - l.runningVariance[i])
	}
	return nil
}

func (l *norm) forward(n int, training bool) error {
	c, size := l.in.c, l.in.size()
	mean := l.runningMean
	if training {
		if err := l.statistics(n); err != nil {
			return err
		}
		mean = l.mean
	}
	for i := range c {
		inverse := l.inverse[i]
		if !training {
			inverse = float32(1 / math.Sqrt(float64(l.runningVariance[i])+normEpsilon))
		}
		l.a[i] = l.scale.w[i] * inverse
		l.b[i] = l.shift.w[i] - mean[i]*l.a[i]
	}
	l.net.threads.each(n, func(_, from, to int) {
		x, y := l.in.data[from*size:to*size], l.out.data[from*size:to*size]
		a, b := l.a[:c], l.b[:c]
		for ; len(x) > 0; x, y = x[c:], y[c:] {
			row := y[:c]
			for i, v := range x[:c] {
				v = v*a[i] + b[i]
				if l.relu {
					v = max(v, 0)
				}
				row[i] = v
			}
		}
	})
	return nil
}

func (l *norm) backward(n int) error {
	c, size := l.in.c, l.in.size()
	if l.relu {
		l.net.maskReLU(l.out, n)
	}
	// Sums of dy and of dy·x̂ are the gradients of shift and scale.
	l.net.threads.each(n, func(part, from, to int) {
		sums, products := l.partial[part][:c], l.partial[part][c:]
		clear(l.partial[part])
		x, dy := l.in.data[from*size:to*size], l.out.grad[from*size:to*size]
		mean, inverse := l.mean[:c], l.inverse[:c]
		for ; len(x) > 0; x, dy = x[c:], dy[c:] {
			row := dy[:c]
			for i, v := range x[:c] {
				d := float64(row[i])
				sums[i] += d
				products[i] += d * float64((v-mean[i])*inverse[i])
			}
		}
	})
	l.sumUp()
	for i := range c {
		l.shift.g[i], l.scale.g[i] = float32(l.sums[i]), float32(l.sums[c+i])
	}
	if l.net.reduce != nil {
		// The parameters' gradients stay this rank's share; the batch that the
		// statistics belong to is everybody's.
		if err := l.net.reduce(l.sums); err != nil {
			return err
		}
	}
	l.net.threads.each(n, func(_, from, to int) {
		x, d := l.in.data[from*size:to*size], l.in.grad[from*size:to*size]
		for ; len(x) > 0; x, d = x[c:], d[c:] {
			row := d[:c]
			for i, v := range x[:c] {
				normal := (v - l.mean[i]) * l.inverse[i]
				centred := row[i] - float32(l.sums[i]/l.count) - normal*float32(l.sums[c+i]/l.count)
				row[i] = l.scale.w[i] * l.inverse[i] * centred
			}
		}
	})
	return nil
}

// maskReLU clears the gradient where the output of a ReLU is 0.
func (n *network) maskReLU(out *tensor, images int) {
	size := out.size()
	n.threads.each(images, func(_, from, to int) {
		grad := out.grad[from*size : to*size]
		for i, v := range out.data[from*size : to*size] {
			if v <= 0 {
				grad[i] = 0
			}
		}
	})
}
