package main

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/summary"
)

// A study is refused what only trainings have when none of its runs is one,
// whatever kind they are of; runs without a steady state are trainings.
func TestNoTraining(t *testing.T) {
	run := func(kind, why string, throughput *float64) scaling.Observation {
		o := scaling.Observation{Parameters: map[string]any{}, Throughput: throughput, ThroughputWhy: why}
		if kind != "" {
			o.Parameters["workload.kind"] = kind
		}
		return o
	}
	x := 1.0
	unsteady := run("train", "no steady state: 3 steps", nil)
	for name, c := range map[string]struct {
		list []scaling.Observation
		want string
	}{
		"nothing":                      {nil, ""},
		"a training":                   {[]scaling.Observation{run("train", "", &x)}, ""},
		"one without a steady state":   {[]scaling.Observation{unsteady}, ""},
		"of before kinds were kept":    {[]scaling.Observation{run("", "no steady state", nil)}, ""},
		"a benchmark":                  {[]scaling.Observation{run("collective", summary.NoTraining, nil)}, "is a benchmark of collectives: it trains nothing"},
		"an imported one":              {[]scaling.Observation{run("", summary.NoTraining, nil)}, "is a benchmark of collectives"},
		"a benchmark without a result": {[]scaling.Observation{run("collective", "no event of the run was read in", nil)}, "is a benchmark of collectives"},
		"another kind":                 {[]scaling.Observation{run("serving", "no steady state", nil)}, `is of kind "serving": it trains nothing`},
		"a benchmark and a training":   {[]scaling.Observation{run("collective", summary.NoTraining, nil), unsteady}, ""},
	} {
		err := noTraining("s", c.list)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != exitUsage || hintFor(err) == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
