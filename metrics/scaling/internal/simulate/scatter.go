package simulate

import (
	"math"
	"math/rand/v2"
)

type scatter = func(r *rand.Rand) func(r *rand.Rand, count int) float64
type course = func(r *rand.Rand, n int) []float64

func normal(low, high float64) scatter {
	return func(r *rand.Rand) func(*rand.Rand, int) float64 {
		sd := between(r, low, high)
		return func(r *rand.Rand, _ int) float64 { return -math.Log(max(0.05, 1+sd*r.NormFloat64())) }
	}
}

func lognormal(low, high float64) scatter {
	return func(r *rand.Rand) func(*rand.Rand, int) float64 {
		sd := make([]float64, len(SampleCounts))
		for i := range sd {
			sd[i] = between(r, low, high)
		}
		return func(r *rand.Rand, count int) float64 { return sd[count] * r.NormFloat64() }
	}
}

// heavy is a scatter with Student's t distribution of three degrees of freedom.
func heavy(r *rand.Rand) func(*rand.Rand, int) float64 {
	sd := between(r, 0.01, 0.05)
	return func(r *rand.Rand, _ int) float64 {
		sum := 0.0
		for range 3 {
			z := r.NormFloat64()
			sum += z * z
		}
		return sd * r.NormFloat64() / math.Sqrt(sum/3)
	}
}

// late is a skewed scatter: most runs are similar, and some take much longer.
func late(r *rand.Rand) func(*rand.Rand, int) float64 {
	sd, tail := between(r, 0.005, 0.02), between(r, 0.02, 0.15)
	return func(r *rand.Rand, _ int) float64 { return sd*r.NormFloat64() + tail*r.ExpFloat64() }
}

// twoModes is a scatter in which a share of the runs is slower; the share may depend on the count.
func twoModes(share func(r *rand.Rand, count int) float64) scatter {
	return func(r *rand.Rand) func(*rand.Rand, int) float64 {
		sd, by := between(r, 0.01, 0.04), between(r, 0.1, 0.6)
		shares := make([]float64, len(SampleCounts))
		for i := range shares {
			shares[i] = share(r, i)
		}
		return func(r *rand.Rand, count int) float64 {
			x := sd * r.NormFloat64()
			if r.Float64() < shares[count] {
				x += by
			}
			return x
		}
	}
}

// slowNodes is a scatter in which a run is slow if one of its nodes is slow.
func slowNodes(part float64) scatter {
	return twoModes(func(_ *rand.Rand, count int) float64 { return 1 - math.Pow(1-part, float64(SampleCounts[count])) })
}

// missing adds misses of the target, with the same probability at each count.
func missing(p float64, of scatter) scatter {
	return func(r *rand.Rand) func(*rand.Rand, int) float64 {
		draw := of(r)
		return func(r *rand.Rand, count int) float64 {
			x := draw(r, count)
			if r.Float64() < p {
				return math.Inf(1)
			}
			return x
		}
	}
}

func ramp(low, high float64) course {
	return func(r *rand.Rand, n int) []float64 {
		by := between(r, low, high) * sign(r)
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = by * float64(i) / float64(n-1)
		}
		return xs
	}
}

func autoregressive(r *rand.Rand, n int) []float64 {
	sd, memory := between(r, 0.02, 0.1), 0.5+0.45*r.Float64()
	xs := make([]float64, n)
	x := sd * r.NormFloat64()
	for i := range xs {
		xs[i] = x
		x = memory*x + math.Sqrt(1-memory*memory)*sd*r.NormFloat64()
	}
	return xs
}

// stairs changes the machine's speed once or twice, at random times.
func stairs(r *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for range 1 + r.IntN(2) {
		from, by := r.IntN(n), between(r, 0.05, 0.3)*sign(r)
		for i := from; i < n; i++ {
			xs[i] += by
		}
	}
	return xs
}

// SampleFamilies are the families on which estimators of ratios are tested. Their parameters vary
// widely, and were fixed before the estimator was chosen.
var SampleFamilies = func() []Samples {
	some := func(share float64) func(*rand.Rand, int) float64 {
		return func(*rand.Rand, int) float64 { return share }
	}
	larger := func(_ *rand.Rand, count int) float64 { // only at the largest count
		if count == len(SampleCounts)-1 {
			return 0.3
		}
		return 0
	}
	return []Samples{
		{"normal", Shuffled, 6, 20, normal(0.005, 0.05), nil},
		{"normal, blocks", Blocks, 6, 20, normal(0.005, 0.05), nil},
		{"lognormal of several widths", Blocks, 6, 20, lognormal(0.02, 0.3), nil},
		{"few runs", Blocks, 4, 8, lognormal(0.01, 0.1), nil},
		{"few runs, ramp", Blocks, 4, 8, lognormal(0.01, 0.1), ramp(0.05, 0.4)},
		{"heavy tails", Blocks, 6, 20, heavy, nil},
		{"late runs", Blocks, 6, 20, late, nil},
		{"ramp", Blocks, 6, 20, normal(0.005, 0.05), ramp(0.03, 0.4)},
		{"ramp, shuffled", Shuffled, 6, 20, normal(0.005, 0.05), ramp(0.03, 0.4)},
		{"ramp, late runs", Blocks, 6, 20, late, ramp(0.03, 0.4)},
		{"ramp, plan order", Planned, 6, 20, normal(0.005, 0.05), ramp(0.03, 0.4)},
		{"autoregressive", Blocks, 6, 20, normal(0.005, 0.03), autoregressive},
		{"autoregressive, shuffled", Shuffled, 6, 20, normal(0.005, 0.03), autoregressive},
		{"stairs", Blocks, 6, 20, normal(0.005, 0.05), stairs},
		{"two modes", Blocks, 6, 20, twoModes(some(0.3)), nil},
		{"two modes, shuffled", Shuffled, 6, 20, twoModes(some(0.3)), nil},
		{"two modes, ramp", Blocks, 6, 20, twoModes(some(0.3)), ramp(0.03, 0.4)},
		{"two modes at the largest count", Blocks, 6, 20, twoModes(larger), nil},
		{"two modes at the largest count, ramp", Blocks, 6, 20, twoModes(larger), ramp(0.03, 0.4)},
		{"30 % slow nodes, 6 runs", Blocks, 6, 6, slowNodes(0.3), nil},
		{"30 % slow nodes", Blocks, 6, 20, slowNodes(0.3), nil},
		{"30 % slow nodes, 20 runs", Blocks, 20, 20, slowNodes(0.3), nil},
		{"30 % slow nodes, shuffled", Shuffled, 6, 20, slowNodes(0.3), nil},
		{"30 % slow nodes, ramp", Blocks, 6, 20, slowNodes(0.3), ramp(0.03, 0.4)},
		{"5 % slow nodes", Blocks, 6, 20, slowNodes(0.05), nil},
		{"5 % misses", Blocks, 6, 20, missing(0.05, lognormal(0.02, 0.2)), nil},
		{"20 % misses", Blocks, 6, 20, missing(0.2, lognormal(0.02, 0.2)), nil},
		{"10 % misses, ramp", Blocks, 6, 20, missing(0.1, lognormal(0.02, 0.2)), ramp(0.03, 0.4)},
	}
}()
