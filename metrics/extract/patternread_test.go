package extract

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// The text next to a number gives its unit. Values by hand.
func TestPatternUnits(t *testing.T) {
	type pattern = Pattern
	rate := pattern{Name: "tokens_per_second", Pattern: `speed: (?P<value>[\d.,]+)`, Unit: "tokens/s"}
	seconds := pattern{Name: "wait", Pattern: `took (?P<value>[\d.]+)`, Unit: "s"}
	steps := pattern{Name: "throughput", Pattern: `, (?P<value>[\d.]+) ?(?P<unit>\S+/\S+)`, Unit: "it/s"}
	with := func(p pattern, text string) pattern { p.Pattern = text; return p }
	in := func(p pattern, unit string) pattern { p.Unit = unit; return p }
	for _, c := range []struct {
		p      pattern
		line   string
		want   float64
		refuse string
	}{
		{rate, "speed: 512", 512, ""},
		{rate, "speed: 512K", 512_000, ""},
		{rate, "speed: 1.25M lr: 2", 1_250_000, ""},
		{rate, "speed: 12.3k tok/s", 12_300, ""},
		{rate, "speed: 12.5 ktok/s", 12_500, ""},
		{rate, "speed: 4,321.5 tokens/s", 4321.5, ""},
		{rate, "speed: 1,234 tokens/s", 1234, ""},
		{rate, "speed: 1,5 tokens/s", 0, "not a finite number"},
		{rate, "speed: 3.1M/s", 3_100_000, ""},
		{rate, "speed: 120 tokens/min", 2, ""},
		{rate, "speed: 90 tokens per second", 90, ""},
		{rate, "speed: 90 tokens, loss 3", 90, ""},
		{rate, "speed: 90 Ktokens", 90_000, ""},
		{rate, "speed: 90 img/s", 0, `in img/s, but its unit is given as "tokens/s": write unit = "img/s"`},
		{rate, "speed: 90ms", 0, "in ms"},
		{rate, "speed: 90xy", 0, "is not a known unit"},
		{rate, "speed: 15K tokens/s/GPU", 0, `for each device (K tokens/s/GPU); set of = "rank"`},
		{with(rate, `per_gpu: (?P<value>[\d.]+)`), "tokens_per_sec_per_gpu: 15.5K", 0, `set of = "rank"`},
		{with(rate, `speed: (?P<value>\S+)`), "speed: 2.5K, loss: 3", 2500, ""},
		{with(rate, `speed: (?P<value>\S+)`), "speed: 1.2e+06 x", 1.2e6, ""},
		{in(rate, "ktok/s"), "speed: 12.5", 12_500, ""},
		{in(rate, "ktok/s"), "speed: 12.5K", 12_500, ""},
		{with(rate, `speed (?P<value>\d+).*tok`), "speed 12.5 tok/s", 0, "only part of a number"},
		{with(rate, `speed (?P<value>\d+).*tok`), "speed 1,234.5 tok/s", 0, "only part of a number"},
		{seconds, "took 250 ms", 0.25, ""},
		{seconds, "took 250us", 0.00025, ""},
		{seconds, "took 250 µs", 0.00025, ""},
		{seconds, "took 250", 250, ""},
		{seconds, "took 2 min", 120, ""},
		{seconds, "took 2 min 1 max 3", 2, ""}, // min and max are names of figures here
		{seconds, "took 0:01:02.5", 62.5, ""},
		{seconds, "took 03:25<12:00, 2.31s/it", 205, ""},
		{seconds, "took 1 day, 1:00:05", 90005, ""},
		{seconds, "took 4m05s", 245, ""},
		{seconds, "took 5 GiB", 0, "in GiB"},
		{with(seconds, `took \d+:(?P<value>\d+)`), "took 3:25", 0, "only part of a number"},
		{with(seconds, `time_ms=(?P<value>\d+)`), "time_ms=12", 0.012, ""},
		{with(in(seconds, "ms"), `time_ms=(?P<value>\d+)`), "time_ms=12", 0.012, ""},
		{with(in(seconds, "ms"), `time_ms: (?P<value>[\d.]+)`), "time_ms: 4.5K", 4.5, ""},
		{with(seconds, `time \(ms\): (?P<value>\d+)`), "time (ms): 12", 0.012, ""},
		{with(seconds, `time (?P<value>\d+) (?P<unit>)`), "time 12 ms", 12, ""}, // the empty group means no unit
		{with(in(seconds, "B"), `mem: (?P<value>[\d.]+)`), "mem: 2.5 GiB(41%)", 2_684_354_560, ""},
		{with(in(seconds, "GiB"), `mem: (?P<value>[\d.]+)`), "mem: 2.5GB", 2_684_354_560, ""}, // a GB is 1024³ bytes if the user's unit is GiB
		{with(in(seconds, "%"), `util (?P<value>[\d.]+)`), "util 98%", 0.98, ""},
		{with(in(seconds, ""), `wait (?P<value>[\d.]+)`), "wait 250ms", 0.25, ""},
		{with(in(seconds, ""), `wait (?P<value>[\d.]+)`), "wait 2.5K", 2500, ""},
		{with(in(seconds, ""), `util (?P<value>[\d.]+)`), "util 98%", 0.98, ""},
		{with(in(seconds, "widgets"), `made (?P<value>[\d.]+)`), "made 12 widgets", 12, ""},
		{with(in(seconds, "widgets"), `made (?P<value>[\d.]+) (?P<unit>\S+)`), "made 12 widgets", 12, ""},
		{with(in(seconds, "widgets"), `made (?P<value>[\d.]+) (?P<unit>\S+)`), "made 12 gadgets", 0, "which is not a known unit"},
		{with(in(seconds, "widgets"), `made (?P<value>[\d.]+)`), "made 12K", 12_000, ""},
		{with(in(seconds, "widgets"), `made (?P<value>[\d.]+)`), "made 12ms", 0, "which is unknown"},
		{steps, "9/10, 4 it/s", 32, ""}, // 8 samples a step
		{steps, "9/10, 4s/it]", 2, ""},
		{steps, "9/10, 500ms/step", 16, ""},
		{steps, "9/10, 4 img/s", 0, `write unit = "img/s"`},
		{steps, "9/10, 4 it/fortnight", 0, "is not a known unit"},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Errorf("%+v: %v", c.p, err)
			continue
		}
		r, err := e.Extract(strings.NewReader(c.line+"\n"), Options{File: "log", Workers: 1, WorkerBatch: 8})
		switch {
		case c.refuse != "":
			if err == nil || !strings.Contains(err.Error(), "log:1: ") || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%s in %s of %q: %+v, %v; want %q", c.p.Pattern, c.p.Unit, c.line, slices.Collect(r.Findings()), err, c.refuse)
			}
		case err != nil:
			t.Errorf("%s in %s of %q: %v; want %g", c.p.Pattern, c.p.Unit, c.line, err, c.want)
		default:
			if got := slices.Collect(r.Findings())[0].Event.Figure.Value; math.Abs(got-c.want) > 1e-12*c.want {
				t.Errorf("%s in %s of %q: %v; want %g", c.p.Pattern, c.p.Unit, c.line, got, c.want)
			}
		}
	}
}

// A progress bar switches from s/it to it/s as steps get faster. The median of 2, 0.5, 0.5,
// 0.5 and 0.5 s is 0.5 s; 16 samples in it are 32/s.
func TestPatternOtherUnit(t *testing.T) {
	bar := "  0%|    | 0/50 [00:00<?, ?it/s]\r 20%|##  | 10/50 [00:20<01:20, 2.00s/it]\r 40%|#   | 20/50 [00:30<00:15, 2.00it/s]\r 60%|    | 30/50 [00:35<00:10, 2.00it/s]\r 80%|    | 40/50 [00:40<00:05, 2.00it/s]\r\x1b[32m100%|    | 50/50 [01:00:45<00:00, 2.00it/s]\x1b[0m\n"
	for _, unit := range []string{"s/it", "it/s"} {
		p := Pattern{Name: "throughput", Pattern: `, +(?P<value>[\d.]+) ?` + unit, Unit: unit, Per: "step"}
		e, err := Patterns([]Pattern{p})
		if err != nil {
			t.Fatal(err)
		}
		lines, notes := found(t, e, bar, Options{Workers: 2, WorkerBatch: 8})
		if len(lines) != 1 || lines[0] != "1 throughput 32 samples/s median of 5" || !strings.Contains(notes, "of 5 lines have throughput in ") {
			t.Errorf("%s: %q, %s", unit, lines, notes)
		}
	}
	// A number in another place does not belong to the series.
	p := Pattern{Name: "wait", Pattern: `(?P<value>[\d.]+) ms`, Unit: "ms"}
	p.Reduce = "sum"
	e, err := Patterns([]Pattern{p})
	if err != nil {
		t.Fatal(err)
	}
	if lines, _ := found(t, e, "wait 12 ms\ntraining took 3 min\nwait 13 ms\n", Options{}); len(lines) != 1 || lines[0] != "3 wait 0.025 s sum of 2" {
		t.Error(lines)
	}
}

// The first values of a progress bar include compilation. The median of 10, 20, 30, 40, 40,
// 40, 40 and 40 is 40. Of 10, 20, 30, 35, 38, 40, 40, 40, with median 36.5, the first 5 are
// left out.
func TestPatternSettles(t *testing.T) {
	read := func(values string) string {
		e, err := Patterns([]Pattern{{Name: "throughput", Pattern: `^rate (?P<value>[\d.]+)$`, Unit: "img/s", Per: "step"}})
		if err != nil {
			t.Fatal(err)
		}
		_, notes := found(t, e, "rate "+strings.ReplaceAll(values, " ", "\nrate ")+"\n", Options{Workers: 1})
		return notes
	}
	const says = "the first 5 of 8 values of throughput are left out"
	for values, want := range map[string]bool{"10 20 30 35 38 40 40 40": true, "10 20 30 40 40 40 40 40": false, "39 41 40 42 44 40 43 45": false} {
		if notes := read(values); strings.Contains(notes, says) != want || !want && strings.Contains(notes, "settled") {
			t.Errorf("%s: %s", values, notes)
		}
	}
}

// Ranks that print different values do not state a value of the run.
func TestPatternCopies(t *testing.T) {
	for _, c := range []struct{ unit, of, text, want string }{
		{"img/s", "", "0: v 5\n1: v 5.1\n", `write of = "rank" to add them up, or of = "run" if each is of all workers`},
		{"img/s", "", "0: v 5\n1: v 9\n", `different values of f (5 on rank 0, 9 on rank 1), so none is the run's: write of = "rank"`},
		{"img/s", "run", "0: v 5\n1: v 9\n", `write of = "rank" to add them up`},
		{"img/s", "run", "0: v 5\n1: v 5.1\n", ""},
		{"img/s", "", "0: v 5\n1: v 5\n", ""},
		{"img/s", "rank", "0: v 5\n1: v 9\n", ""},
		{"s", "", "0: v 5\n1: v 5.1\n", ""},
		{"s", "", "0: v 5\n1: v 7\n", "log it on one rank"},
		{"", "", "0: v 0.005\n1: v 0.02\n", ""},
		{"", "", "0: v 0.01\n1: v 0.031\n", "log it on one rank"},
	} {
		e, err := Patterns([]Pattern{{Name: "f", Pattern: `^v (?P<value>[\d.]+)$`, Unit: c.unit, Of: c.of}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Extract(strings.NewReader(c.text), Options{File: "log", Workers: 2})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
