package scaling

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
)

// train returns a training run with this number of workers and throughput; 0: no steady state.
func train(workers, repeat int, throughput float64) Observation {
	o := Observation{Run: fmt.Sprintf("s/w%d-r%d", workers, repeat), Study: "s", Point: fmt.Sprint("w", workers), Repeat: repeat, Kind: "train", Framework: "native", Workers: workers,
		Parameters: map[string]any{"workload.kind": "train", "workload.batch": int64(32), "workload.scaling": "weak"}, Values: map[string]float64{"step_p95": 0.5}}
	if throughput > 0 {
		o.Values["throughput"] = throughput
	}
	return o
}

// served returns a run with a response time at each of two loads.
func served(workers int) Observation {
	var places measure.Places
	for load, seconds := range map[float64]float64{10: 0.1, 20: 0.4} {
		places.Add(map[string]any{"load": load}, "answer", seconds/float64(workers))
	}
	return Observation{Run: fmt.Sprint("v/", workers), Study: "v", Point: fmt.Sprint(workers), Kind: "serving", Framework: "native", Workers: workers, Places: places.List(),
		Parameters: map[string]any{"workload.kind": "serving", "workers": int64(workers)}}
}

// serving registers, for one test, a kind of workload whose measures have a coordinate.
func serving(t *testing.T) {
	t.Cleanup(measure.Declare("serving", measure.Measure{Name: "answer", Title: "answer", Unit: "s", Better: measure.Lower, Show: measure.Seconds, At: "load", Axis: "load"}))
}

// A plot of a service has the load coordinate with the most values as its axis if all runs have the
// same number of replicas. Otherwise, and in tables, the axis is the number of replicas.
func TestPictureAlongTheLoad(t *testing.T) {
	var one, two []Observation
	for i := range 12 {
		var places measure.Places
		for _, threads := range []float64{1, 2, 4} {
			places.Add(map[string]any{"batch": 1.0, "threads": threads}, measure.RequestsPerSecond, 100*threads+float64(i))
		}
		for _, rate := range []float64{50, 100} {
			places.Add(map[string]any{"batch": 1.0, "rate": rate}, measure.RequestsPerSecond, rate)
		}
		o := Observation{Run: fmt.Sprint("v/", i), Study: "v", Point: "p", Repeat: i, Kind: "serve", Framework: "native", Workers: 1, Places: places.List(),
			Parameters: map[string]any{"workload.kind": "serve", "workers": int64(1)}}
		one = append(one, o)
		o.Workers, o.Parameters = 1+i%2, map[string]any{"workload.kind": "serve", "workers": int64(1 + i%2)}
		o.Point = fmt.Sprint("p", o.Workers)
		two = append(two, o)
	}
	for name, c := range map[string]struct {
		list []Observation
		q    Question
		want string
	}{
		"a picture":           {one, Question{Picture: true}, "threads"},
		"of one measure":      {one, Question{Picture: true, Measure: measure.RequestsPerSecond}, "threads"},
		"along another":       {one, Question{Picture: true, Axis: "rate"}, "rate"},
		"of several replicas": {two, Question{Picture: true}, "workers"},
		"of nothing else":     {one, Question{Picture: true, Measure: measure.RateWithinLimit}, "workers"},
		"a table":             {one, Question{}, "workers"},
	} {
		a, err := Ask(c.list, nil, c.q)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := cmp.Or(a.Axis, "workers"); got != c.want {
			t.Errorf("%s: along %s, want %s", name, got, c.want)
		}
	}
}

// The kind is "train" if any run is a training, even one without a steady state.
func TestKind(t *testing.T) {
	for name, c := range map[string]struct {
		list []Observation
		want string
	}{
		"nothing":                    {nil, "train"},
		"a training":                 {[]Observation{train(1, 1, 5)}, "train"},
		"one without a steady state": {[]Observation{train(1, 1, 0)}, "train"},
		"an import that says none":   {[]Observation{{Values: map[string]float64{"throughput": 1}}}, "train"},
		"a benchmark":                {[]Observation{{Kind: "collective"}}, "collective"},
		"two kinds":                  {[]Observation{{Kind: "serving"}, {Kind: "collective"}}, "collective"},
		"a benchmark and a training": {[]Observation{{Kind: "collective"}, train(1, 1, 0)}, "train"},
	} {
		if got := KindAsked(c.list).Name; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A run with several values is a curve over their coordinate. Over workers, there is a curve for
// each value of the coordinate. Here 20 requests/s take four times as long as 10, and two workers
// half as long as one.
func TestPlaces(t *testing.T) {
	serving(t)
	obs := []Observation{served(1), served(2)}
	show := func(a *Answer) string {
		var lines []string
		for _, c := range a.Curves {
			for _, p := range c.Points {
				s := p.Of("answer")
				lines = append(lines, fmt.Sprintf("%s|%s|%g|%g", c.Series, p.At, s.Median.Value, s.Gain().Value))
			}
		}
		return strings.Join(lines, "\n")
	}
	for name, c := range map[string]struct {
		q    Question
		want string
	}{
		"without a measure": {Question{}, "native workers=1|10|0.1|1\nnative workers=1|20|0.4|0.25\nnative workers=2|10|0.05|1\nnative workers=2|20|0.2|0.25"},
		"over workers":      {Question{Measure: "answer", Axis: "workers"}, "native load=10|1|0.1|1\nnative load=10|2|0.05|2\nnative load=20|1|0.4|1\nnative load=20|2|0.2|2"},
		"at a place":        {Question{Axis: "workers", At: []Condition{{Key: "load", Value: "20"}}}, "native|1|0.4|1\nnative|2|0.2|2"},
		"over a baseline":   {Question{Baseline: []Condition{{Key: "workers", Value: "1"}}}, "native workers=1|10|0.1|1\nnative workers=1|20|0.4|1\nnative workers=2|10|0.05|2\nnative workers=2|20|0.2|2"},
	} {
		a, err := Ask(obs, nil, c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := show(a); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	// A planned point without runs is reported as missing in every curve over workers.
	planned := []Planned{{Point: "0", Framework: "native", Workers: 1, Parameters: obs[0].Parameters}}
	a, err := Ask(obs[1:], planned, Question{Axis: "workers"})
	if err != nil || a.NoBase == nil || len(a.NoBase.Missing) != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	for part, q := range map[string]Question{"at": {At: []Condition{{Key: "load", Value: "30"}}}, "axis": {Axis: "lod"}, "series": {Series: []string{"mpi"}},
		"baseline": {Baseline: []Condition{{Key: "workers", Value: "9"}}}} {
		var wrong *QuestionError
		if _, err := Ask(obs, nil, q); !errors.As(err, &wrong) || wrong.Part != part {
			t.Errorf("%s: %v", part, err)
		}
	}
	_, err = Ask(obs, nil, Question{At: []Condition{{Key: "load", Value: "30"}}})
	if err == nil || !strings.Contains(err.Error(), "valid: 10, 20") {
		t.Errorf("%v says not what places there are", err)
	}
}

// Runs of other kinds are left out of answers about trainings, with a warning. A measure that is
// requested by name uses all runs.
func TestMixedKinds(t *testing.T) {
	serving(t)
	obs := []Observation{train(1, 1, 100), served(2), train(2, 1, 200)}
	planned := []Planned{{Point: "2", Framework: "native", Workers: 2, Parameters: obs[1].Parameters}}
	a, err := Ask(obs, planned, Question{})
	if err != nil || a.Kind.Name != "train" || len(a.Curves) != 1 || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], `1 run of kind "serving" left out`) {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = Ask(obs, nil, Question{Measure: "answer"}); err != nil || len(a.Curves) != 1 || len(a.Curves[0].Points) != 2 {
		t.Errorf("%+v, %v", a, err)
	}
}

// Warnings concern only the requested measure, not a throughput that is not shown.
func TestWarningsOfTheMeasure(t *testing.T) {
	obs := []Observation{train(1, 1, 100), train(1, 2, 0), train(2, 1, 0)}
	obs[0].Values["to_0.5"], obs[1].Values["to_0.5"] = 1, 2
	text := func(measure string) string {
		a, err := Ask(obs, nil, Question{Measure: measure})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(remarks(a.Curves), "\n")
	}
	steady := []string{"no steady state", "no run with a steady state"}
	for _, name := range []string{"", "throughput"} {
		for _, want := range steady {
			if got := text(name); !strings.Contains(got, want) {
				t.Errorf("%q: %s lacks %q", name, got, want)
			}
		}
	}
	for _, name := range []string{"step_p95", "to_0.5"} {
		for _, never := range steady {
			if got := text(name); strings.Contains(got, never) {
				t.Errorf("%q: %s", name, got)
			}
		}
	}
	if got := text("to_0.5"); !strings.Contains(got, "no run that has to_0.5 at worker count 2") {
		t.Errorf("the measure's own doubts: %s", got)
	}
	if got := text("step_p95"); strings.Contains(got, "to_0.5") {
		t.Errorf("of another measure: %s", got)
	}
	// A plot of times to targets shows nothing else.
	a, err := Ask(obs, nil, Question{Shown: func(m measure.Measure) bool { return m.Missable }})
	if err != nil && a.NoBase == nil {
		t.Fatal(err)
	}
	if list := remarks(a.Curves); list != nil {
		t.Errorf("about what is not shown: %q", list)
	}
	obs[1].Values["to_0.5"] = math.Inf(1)
	if a, err = Ask(obs, nil, Question{Shown: func(m measure.Measure) bool { return m.Missable }}); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff("1 worker: target 0.5: reached by 1 of 2 runs", strings.Join(remarks(a.Curves), "\n")); diff != "" {
		t.Error(diff)
	}
}

// A reported value can be requested by its name, even if the kind of workload has a measure with
// coordinates of the same name.
func TestReported(t *testing.T) {
	serving(t)
	o := train(1, 1, 5)
	o.Values["answer"], o.Reported = 42, []measure.Measure{measure.Reported("answer", "", measure.Higher)}
	a, err := Ask([]Observation{o}, nil, Question{Measure: "answer"})
	if err != nil || a.Curves[0].Points[0].Of("answer").Median.Value != 42 {
		t.Errorf("%+v, %v", a, err)
	}
	var unknown *UnknownMeasure
	if _, err := Ask([]Observation{o}, nil, Question{Measure: "answr"}); !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "answer") || !slices.Contains(unknown.Known, "step_p95") {
		t.Errorf("%v", err)
	}
}

// The workers of a service can be called replicas, unless a parameter has that name.
func TestReplicas(t *testing.T) {
	runs := []Observation{{Parameters: map[string]any{"workload.kind": "serve"}}}
	if key, err := KeyNamed("replicas", runs, nil, measure.Measure{}); err != nil || key != Workers {
		t.Error(key, err)
	}
	runs[0].Parameters["env.replicas"] = int64(2)
	if key, err := KeyNamed("replicas", runs, nil, measure.Measure{}); err != nil || key != "env.replicas" {
		t.Error(key, err)
	}
}

// remarks returns the remarks on the curves, one line per kind.
func remarks(curves []Curve) []string { return Lines(Remarks(curves), len(curves)) }

// The only figure of the user's own with a direction stands in for a throughput; several, or a target, leave the
// choice to the user.
func TestOwnFigure(t *testing.T) {
	rate, wall := measure.Reported("pi_rate", "", measure.Higher), measure.Reported("wall", "s", measure.Lower)
	size, tokens := measure.Reported("size", "B", measure.Neither), measure.Reported(measure.TokensPerSecond, "tokens/s", measure.Higher)
	for name, c := range map[string]struct {
		reported []measure.Measure
		values   map[string]float64
		want     string
	}{
		"one":          {[]measure.Measure{size, rate}, map[string]float64{"size": 1, "pi_rate": 2}, "pi_rate"},
		"two":          {[]measure.Measure{rate, wall}, map[string]float64{"wall": 1, "pi_rate": 2}, ""},
		"no direction": {[]measure.Measure{size}, map[string]float64{"size": 1}, ""},
		"tokens":       {[]measure.Measure{tokens}, map[string]float64{measure.TokensPerSecond: 1}, measure.TokensPerSecond},
		"a throughput": {[]measure.Measure{rate}, map[string]float64{"pi_rate": 2, measure.Throughput: 3}, ""},
		"a target":     {[]measure.Measure{rate}, map[string]float64{"pi_rate": 2, "to_0.75": 3}, ""},
	} {
		got := ""
		if m := ownFigure([]Observation{{}, {Reported: c.reported, Values: c.values}}); m != nil {
			got = m.Name
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
