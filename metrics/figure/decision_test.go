package figure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// The first look compared 1 worker with 4, the others 2 with 4. Only these are drawn.
func TestDecision(t *testing.T) {
	n := func(n int) *int { return &n }
	x := func(x float64) *float64 { return &x }
	looks := []metrics.Look{
		{Series: "native", Number: 1, Runs: 6, Workers: n(1), Rival: 4, Ratio: x(3), Price: x(1.96), Confidence: 0.96},
		{Series: "native", Number: 2, Runs: 10, Workers: n(2), Rival: 4, Ratio: x(1.5), Price: x(1.4), Confidence: 0.96},
		{Series: "native", Number: 3, Runs: 14, Workers: n(4), Rival: 2, Ratio: x(1.6), Low: x(1.45), High: x(1.8), Price: x(1.4), Decided: true, Confidence: 0.96},
	}
	f, err := Draw("decision", Data{Looks: looks}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`target (10, 1.4) (14, 1.4)`,
		`line   "native" (10, 1.5) (14, 1.6)`,
		`median "native" (10, 1.5)`,
		`bar    "native" (14, 1.45) (14, 1.8)`,
		`median "native" (14, 1.6)`,
	}
	if diff := cmp.Diff(want, lines(f)); diff != "" {
		t.Error(diff)
	}
	caption := strings.Join(f.caption, " ")
	for _, text := range []string{"native: 4 workers over 2; 1 look compared other counts, or none, decided after 14 runs.", "96 % intervals",
		"Looks without a bar have no interval: one needs 4 runs or more of each worker count"} {
		if !strings.Contains(caption, text) {
			t.Errorf("%q lacks %q", caption, text)
		}
	}
	if _, err := Draw("decision", Data{Looks: []metrics.Look{{Series: "native", Confidence: 0.96}}}, Options{}); err == nil {
		t.Error("a look without a ratio was drawn")
	}
}

// A comparison of settings needs 7 runs of each at 98.25 %: the smallest and largest of n runs miss
// the median with probability 2·0.5^n, which is 3.1 % of 6 and 1.6 % of 7. With a bar at each look,
// the caption says nothing.
func TestDecisionWithoutBars(t *testing.T) {
	x := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		name      string
		low, high *float64
		want      bool
	}{{"without", nil, nil, true}, {"with", x(1.1), x(1.3), false}} {
		look := metrics.Look{Series: "b against a", Number: 1, Runs: 12, Ratio: x(1.2), Low: c.low, High: c.high, Confidence: 0.9825}
		f, err := Draw("decision", Data{Looks: []metrics.Look{look}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		caption := strings.Join(f.caption, " ")
		if got := strings.Contains(caption, "one needs 7 runs or more of each setting"); got != c.want {
			t.Errorf("%s: %q", c.name, caption)
		}
		if got := strings.Contains(caption, "Bars: 98"); got == c.want {
			t.Errorf("%s: %q", c.name, caption)
		}
	}
}
