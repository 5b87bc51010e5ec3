package scaling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// This file predicts the share of a training's step time that the all-reduce of the gradients
// takes, from a benchmark of collectives on the same machine. Times are in seconds, sizes in
// bytes, bandwidths in bytes/s.

// reduction is the collective operation that combines the gradients of a data-parallel training,
// in place.
const reduction = "all_reduce"

// carriers maps frameworks to the backends whose benchmark applies to their gradients. For other
// frameworks, no benchmark measures their transport.
var carriers = map[string][]string{"native": {"auto"}}

// PredictExchange sets the predicted share of the step time that the all-reduce of the gradients
// takes, at every point with several workers. It uses benchmarks with the same numbers of workers
// and nodes on the same machine. The predicted time is the latency plus the gradients' size
// divided by the bandwidth, corrected by the error of this formula at the nearest measured sizes.
// obs are the observations of the curves; benchmarks are runs that measured collectives.
func PredictExchange(curves []Curve, obs, benchmarks []Observation) {
	var runs []benchmark
	for i := range benchmarks {
		if b, ok := reductions(&benchmarks[i]); ok {
			runs = append(runs, b)
		}
	}
	of := ByRun(obs)
	for i := range curves {
		for j := range curves[i].Points {
			p := &curves[i].Points[j]
			var trained []*Observation
			for _, r := range p.Runs {
				if o := of[r.ID]; o != nil {
					trained = append(trained, o)
				}
			}
			if p.Workers > 1 && len(trained) > 0 {
				p.Predicted = predict(trained, runs)
			}
		}
	}
}

// benchmark is a run's measurement of the gradient all-reduce.
type benchmark struct {
	*Observation
	link  busbw.Link
	times map[float64]float64 // time of one all-reduce, by message size
}

// reductions returns the measurement in a run that measured collectives. ok is false if the run
// has no latency and bandwidth.
func reductions(o *Observation) (b benchmark, ok bool) {
	b = benchmark{Observation: o, times: map[float64]float64{}}
	for _, p := range o.Places {
		if p.At[measure.Op] != reduction || p.At[measure.InPlace] != 1.0 {
			continue
		}
		if size, sized := p.At[measure.Bytes].(float64); sized {
			if t := p.Values[measure.Time]; t > 0 {
				b.times[size] = t
			}
			continue
		}
		alpha, has := p.Values[measure.Latency]
		beta := p.Values[measure.Bandwidth]
		if has && beta > 0 {
			b.link, ok = busbw.Link{Alpha: alpha, Beta: beta}, true
		}
	}
	return b, ok
}

// backend returns the transport that the benchmark's collectives used: "tcp", "nccl". It is "" if
// it was not recorded, as for an imported log.
func (b *benchmark) backend() string {
	name, _ := b.Parameters["workload.backend"].(string)
	return name
}

// predict returns the predicted share at one point; trained are the runs of the point.
func predict(trained []*Observation, runs []benchmark) *Prediction {
	none := func(format string, args ...any) *Prediction {
		return &Prediction{Why: fmt.Sprintf(format, args...)}
	}
	first := trained[0]
	backends := carriers[first.Framework]
	if backends == nil {
		return none("scalebench has no benchmark of collectives for the path that %s's gradients take", first.Framework)
	}
	var steps []float64
	bytes := int64(0)
	for _, o := range trained {
		step := o.Known(measure.StepP50)
		if step == nil || o.GradientBytes == nil {
			continue
		}
		if bytes != 0 && *o.GradientBytes != bytes {
			return none("its runs have gradients of different sizes")
		}
		bytes = *o.GradientBytes
		steps = append(steps, *step)
	}
	if steps == nil {
		return none("no run recorded both its step times and the size of its gradients")
	}
	like := slices.DeleteFunc(slices.Clone(runs), func(r benchmark) bool {
		return r.Workers != first.Workers || r.Nodes != first.Nodes ||
			!slices.Contains(backends, r.backend()) || r.Cluster != first.Cluster || !sameHardware(r.Fingerprint, first.Fingerprint)
	})
	// Prefer benchmarks that measured sizes on both sides of the gradients' size to later ones
	// that did not.
	chosen := latest(slices.DeleteFunc(slices.Clone(like), func(r benchmark) bool {
		_, within := r.correction(float64(bytes))
		return !within
	}))
	if chosen == nil {
		chosen = latest(like)
	}
	if chosen == nil {
		return none("no stored benchmark of %s with backend %q has %s on %s like these", reduction, strings.Join(backends, "\", \""), number.Count(first.Workers, "worker"), nodesText(first.Nodes))
	}
	var seconds []float64
	low, high, beyond := math.Inf(1), math.Inf(-1), false
	for _, r := range chosen {
		factor, within := r.correction(float64(bytes))
		seconds = append(seconds, factor*r.link.Seconds(float64(bytes)))
		low, high, beyond = min(low, factor), max(high, factor), beyond || !within
	}
	c, err := Compare(seconds, steps, 0)
	if err != nil {
		return none("%v", err)
	}
	how := fmt.Sprintf("the fit times %.2f to %.2f, from the measured sizes next to it", low, high)
	if beyond {
		how = "beyond the measured sizes, so the fit is not corrected"
	}
	return &Prediction{Share: &c.Ratio,
		From: fmt.Sprintf("study %q, %s: one %s of %d bytes, %s", chosen[0].Study, number.Count(len(chosen), "run"), reduction, bytes, how)}
}

// correction returns the measured time divided by the time from latency and bandwidth at a size.
// It is interpolated between the nearest measured sizes, over the logarithm of the size. If one
// side has no measured size, within is false and the factor is 1: caches make the curve
// nonlinear, so that it cannot be extrapolated.
func (b *benchmark) correction(bytes float64) (factor float64, within bool) {
	below, above := math.Inf(-1), math.Inf(1) // the largest size up to bytes, and the smallest above
	for size := range b.times {
		if size <= bytes {
			below = max(below, size)
		}
		if size >= bytes {
			above = min(above, size)
		}
	}
	if math.IsInf(below, 0) || math.IsInf(above, 0) {
		return 1, false
	}
	off := func(size float64) float64 { return math.Log(b.times[size] / b.link.Seconds(size)) }
	part := 0.0
	if above > below {
		part = math.Log(bytes/below) / math.Log(above/below)
	}
	return math.Exp((1-part)*off(below) + part*off(above)), true
}

// latest returns the runs of the study that has the newest run.
func latest(runs []benchmark) []benchmark {
	if len(runs) == 0 {
		return nil
	}
	newest := slices.MaxFunc(runs, func(a, b benchmark) int {
		return cmp.Or(cmp.Compare(a.CreatedUnix, b.CreatedUnix), cmp.Compare(a.Run, b.Run))
	}).Study
	return slices.DeleteFunc(runs, func(r benchmark) bool { return r.Study != newest })
}

// sameHardware reports whether the hardware facts that both fingerprints have agree. Versions of
// libraries are not compared, because they do not affect messages.
func sameHardware(a, b fingerprint.Print) bool {
	for _, field := range []string{fingerprint.CPU, fingerprint.GPU, fingerprint.Interface} {
		if a[field] != "" && b[field] != "" && a[field] != b[field] {
			return false
		}
	}
	return true
}

func nodesText(n int) string {
	if n == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", n)
}
