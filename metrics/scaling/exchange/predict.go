package exchange

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// reduction is the operation that a data-parallel training's gradients go
// through, in place.
const reduction = "all_reduce"

// carriers are the backends whose benchmark speaks for a framework's gradients.
// For the others nothing here measures what carries them.
var carriers = map[string][]string{"native": {"auto"}}

// Predict sets at every point of more than one worker what share of a step the
// reduction of the gradients would take, by benchmarks with as many workers on
// as many nodes of the same machine: latency plus size over bandwidth of one
// all-reduce of the gradient's bytes, over the step time. Observations are what
// the curves were made of.
func Predict(curves []scaling.Curve, obs []scaling.Observation, runs []Run) {
	of := make(map[string]*scaling.Observation, len(obs))
	for i := range obs {
		of[obs[i].Run] = &obs[i]
	}
	for i := range curves {
		for j := range curves[i].Points {
			p := &curves[i].Points[j]
			var trained []*scaling.Observation
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

// predict is the share at one point.
func predict(trained []*scaling.Observation, runs []Run) *scaling.Prediction {
	none := func(format string, args ...any) *scaling.Prediction {
		return &scaling.Prediction{Why: fmt.Sprintf(format, args...)}
	}
	first := trained[0]
	backends := carriers[first.Framework]
	if backends == nil {
		return none("no benchmark of collectives here measures what %s's gradients go through", first.Framework)
	}
	var steps []float64
	bytes := int64(0)
	for _, o := range trained {
		if o.StepP50 == nil || o.GradientBytes == nil {
			continue
		}
		if bytes != 0 && *o.GradientBytes != bytes {
			return none("its runs have gradients of different sizes")
		}
		bytes = *o.GradientBytes
		steps = append(steps, *o.StepP50)
	}
	if steps == nil {
		return none("no run recorded both its step times and the size of its gradients")
	}
	chosen := latest(slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return r.link(reduction, true) == nil || r.Workers != first.Workers || r.Nodes != first.Nodes ||
			!slices.Contains(backends, r.Backend()) || r.Cluster != first.Cluster || !sameHardware(r.Fingerprint, first.Fingerprint)
	}))
	if chosen == nil {
		return none("no stored benchmark of %s with backend %q has %d workers on %s like these", reduction, strings.Join(backends, "\", \""), first.Workers, nodesText(first.Nodes))
	}
	var seconds []float64
	low, high := 0.0, 0.0
	for _, r := range chosen {
		l := r.link(reduction, true)
		seconds = append(seconds, l.Seconds(float64(bytes)))
		low, high = min(low, l.Low), max(high, l.High)
	}
	c, err := scaling.Compare(seconds, steps, 0)
	if err != nil {
		return none("%v", err)
	}
	from := fmt.Sprintf("study %q, %d runs: one %s of %d bytes; the fit is off by %.0f to +%.0f %% at its worst sizes", chosen[0].Study, len(chosen), reduction, bytes, 100*low, 100*high)
	return &scaling.Prediction{Share: &c.Ratio, From: strings.Replace(from, ", 1 runs", ", 1 run", 1)}
}

// latest are the runs of the study that was run last.
func latest(runs []Run) []Run {
	if len(runs) == 0 {
		return nil
	}
	newest := slices.MaxFunc(runs, func(a, b Run) int {
		switch {
		case a.CreatedUnix < b.CreatedUnix:
			return -1
		case a.CreatedUnix > b.CreatedUnix:
			return 1
		}
		return strings.Compare(a.Run, b.Run)
	}).Study
	return slices.DeleteFunc(runs, func(r Run) bool { return r.Study != newest })
}

// sameHardware reports whether nothing that is known of both tells what they ran
// on apart. Versions of libraries do not carry messages.
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
