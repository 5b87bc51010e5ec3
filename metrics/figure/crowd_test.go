package figure

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// crossed returns a curve for each pair of values of a and b.
func crossed(a, b int) []scaling.Curve {
	var list []scaling.Curve
	for i := range a {
		for k := range b {
			list = append(list, scaling.Curve{Framework: "x", Series: fmt.Sprintf("x a=%d b=%d", i, k), Parameters: map[string]any{"a": int64(i), "b": int64(k)}})
		}
	}
	return list
}

// No panel has more than the limit of curves, every curve is in one, and the parameter with
// the fewest panels gives their titles.
func TestUncrowd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		curves []scaling.Curve
		most   int
		sizes  []int
		first  string
	}{
		{"a divides best", crossed(3, 4), 8, []int{4, 4, 4}, "a 0"},
		{"b divides best", crossed(4, 3), 8, []int{4, 4, 4}, "b 0"},
		{"a panel of a is too full", crossed(2, 9), 8, []int{2, 2, 2, 2, 2, 2, 2, 2, 2}, "b 0"},
		{"one parameter", crossed(1, 12), 8, []int{6, 6}, "x a=0 b=0 to x a=0 b=5"},
		{"no parameter divides", crossed(9, 9), 8, []int{7, 7, 7, 8, 7, 7, 8, 7, 7, 8, 8}, ""},
		{"one each", crossed(1, 2), 1, []int{1, 1}, "x a=0 b=0"},
	} {
		var sizes []int
		seen := map[string]bool{}
		groups := uncrowd(tt.curves, tt.most)
		for _, g := range groups {
			sizes = append(sizes, len(g.curves))
			for _, c := range g.curves {
				seen[c.Series] = true
			}
		}
		if len(seen) != len(tt.curves) || slices.Max(sizes) > tt.most {
			t.Errorf("%s: %d of %d curves, sizes %v", tt.name, len(seen), len(tt.curves), sizes)
		}
		if tt.first == "" {
			continue
		}
		if diff := cmp.Diff(tt.sizes, sizes); diff != "" || groups[0].title != tt.first {
			t.Errorf("%s: first %q, want %q; sizes (-want +got):\n%s", tt.name, groups[0].title, tt.first, diff)
		}
	}
}

// Up to eight lines share a plot; nine do not.
func TestPanelsOfManySeries(t *testing.T) {
	for batches, want := range map[int]int{8: 1, 9: 2} {
		s := studies["six"]
		s.batches, s.targets = nil, nil
		for b := range batches {
			s.batches = append(s.batches, 1<<b)
		}
		if f := s.draw(t, "throughput", Options{}); len(f.panels) != want {
			t.Errorf("%d series: %d panels, want %d", batches, len(f.panels), want)
		}
	}
}

// The requested target replaces the hardest one; throughput stays.
func TestSpeedupToTarget(t *testing.T) {
	s := studies["uneven"]
	labels := func(kind string, o Options) []string {
		var list []string
		for _, m := range s.draw(t, kind, o).Marks() {
			if m.Kind == Label && m.Series != "" {
				list = append(list, m.Text)
			}
		}
		return list
	}
	easy, hard, unknown := measure.Target{Of: measure.OfAccuracy, Value: 0.5, Better: measure.Higher}, measure.Target{Of: measure.OfAccuracy, Value: 0.7, Better: measure.Higher}, measure.Target{Of: measure.OfAccuracy, Value: 0.99, Better: measure.Higher}
	for _, tt := range []struct {
		kind string
		goal *measure.Target
		want []string
	}{
		{"speedup", nil, []string{"throughput", "time to 0.7"}},
		{"speedup", &easy, []string{"throughput", "time to 0.5"}},
		{"speedup", &hard, []string{"throughput", "time to 0.7"}},
		{"efficiency", nil, []string{"native"}},
		{"efficiency", &easy, []string{"throughput", "time to 0.5"}},
	} {
		if diff := cmp.Diff(tt.want, labels(tt.kind, Options{Goal: tt.goal})); diff != "" {
			t.Errorf("%s to %v (-want +got):\n%s", tt.kind, tt.goal, diff)
		}
	}
	obs := s.observations()
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"speedup":    "speedup figure: no series has a base that reached the target 0.99; reached: 0.5, 0.7",
		"throughput": "throughput figure: it shows no single target; leave the target out",
	} {
		if _, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{Goal: &unknown}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A caption never states both that a count has a bar and that it lacks one, or two reasons for the
// same count.
func TestBarsDoNotContradict(t *testing.T) {
	few := func(n int) string { return fmt.Sprintf("too few runs for an interval (%d of 6 needed)", n) }
	in := &scaling.Interval{Low: 1, High: 2, Level: 0.95}
	for _, tt := range []struct {
		name string
		list []estimate
		want []string
	}{
		{"one reason", []estimate{{workers: 1, why: few(2)}, {workers: 2, why: few(2)}}, []string{"No bar: too few runs for an interval (2 of 6 needed)."}},
		{"apart", []estimate{{workers: 1, why: few(2)}, {workers: 2, why: few(1)}},
			[]string{"No bar at 1 worker: too few runs for an interval (2 of 6 needed).", "No bar at 2 workers: too few runs for an interval (1 of 6 needed)."}},
		{"both at 2", []estimate{{workers: 2, why: few(1)}, {workers: 2, why: few(3)}, {workers: 4, why: few(3)}},
			[]string{"No bar: too few runs for an interval (1 to 3 of 6 needed)."}},
		{"unlike reasons at 2", []estimate{{workers: 2, why: few(3)}, {workers: 2, why: "half missed"}, {workers: 8, why: "none"}},
			[]string{"No bar at 8 workers: none.", "No bar at some points: too few runs for an interval (3 of 6 needed); half missed."}},
		{"a bar on another line", []estimate{{workers: 2, why: few(3)}, {workers: 2, interval: in}, {workers: 4, why: few(3)}},
			[]string{"Bars: 95 % k.", "No bar at some points: too few runs for an interval (3 of 6 needed)."}},
	} {
		for i := range tt.list {
			tt.list[i].worker = "worker"
		}
		if diff := cmp.Diff(tt.want, bars(tt.list, "k")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
