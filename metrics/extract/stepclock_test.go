package extract

import (
	"math"
	"strings"
	"testing"
)

// Steps at the times of day 100, 110, 120 and 140 s take 1, 1 and 2 s each, so the first line
// of 10 steps began at 90 s.
func TestStepClock(t *testing.T) {
	type logged struct {
		step int
		at   float64
	}
	for _, c := range []struct {
		name   string
		lines  []logged
		median float64
		want   float64 // time of the last line
		why    string
	}{
		{"times of day", []logged{{10, 100}, {20, 110}, {30, 120}, {40, 140}}, 0, 50, ""},
		{"from step 0", []logged{{0, 100}, {10, 110}, {20, 120}}, 0, 20, ""},
		{"from step 1", []logged{{1, 100}, {2, 110}, {3, 120}}, 5, 30, ""},
		{"uneven steps", []logged{{10, 100}, {20, 110}, {25, 120}, {35, 130}}, 0, 40, ""}, // 1, 2 and 1 s a step
		{"step times", []logged{{10, 0}, {20, 0}}, 0.5, 10, ""},
		{"step times, from 0", []logged{{0, 0}, {10, 0}}, 0.5, 5.5, ""},
		{"neither", []logged{{10, 0}, {20, 0}}, 0, 0, "it has neither times of day nor step times"},
		{"one step", []logged{{10, 100}}, 0.5, 0, "it has the line of one step only, and the time of a step needs two"},
		{"a late begin", []logged{{11, 100}, {21, 110}}, 0.5, 0, "it begins at step 11"},
		{"as late as the spacing", []logged{{10, 100}, {20, 110}}, 0.5, 20, ""},
		{"back to a checkpoint", []logged{{10, 100}, {20, 110}, {20, 120}}, 0.5, 0, "it goes back to a checkpoint"},
		{"times go back", []logged{{10, 100}, {20, 99}}, 0.5, 0, "its times of day go back, or some lines have none"},
		{"the same time", []logged{{10, 100}, {20, 100}, {30, 101}}, 0, 1.5, ""}, // 0 and 0.1 s: 0.05 s a step
		{"a line without a time", []logged{{10, 100}, {20, 0}}, 0.5, 0, "some lines have none"},
		{"a line with one", []logged{{10, 0}, {20, 100}}, 0.5, 0, "some lines have none"},
	} {
		var clock stepClock
		for _, l := range c.lines {
			clock.step(l.step, l.at)
		}
		of, how, why := clock.seconds(c.median)
		last := c.lines[len(c.lines)-1]
		switch {
		case c.why != "":
			if of != nil || !strings.Contains(why, c.why) {
				t.Errorf("%s: %q, want %q", c.name, why, c.why)
			}
		case of == nil || math.Abs(of(float64(last.step), last.at)-c.want) > 1e-9 || (strings.HasPrefix(how, "the times of day")) != (last.at > 0):
			t.Errorf("%s: %q, %q; want %g s", c.name, how, why, c.want)
		}
	}
	for text, want := range map[string]float64{
		"2023-11-14 22:13:20,500 step 1": 1.7e9 + 0.5, "[2023-11-14T22:13:20.25] x": 1.7e9 + 0.25, "2023-11-14 22:13:20": 1.7e9, "22:13:20": 0, "2023-13-14 22:13:20": 0,
	} {
		if got := (line{text: text}).time(); math.Abs(got-want) > 1e-6 {
			t.Errorf("%q: %f, want %f", text, got, want)
		}
		if got := (line{stamp: text, text: "step 1"}).time(); math.Abs(got-want) > 1e-6 {
			t.Errorf("collector's %q: %f, want %f", text, got, want)
		}
	}
	if got := (line{text: "2023-11-14 22:13:20", stamp: "2020-01-01 00:00:00"}).time(); got != 1.7e9 {
		t.Errorf("the program's time comes first: %f", got)
	}
}

// Counts of one of 4 ranks: 100 samples after 10 s, 400 after 30 s. That is 15/s of it
// between them, and 40/3 from the start.
func TestOwnOf(t *testing.T) {
	for _, c := range []struct {
		name    string
		counted []ownCount
		want    ownRate
	}{
		{"two counts", []ownCount{{100, 10}, {400, 30}}, ownRate{training: 60, whole: 160. / 3}},
		{"of three, the first and the last", []ownCount{{100, 10}, {150, 11}, {400, 30}}, ownRate{training: 60, whole: 160. / 3}},
		{"one count", []ownCount{{100, 10}}, ownRate{training: 40, whole: 40}},
		{"no further samples", []ownCount{{100, 10}, {100, 20}}, ownRate{training: 20, whole: 20}},
		{"no further time", []ownCount{{100, 10}, {200, 10}}, ownRate{training: 80, whole: 80}},
		{"no time at all", []ownCount{{100, 0}}, ownRate{}},
		{"no samples", []ownCount{{0, 10}}, ownRate{}},
		{"nothing", nil, ownRate{}},
	} {
		got := ownOf(c.counted, 4)
		if math.Abs(got.training-c.want.training) > 1e-9 || math.Abs(got.whole-c.want.whole) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for ratio, want := range map[float64]bool{1: true, 1.33: true, 1.34: false, 0.751: true, 0.749: false, 0: false, 2: false} {
		if near(ratio) != want {
			t.Errorf("%g times is near: %v", ratio, !want)
		}
	}
}

// A run without a figure for curves gives the reasons, contradictions first.
func TestCurveless(t *testing.T) {
	with := func(kind string, notes []string, names ...string) *Content {
		l := newLog(Options{})
		for _, name := range names {
			l.figure(name, "", nil, Value{Number: 1}, "")
		}
		l.res.Kind, l.res.Notes = kind, notes
		l.res.findings.arrange()
		return &l.res
	}
	failed := with("train", nil, "throughput")
	failed.Failed = "LoadGen calls the result INVALID"
	for _, c := range []struct {
		name string
		r    *Content
		want string
	}{
		{"it failed", failed, "the run failed, so curves leave it out: LoadGen calls the result INVALID"},
		{"a rate", with("train", nil, "loss", "throughput"), ""},
		{"no rate", with("train", nil, "loss"), "it has no throughput or "},
		{"no note", with("train", nil, "loss"), ": it states none"},
		{"notes", with("train", []string{"a", "b", "figures named stated_… are left out", "no rate is taken: x"}, "loss"), ": figures named stated_… are left out; no rate is taken: x"},
		{"one contradiction", with("train", []string{"a", "b", "no rate is taken: x"}, "loss"), ": no rate is taken: x; a"},
	} {
		if got := c.r.Curveless(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
