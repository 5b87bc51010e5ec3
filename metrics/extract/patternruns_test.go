package extract

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Accuracies of epochs, with their numbers and times.
func TestPatternAccuraciesOfEpochs(t *testing.T) {
	plain := Pattern{Name: "accuracy", Pattern: `acc (?P<value>[\d.]+)`, Per: "epoch"}
	epochs := Pattern{Name: "accuracy", Pattern: `epoch (?P<epoch>[-\d.]+) (?:at (?P<elapsed>[\d.:]+) )?acc (?P<value>[\d.]+)`, Per: "epoch"}
	percent := plain
	percent.Unit = "%"
	for _, c := range []struct {
		name string
		p    Pattern
		text string
		want []string
		why  string
	}{
		{"numbered from 1", plain, "acc 0.5\nacc 0.75\n", []string{"1 accuracy 0.5 at 0 epoch 1", "2 accuracy 0.75 at 0 epoch 2"}, ""},
		{"percent", percent, "acc 50\nacc 75\n", []string{"1 accuracy 0.5 at 0 epoch 1", "2 accuracy 0.75 at 0 epoch 2"}, ""},
		{"percent without its unit", plain, "acc 50\n", nil, `; for percent set unit = "%"`},
		{"100 percent without its unit", plain, "acc 100\n", nil, `; for percent set unit = "%"`},
		{"more than 100", plain, "acc 101\n", nil, "log:1: accuracy 101"},
		{"the log's epochs", epochs, "epoch 3 acc 0.5\nepoch 5 acc 0.75\n", []string{"1 accuracy 0.5 at 0 epoch 3", "2 accuracy 0.75 at 0 epoch 5"}, ""},
		{"epoch 0 is the first", epochs, "epoch 0 acc 0.5\n", []string{"1 accuracy 0.5 at 0 epoch 0"}, ""},
		{"half an epoch", epochs, "epoch 0.5 acc 0.5\n", nil, "log:1: epoch 0.5; want a whole number"},
		{"a negative epoch", epochs, "epoch -1 acc 0.5\n", nil, "log:1: epoch -1; want a whole number"},
		{"an epoch beyond 1e9", epochs, "epoch 1000000001 acc 0.5\n", nil, "want a whole number"},
		{"times", epochs, "epoch 1 at 10 acc 0.5\nepoch 2 at 10 acc 0.75\nepoch 3 at 1:02:03 acc 0.8\n", []string{"train at 0", "1 accuracy 0.5 at 10 epoch 1", "2 accuracy 0.75 at 10 epoch 2", "3 accuracy 0.8 at 3723 epoch 3"}, ""},
		{"times go back", epochs, "epoch 1 at 10 acc 0.5\nepoch 2 at 9 acc 0.75\n", nil, "log:2: elapsed goes back from 10 s to 9 s"},
		{"a time is missing", epochs, "epoch 1 at 10 acc 0.5\nepoch 2 acc 0.75\n", nil, "log:2: no elapsed here, but one on line 1; every accuracy needs one, or none"},
		{"the first time is missing", epochs, "epoch 1 acc 0.5\nepoch 2 at 10 acc 0.75\n", nil, "log:1: no elapsed here, but one on line 2; every accuracy needs one, or none"},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.text), Options{File: "log"})
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want %q", c.name, err, c.why)
			}
			continue
		}
		var got []string
		for f := range r.Findings() {
			got = append(got, strings.TrimPrefix(written(f), "0 "))
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// Figures per rank: those of all ranks are added up, that of a single rank is multiplied.
func TestPatternOfRanks(t *testing.T) {
	rate := Pattern{Name: "throughput", Pattern: `^r (?P<value>[\d.]+)$`, Unit: "img/s", Of: "rank", Per: "step"}
	steps := Pattern{Name: "throughput", Pattern: `^r (?P<value>[\d.]+)$`, Unit: "it/s", Of: "rank", Per: "step"}
	times := Pattern{Name: "throughput", Pattern: `^r (?P<value>[\d.]+)$`, Unit: "s/it", Of: "rank", Per: "step"}
	own := rate
	own.Name = "speed"
	of := func(p Pattern, of string) Pattern { p.Of = of; return p }
	for _, c := range []struct {
		name string
		p    Pattern
		text string
		o    Options
		want float64
		note string
		why  string
	}{
		{"all of 2", rate, "0: r 10\n1: r 30\n0: r 12\n1: r 50\n", Options{Workers: 2}, 11 + 40, "the sum over 2 ranks of each rank's median, as the log states them", ""},
		{"all of 2, in steps", steps, "0: r 10\n1: r 20\n", Options{Workers: 2, WorkerBatch: 8}, 240, "", ""},
		{"all of 2, in times", times, "0: r 0.5\n1: r 0.25\n", Options{Workers: 2, WorkerBatch: 8}, 48, "", ""},
		{"one of 4", rate, "r 10\nr 12\nr 50\n", Options{Workers: 4}, 48, "one rank's times 4, not a measured aggregate; the median of 3 values in the log, one per step", ""},
		{"one of 4, in steps", steps, "r 2\n", Options{Workers: 4, WorkerBatch: 8}, 64, "as the log states it", ""},
		{"one of 4, in times", times, "r 0.5\n", Options{Workers: 4, WorkerBatch: 8}, 64, "", ""},
		{"of 4 that share batches in pairs", steps, "r 2\n", Options{Workers: 4, WorkerBatch: 8, Sharing: 2}, 32, "", ""},
		{"all, in steps", of(steps, "run"), "r 2\n", Options{Workers: 4, WorkerBatch: 8}, 64, "", ""},
		{"all, in times", of(times, "run"), "r 0.5\n", Options{Workers: 4, WorkerBatch: 8}, 64, "", ""},
		{"of one", rate, "r 10\n", Options{Workers: 1}, 10, "as the log states it", ""},
		{"of one, with its rank", rate, "0: r 10\n", Options{Workers: 1}, 10, "as the log states it", ""},
		{"all, with its note", of(rate, "run"), "r 10\n", Options{}, 10, "as the log states it, for all workers together", ""},
		{"another name", own, "r 10\n", Options{Workers: 4}, 40, "speed: one rank's times 4, not a measured aggregate", ""},
		{"2 of 3", rate, "0: r 10\n1: r 30\n", Options{Workers: 3}, 0, "", "log: throughput is one rank's, but the log has it for 2 ranks and the run has 3 workers; log it on all ranks or on one"},
		{"2 with one unnamed", rate, "0: r 10\nr 30\n", Options{Workers: 2}, 0, "", "for 1 rank and for lines without a rank and the run has 2 workers"},
		{"workers not known", rate, "r 10\n", Options{}, 0, "", `log: throughput is one rank's; give the number of workers, or set of = "run"`},
		{"steps without a batch", steps, "r 2\n", Options{Workers: 4}, 0, "", "log: throughput is in it/s; for samples/s, give the number of workers and the batch of each"},
		{"steps without workers", of(steps, "run"), "r 2\n", Options{WorkerBatch: 4}, 0, "", "throughput is in it/s"},
		{"a rate of 0", of(rate, "run"), "r 0\n", Options{}, 0, "", "log:1: throughput is 0 samples/s; want more than 0"},
		{"a time of 0", of(times, "run"), "r 0\n", Options{Workers: 1, WorkerBatch: 1}, 0, "", "is not a finite number"},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		c.o.File = "log"
		r, err := e.Extract(strings.NewReader(c.text), c.o)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want %q", c.name, err, c.why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		f := slices.Collect(r.Findings())[0].Event.Figure
		if math.Abs(f.Value-c.want) > 1e-9*c.want || !strings.Contains(f.Note+"\n"+strings.Join(r.Notes, "\n"), c.note) {
			t.Errorf("%s: %g (%s; %q), want %g and %q", c.name, f.Value, f.Note, r.Notes, c.want, c.note)
		}
		if several := strings.Count(c.text, "\n") > 1; several != (f.Reduce != "") {
			t.Errorf("%s: reduced by %q", c.name, f.Reduce)
		}
	}
	// The rules for rates do not apply to a figure that counts something.
	e, err := Patterns([]Pattern{{Name: "queue", Pattern: `q (?P<value>\d+)`}, {Name: "accuracy", Pattern: `a (?P<value>[\d.]+)`}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := e.Extract(strings.NewReader("q 0\na 0.5\n"), Options{File: "log"}); err != nil || r.Found() != 2 {
		t.Errorf("%d findings, %v; want 2", r.Found(), err)
	}
	if _, err := e.Extract(strings.NewReader("q 0\na 1.5\n"), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), "log:2: accuracy 1.5; want a fraction from 0 to 1") {
		t.Error(err)
	}
	if _, err := e.Extract(strings.NewReader("q 0\n"), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), "log: nothing found by the pattern of accuracy: a (?P<value>") {
		t.Error(err)
	}
}

// Each case is an invalid pattern, or one that is just valid.
func TestPatternRules(t *testing.T) {
	ok := Pattern{Name: "f", Pattern: `(?P<value>\d+)`}
	for _, c := range []struct {
		name   string
		change func(p *Pattern)
		why    string
		batch  bool
	}{
		{"as it is", func(*Pattern) {}, "", false},
		{"no name", func(p *Pattern) { p.Name = "" }, "name is empty", false},
		{"the figure's group", func(p *Pattern) { p.Pattern = `(?P<f>\d+)` }, "", false},
		{"no group", func(p *Pattern) { p.Pattern = `\d+` }, "has no group (?P<value>…) for the number", false},
		{"not an expression", func(p *Pattern) { p.Pattern = `(` }, "pattern of f: error parsing regexp", false},
		{"what ranks record", func(p *Pattern) { p.Name = "final_accuracy" }, `not from a log; name it accuracy, with per = "epoch"`, false},
		{"no such per", func(p *Pattern) { p.Per = "day" }, `per of f is "day"; valid: run, step, epoch`, false},
		{"no such of", func(p *Pattern) { p.Of = "node" }, `of of f is "node"; valid: run, rank`, false},
		{"no such reduction", func(p *Pattern) { p.Reduce = "mode" }, `reduce of f is "mode"; valid: `, false},
		{"each of them", func(p *Pattern) { p.Per, p.Of, p.Reduce = "epoch", "rank", "max" }, "", false},
		{"a rate in steps", func(p *Pattern) { p.Name, p.Unit = "throughput", "it/s" }, "", true},
		{"end to end in steps", func(p *Pattern) { p.Name, p.Unit = "end_to_end", "it/s" }, "", true},
		{"another figure in steps", func(p *Pattern) { p.Unit = "it/s" }, "", false},
		{"a rate in seconds", func(p *Pattern) { p.Name, p.Unit = "throughput", "s" }, `unit of throughput is "s"; want one of "`, false},
		{"a time in ms", func(p *Pattern) { p.Name, p.Unit = "train_seconds", "ms" }, "", false},
		{"a time in samples", func(p *Pattern) { p.Name, p.Unit = "train_seconds", "img/s" }, `want one of "h", "min", "ms", "ns", "s", "sec", "us", "µs"`, false},
		{"accuracy in seconds", func(p *Pattern) { p.Name, p.Unit = "accuracy", "s" }, `want one of "", "%", "fraction"`, false},
		{"a node's rate", func(p *Pattern) { p.Name, p.Unit = "throughput", "img/s/node" }, `which is one node's share; let the program print the rate of all, with unit = "samples/s"`, false},
		{"a device's rate", func(p *Pattern) { p.Name, p.Unit = "throughput", "img/s/gpu" }, `which is one worker's share; set of = "rank" with unit = "samples/s"`, false},
		{"a device's rate of ranks", func(p *Pattern) { p.Name, p.Unit, p.Of = "throughput", "img/s/gpu", "rank" }, "", false},
	} {
		p := ok
		c.change(&p)
		if err := p.Validate(); (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
		if p.NeedsBatch() != c.batch {
			t.Errorf("%s: needs the batch: %v", c.name, !c.batch)
		}
	}
	if _, err := Patterns(nil); err == nil || !strings.Contains(err.Error(), "the pattern is missing") {
		t.Error(err)
	}
	if _, err := Patterns([]Pattern{ok, {}}); err == nil || !strings.Contains(err.Error(), "extract[1]: name is empty") {
		t.Error(err)
	}
}

// Each case says which values belong to the start-up phase, or that they come from several trainings.
func TestPatternPhases(t *testing.T) {
	for _, c := range []struct {
		name, values string
		p            Pattern
		want         float64
		note         string // "": neither is said
	}{
		{"seven values that settle", "30 32 34 36 40 40 40", Pattern{}, 40, "the first 4 of 7 values"},
		{"six", "30 32 34 36 40 40", Pattern{}, 35, ""},
		{"settled but for a thirtieth", "30 32 34 39 39.5 40 40 40", Pattern{}, 39.25, ""},
		{"values near the settled one", "30 32 34 36 39.5 40 40 40", Pattern{}, 40, "the first 4 of 8 values"},
		{"falling", "80 70 60 50 40 40 40 40", Pattern{}, 40, "the first 4 of 8 values"},
		{"by means", "30 32 34 36 40 40 40", Pattern{Reduce: "mean"}, 40, "the first 4 of 7 values"},
		{"the largest", "30 32 34 36 40 40 40", Pattern{Reduce: "max"}, 40, ""},
		{"of a run", "30 32 34 36 40 40 40", Pattern{Per: "run", Reduce: "median"}, 36, ""},
		{"not one way", "10 30 20 40 40 40 40 40", Pattern{}, 40, ""},
		{"seconds", "40 38 36 34 30 30 30", Pattern{Name: "wait", Unit: "s"}, 30, "the first 4 of 7 values"},
		{"a share", "30 32 34 36 40 40 40", Pattern{Name: "wait"}, 36, ""},
		{"two trainings", "10 10 20 20", Pattern{}, 15, "half of the 4 values of throughput are outside 10 to 20 in the log's unit"},
		{"unlike by half", "10 10 15 15", Pattern{}, 12.5, ""},
		{"three", "10 20 20", Pattern{}, 20, ""},
		{"times of two trainings", "10 10 20 20", Pattern{Name: "wait", Unit: "s"}, 15, ""},
		{"one outlier", "10 10 10 10 90", Pattern{}, 10, ""},
	} {
		if c.p.Name == "" {
			c.p.Name, c.p.Unit = "throughput", "img/s"
		}
		if c.p.Per == "" {
			c.p.Per = "step"
		}
		c.p.Pattern = `^rate (?P<value>[\d.]+)$`
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader("rate "+strings.ReplaceAll(c.values, " ", "\nrate ")+"\n"), Options{File: "log", Workers: 1})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		notes := strings.Join(r.Notes, "\n")
		if got := slices.Collect(r.Findings())[0].Event.Figure.Value; got != c.want || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %g, %q; want %g, %q", c.name, got, notes, c.want, c.note)
		}
	}
}
