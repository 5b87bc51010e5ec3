package main

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A study is refused what only trainings have when none of its runs is one,
// whatever kind they are of; runs without a steady state are trainings.
func TestNoTraining(t *testing.T) {
	run := func(kind string, throughput ...float64) scaling.Observation {
		o := scaling.Observation{Kind: kind, Values: map[string]float64{}}
		for _, x := range throughput {
			o.Values[measure.Throughput] = x
		}
		return o
	}
	unsteady := run("train")
	for name, c := range map[string]struct {
		list []scaling.Observation
		want string
	}{
		"nothing":                    {nil, ""},
		"a training":                 {[]scaling.Observation{run("train", 1)}, ""},
		"one without a steady state": {[]scaling.Observation{unsteady}, ""},
		"a benchmark":                {[]scaling.Observation{run("collective")}, "is a benchmark of collectives: it trains nothing"},
		"another kind":               {[]scaling.Observation{run("serving")}, `is of kind "serving": it trains nothing`},
		"a benchmark and a training": {[]scaling.Observation{run("collective"), unsteady}, ""},
	} {
		err := noTraining("s", c.list)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || exitCode(err) != exitUsage || hintFor(err) == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
