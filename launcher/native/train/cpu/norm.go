package cpu

import "math"

// Constants of batch normalisation on every device.
const (
	NormEpsilon  = 1e-5 // added to the variance
	NormMomentum = 0.1  // weight of a new batch in the running averages
)

// norm computes the statistics of batch normalisation (Ioffe and Szegedy 2015):
//
//	z = scale·(y − mean)/√(variance + ε) + shift
//
// In training, mean and variance are the batch's, per channel over images and pixels: this worker's batch, or
// all workers' if the network's reduce is set. In evaluation they are running averages over the training
// batches, with the unbiased variance, as in PyTorch.
//
// Sums are in double precision, in which squares of single-precision numbers are exact, so that no
// precision is lost even if the mean is far from zero.
type norm struct {
	net          *network
	channels     int
	scale, shift *parameter

	runningMean, runningVariance []float32

	partial [][]float64 // by thread: 2 sums for each channel
	sums    []float64   // sums over all threads, with capacity for a count
	count   float64     // values per channel in the last batch
	inverse []float64   // 1/√(variance + ε) of the last batch

	coefficients         []float32 // coefficients of Set.Normalise: means first
	gradientCoefficients []float32 // coefficients of Set.NormGradient: means first
}

func newNorm(n *network, channels int) *norm {
	l := &norm{net: n, channels: channels, scale: n.parameter(channels, 0, 1), shift: n.parameter(channels, 0, 0)}
	l.runningMean, l.runningVariance = make([]float32, channels), make([]float32, channels)
	for i := range l.runningVariance {
		l.runningVariance[i] = 1
	}
	for range n.threads.n {
		l.partial = append(l.partial, make([]float64, 2*channels))
	}
	l.sums, l.inverse = make([]float64, 2*channels, 2*channels+1), make([]float64, channels)
	l.coefficients, l.gradientCoefficients = make([]float32, 3*channels), make([]float32, 4*channels)
	n.norms = append(n.norms, l)
	return l
}

// mean returns the means of the last batch, by channel.
func (l *norm) mean() []float32 { return l.coefficients[:l.channels] }

// sumUp adds the threads' partial sums in order.
func (l *norm) sumUp() {
	clear(l.sums)
	for _, partial := range l.partial {
		for i, v := range partial {
			l.sums[i] += v
		}
	}
}

// useBatch computes the statistics from the threads' sums of values and of squares, for this number
// of values per channel, and updates the running averages.
func (l *norm) useBatch(values int) error {
	l.sumUp()
	l.count = float64(values)
	c := l.channels
	if l.net.reduce != nil {
		// All ranks' batches should have the same size, but the sum of the counts is exact in any
		// case.
		all := append(l.sums, l.count)
		if err := l.net.reduce(all); err != nil {
			return err
		}
		l.count = all[2*c]
	}
	for i := range c {
		mean := l.sums[i] / l.count
		variance := max(l.sums[c+i]/l.count-mean*mean, 0)
		l.use(i, mean, variance)
		unbiased := variance * l.count / max(l.count-1, 1)
		l.runningMean[i] += NormMomentum * (float32(mean) - l.runningMean[i])
		l.runningVariance[i] += NormMomentum * (float32(unbiased) - l.runningVariance[i])
	}
	return nil
}

// useAverages uses the running averages as the statistics.
func (l *norm) useAverages() {
	for i := range l.channels {
		l.use(i, float64(l.runningMean[i]), float64(l.runningVariance[i]))
	}
}

func (l *norm) use(i int, mean, variance float64) {
	c := l.channels
	l.inverse[i] = 1 / math.Sqrt(variance+NormEpsilon)
	l.coefficients[i] = float32(mean)
	l.coefficients[c+i] = float32(float64(l.scale.w[i]) * l.inverse[i])
	l.coefficients[2*c+i] = l.shift.w[i]
}

// gradients computes the gradients by scale and shift, and the coefficients of the gradient by y,
// from the threads' sums of g, the gradient by z, and of g·(y − mean). With x̂ = (y −
// mean)/√(variance + ε), and sums over the values of a channel,
//
//	∂/∂shift = Σg, ∂/∂scale = Σg·x̂
//	∂/∂y = scale/√(variance + ε) · (g − Σg/count − x̂·Σ(g·x̂)/count)
func (l *norm) gradients() error {
	l.sumUp()
	c := l.channels
	for i := range c {
		l.shift.g[i], l.scale.g[i] = float32(l.sums[i]), float32(l.sums[c+i]*l.inverse[i])
	}
	if l.net.reduce != nil {
		// The parameters' gradients remain this rank's share, but the statistics cover the batches
		// of all ranks.
		if err := l.net.reduce(l.sums); err != nil {
			return err
		}
	}
	copy(l.gradientCoefficients, l.mean())
	for i := range c {
		inverse := l.inverse[i]
		a := float64(l.scale.w[i]) * inverse
		l.gradientCoefficients[c+i] = float32(a)
		l.gradientCoefficients[2*c+i] = float32(-a * inverse * inverse * l.sums[c+i] / l.count)
		l.gradientCoefficients[3*c+i] = float32(l.sums[i] / l.count)
	}
	return nil
}
