package summary

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// stated takes results from figures that a log states, where no step was
// recorded. Each goes with a warning that says what it is: another program's
// figure is not made by our rules.
func (r *Result) stated(in Input) {
	if len(in.Steps) > 0 {
		return
	}
	for _, to := range []struct {
		name  string
		unit  string
		value **float64
	}{
		{metrics.FigureThroughput, "samples/s", &r.Throughput},
		{metrics.FigureEndToEnd, "samples/s", &r.EndToEnd},
		{metrics.FigureTrainSeconds, "s", &r.TrainSeconds},
	} {
		var found []metrics.Figure
		for _, f := range in.Figures {
			if f.Name == to.name && f.Unit == to.unit && len(f.At) == 0 && f.Value > 0 {
				found = append(found, f)
			}
		}
		switch {
		case len(found) > 1:
			why := fmt.Sprintf("%s: the logs state %d, at %s and %s; which is the run's cannot be known", to.name, len(found), place(found[0]), place(found[1]))
			if to.value == &r.Throughput {
				r.ThroughputWhy = why
			}
			r.warn("%s", why)
		case len(found) == 1:
			if to.value == &r.Throughput {
				r.ThroughputWhy = ""
			}
			*to.value = known(found[0].Value)
			r.warn("%s", describe(found[0]))
		}
	}
}

// describe says what a stated figure is.
func describe(f metrics.Figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is stated at %s, not measured here", f.Name, place(f))
	if f.Note != "" {
		b.WriteString(": " + f.Note)
	}
	if f.PlusMinus != nil {
		fmt.Fprintf(&b, "; ±%g %s is %s", *f.PlusMinus, f.Unit, f.PlusMinusIs)
	}
	return b.String()
}

func place(f metrics.Figure) string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}
