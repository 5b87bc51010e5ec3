package scaling

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// The main measure is tokens/s if no run has a throughput, provided that tokens/s is declared as
// better when higher.
func TestMainOf(t *testing.T) {
	of := func(unit string, better measure.Direction, names ...string) *Observation {
		o := &Observation{Kind: "train", Values: map[string]float64{}, Reported: []measure.Measure{{Name: measure.TokensPerSecond, Unit: unit, Better: better}}}
		for _, n := range names {
			o.Values[n] = 100
		}
		return o
	}
	const tokens, rate = measure.TokensPerSecond, measure.Throughput
	for name, c := range map[string]struct {
		runs []*Observation
		want string
	}{
		"neither":                 {[]*Observation{of("tokens/s", measure.Higher)}, rate},
		"a rate":                  {[]*Observation{of("tokens/s", measure.Higher, rate)}, rate},
		"tokens":                  {[]*Observation{of("tokens/s", measure.Higher, tokens)}, tokens},
		"both":                    {[]*Observation{of("tokens/s", measure.Higher, tokens, rate)}, rate},
		"a rate in one run":       {[]*Observation{of("tokens/s", measure.Higher, tokens), of("tokens/s", measure.Higher, rate)}, rate},
		"tokens in one run":       {[]*Observation{of("tokens/s", measure.Higher), of("tokens/s", measure.Higher, tokens)}, tokens},
		"tokens of another unit":  {[]*Observation{of("ktokens/s", measure.Higher, tokens)}, rate},
		"which is better unknown": {[]*Observation{of("tokens/s", 0, tokens)}, rate},
	} {
		if got := mainOf(c.runs); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
