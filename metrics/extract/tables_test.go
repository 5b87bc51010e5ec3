package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// readRuns reads a table and formats each run as "NAME VALUE" for its figures and "acc
// VALUE at SECONDS" for its evaluations, then its doubts.
func readRuns(csv string, o Options, maps ...string) (runs, told []string, err error) {
	columns := map[string]Column{}
	for _, text := range maps {
		ours, c, err := ParseColumn(text)
		if err != nil {
			return nil, nil, err
		}
		columns[ours] = c
	}
	o.File, o.Say = "t.csv", func(text string) { told = append(told, text) }
	for r, err := range Runs(strings.NewReader(csv), o, columns) {
		if err != nil {
			return runs, told, err
		}
		var words []string
		for f := range r.Result.Findings() {
			if g := f.Event.Figure; g != nil {
				words = append(words, fmt.Sprintf("%s %.6g", g.Name, g.Value))
			}
			if e := f.Event.Evaluation; e != nil {
				words = append(words, fmt.Sprintf("acc %.6g at %.6g", e.Accuracy, f.Event.Time))
			}
		}
		runs, told = append(runs, strings.Join(words, ", ")), append(told, r.Result.Notes...)
	}
	return runs, told, nil
}

// Rows that are parts of a run add up: 100 + 120, and then 90 + 110, since a repeated part
// begins the next run.
func TestSumOverParts(t *testing.T) {
	const two = "workers,rank,speed\n2,0,100\n2,1,120\n2,0,90\n2,1,110\n"
	rate := []string{"workers=workers", "throughput=speed:samples/s"}
	for _, c := range []struct {
		name string
		csv  string
		o    Options
		maps []string
		want []string // runs
		why  string   // text of the error
	}{
		{"two runs", two, Options{Sum: "rank"}, rate, []string{"throughput 220", "throughput 200"}, ""},
		{"parts in any order", "workers,rank,speed\n1,0,7\n2,1,120\n2,0,100\n", Options{Sum: "rank"}, rate, []string{"throughput 7", "throughput 220"}, ""},
		{"a part again", "workers,rank,speed\n2,0,100\n2,1,120\n2,1,90\n", Options{Sum: "rank"}, rate, []string{"throughput 220", "throughput 90"}, ""},
		{"decimal commas", "workers;rank;speed\n2;0;100,5\n2;1;120,25\n", Options{Sum: "rank", Decimal: DecimalComma}, rate, []string{"throughput 220.75"}, ""},
		{"no such column", two, Options{Sum: "node"}, rate, nil, `no column "node" to sum over`},
		{"a mapped column", two, Options{Sum: "speed"}, rate, nil, "mapped to throughput, and rows are summed over it"},
		{"no rate", "workers,rank,speed,s\n2,0,100,5\n2,1,120,5\n", Options{Sum: "rank"}, append(rate, "train_seconds=s:s"), nil, "rates of parts add up, and train_seconds is none"},
		{"of one worker", two, Options{Sum: "rank"}, []string{"workers=workers", "throughput=speed:samples/s/worker"}, nil, "the parts add up to all of them"},
		{"epochs", "workers,rank,speed,epoch\n2,0,100,1\n2,1,120,1\n", Options{Sum: "rank"}, append(rate, "epoch=epoch"), nil, "rows are epochs, and cannot be summed"},
		{"a part without a number", "workers,rank,speed\n2,0,100\n2,1,\n", Options{Sum: "rank"}, rate, nil, `no number in column "speed", and the run's is the sum over "rank"`},
		{"not said to be parts", two, Options{}, rate, nil, "so they are parts of one run and not repeats; write --sum rank"},
	} {
		runs, _, err := readRuns(c.csv, c.o, c.maps...)
		checkRuns(t, c.name, runs, c.want, err, c.why)
	}
}

func checkRuns(t *testing.T, name string, got, want []string, err error, why string) {
	t.Helper()
	switch {
	case why == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case why != "" && (err == nil || !strings.Contains(err.Error(), why)):
		t.Errorf("%s: %v, want an error with %q", name, err, why)
	case why == "" && !slices.Equal(got, want):
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// Rows that are epochs: epoch_seconds adds up, or the last elapsed time counts.
func TestRowsAreEpochs(t *testing.T) {
	elapsed := []string{"epoch=epoch", "elapsed=s:s", "accuracy=acc:fraction"}
	took := []string{"epoch=epoch", "epoch_seconds=s:s", "accuracy=acc:fraction"}
	for _, c := range []struct {
		name string
		csv  string
		maps []string
		want []string
		why  string
	}{
		{"elapsed", "epoch,s,acc\n1,10,0.5\n2,22,0.75\n", elapsed, []string{"acc 0.5 at 10, acc 0.75 at 22, train_seconds 22"}, ""},
		{"took", "epoch,s,acc\n1,10,0.5\n2,12,0.75\n", took, []string{"acc 0.5 at 10, acc 0.75 at 22, train_seconds 22"}, ""},
		{"counted from 0", "epoch,s,acc\n0,10,0.5\n1,12,0.75\n", took, []string{"acc 0.5 at 10, acc 0.75 at 22, train_seconds 22"}, ""},
		{"in minutes", "epoch,s,acc\n1,1,0.5\n2,2,0.75\n", []string{"epoch=epoch", "elapsed=s:min", "accuracy=acc:fraction"}, []string{"acc 0.5 at 60, acc 0.75 at 120, train_seconds 120"}, ""},
		{"elapsed with a gap", "epoch,s,acc\n1,10,0.5\n3,30,0.75\n", elapsed, []string{"acc 0.5 at 10, acc 0.75 at 30, train_seconds 30"}, ""},
		{"took with a gap", "epoch,s,acc\n1,10,0.5\n3,12,0.75\n", took, nil, "epoch 3 follows epoch 1; epoch_seconds needs a row for every epoch"},
		{"took from the third", "epoch,s,acc\n3,10,0.5\n4,12,0.75\n", took, nil, "the first epoch is 3; epoch_seconds needs a row for every epoch"},
		{"twice", "epoch,s,acc\n1,10,0.5\n1,22,0.75\n", elapsed, nil, "epoch 1 follows epoch 1 of the same run"},
		{"backwards", "epoch,s,acc\n2,10,0.5\n1,22,0.75\n", elapsed, nil, "epoch 1 follows epoch 2 of the same run"},
		{"half an epoch", "epoch,s,acc\n1,10,0.5\n1.5,22,0.75\n", elapsed, nil, "1.5 as the number of an epoch or a step; want a whole number"},
		{"a negative one", "epoch,s,acc\n-1,10,0.5\n", elapsed, nil, "epoch is -1; want 0 or more"},
		{"no epoch", "epoch,s,acc\n1,10,0.5\n,22,0.75\n", elapsed, nil, "no number in column epoch, the epoch"},
		{"no time", "epoch,s,acc\n1,10,0.5\n2,,0.75\n", elapsed, nil, "no number in column s, the time elapsed"},
		{"no time of an epoch", "epoch,s,acc\n1,10,0.5\n2,,0.75\n", took, nil, "no number in column s, the seconds of the epoch"},
		{"time goes back", "epoch,s,acc\n1,10,0.5\n2,9,0.75\n", elapsed, nil, "elapsed goes back from 10 to 9"},
		{"time stands still", "epoch,s,acc\n1,10,0.5\n2,10,0.75\n", elapsed, []string{"acc 0.5 at 10, acc 0.75 at 10, train_seconds 10"}, ""},
		{"percent as a fraction", "epoch,s,acc\n1,10,50\n", elapsed, nil, "for percent write --map accuracy=acc:%"},
		{"percent", "epoch,s,acc\n1,10,50\n", []string{"epoch=epoch", "elapsed=s:s", "accuracy=acc:%"}, []string{"acc 0.5 at 10, train_seconds 10"}, ""},
		{"more than everything", "epoch,s,acc\n1,10,101\n", []string{"epoch=epoch", "elapsed=s:s", "accuracy=acc:%"}, nil, "101"},
		{"the rate of the epochs after the first", "epoch,r\n1,10\n2,30\n3,20\n4,40\n", []string{"epoch=epoch", "throughput=r:samples/s"}, []string{"throughput 30"}, ""},
		{"the rate of one epoch", "epoch,r\n1,10\n", []string{"epoch=epoch", "throughput=r:samples/s"}, []string{"throughput 10"}, ""},
		{"no rate at all", "epoch,r\n1,0\n", []string{"epoch=epoch", "throughput=r:samples/s"}, nil, "a throughput of 0"},
		{"a negative rate", "epoch,r\n1,-5\n", []string{"epoch=epoch", "throughput=r:samples/s"}, nil, "throughput is -5; want 0 or more"},
		{"an accuracy of a model that overfits", "epoch,val_acc\n1,0.9\n2,0.8\n3,0.7\n", []string{"epoch=epoch", "accuracy=val_acc"}, []string{"acc 0.9 at 0, acc 0.8 at 0, acc 0.7 at 0"}, ""},
		{"a measure named like a percentile", "epoch,s,metrics/mAP50(B)\n1,24.5,0.63\n2,49,0.66\n", []string{"epoch=epoch", "elapsed=s:s"}, []string{"train_seconds 49"}, ""},
		{"an accuracy that falls", "epoch,val\n1,0.9\n2,0.8\n3,0.7\n", []string{"epoch=epoch", "accuracy=val"}, nil, "falls over the epochs of every run (from 0.9 to 0.7"},
		{"and recovers", "epoch,val\n1,0.9\n2,0.8\n3,0.9\n", []string{"epoch=epoch", "accuracy=val"}, []string{"acc 0.9 at 0, acc 0.8 at 0, acc 0.9 at 0"}, ""},
		{"over two epochs", "epoch,val\n1,0.9\n2,0.8\n", []string{"epoch=epoch", "accuracy=val"}, []string{"acc 0.9 at 0, acc 0.8 at 0"}, ""},
		{"as the user says", "epoch,val\n1,0.9\n2,0.8\n3,0.7\n", []string{"epoch=epoch", "accuracy=val:fraction"}, []string{"acc 0.9 at 0, acc 0.8 at 0, acc 0.7 at 0"}, ""},
	} {
		runs, _, err := readRuns(c.csv, Options{}, c.maps...)
		checkRuns(t, c.name, runs, c.want, err, c.why)
	}
}

// The unit of a column is checked by its change with the workers. A rate that rises by at most a tenth
// may be one worker's. Values that differ by more than 50 times the workers' ratio may be
// in two units.
func TestShapesOfColumns(t *testing.T) {
	rate, seconds := []string{"workers=w", "throughput=x"}, []string{"workers=w", "train_seconds=x"}
	for _, c := range []struct {
		name string
		csv  string
		o    Options
		maps []string
		want []string
		why  string
	}{
		{"rises", "w,x\n1,100\n2,190\n", Options{}, rate, []string{"throughput 100", "throughput 190"}, ""},
		{"rises by a tenth", "w,x\n1,100\n2,110\n", Options{}, rate, nil, "throughput does not rise with the workers (100 at 1, 110 at 2)"},
		{"rises by more", "w,x\n1,100\n2,111\n", Options{}, rate, []string{"throughput 100", "throughput 111"}, ""},
		{"rises, then falls", "w,x\n1,100\n2,150\n4,90\n", Options{}, rate, []string{"throughput 100", "throughput 150", "throughput 90"}, ""},
		{"flat, of all", "w,x\n1,100\n2,100\n", Options{}, []string{"workers=w", "throughput=x:samples/s"}, []string{"throughput 100", "throughput 100"}, ""},
		{"flat, of one", "w,x\n1,100\n2,90\n", Options{}, []string{"workers=w", "throughput=x:samples/s/worker"}, []string{"throughput 100", "throughput 180"}, ""},
		{"tokens of a GPU that rise", "w,x\n1,100\n2,200\n4,390\n", Options{}, []string{"workers=w", "tokens_per_second_per_gpu=x"}, nil, "rises with the workers (100 at 1, 390 at 4), as the rate of all devices does"},
		{"tokens of a GPU that rise a little", "w,x\n1,100\n2,120\n", Options{}, []string{"workers=w", "tokens_per_second_per_gpu=x"}, []string{"tokens_per_second 100, tokens_per_second_per_gpu 100", "tokens_per_second 240, tokens_per_second_per_gpu 120"}, ""},
		{"100 times on two workers", "w,x\n1,100\n2,10000\n", Options{}, rate, []string{"throughput 100", "throughput 10000"}, ""},
		{"more than that", "w,x\n1,100\n2,10100\n", Options{}, rate, nil, `column "x" has 100 samples/s on line 2 and 10100 on line 3: are these in one unit?`},
		{"a 60th", "w,x\n1,100\n2,150\n4,2\n", Options{}, rate, nil, "are these in one unit?"},
		{"seconds and milliseconds", "w,x\n1,100\n2,50000\n", Options{}, seconds, nil, "are these in one unit?"},
		{"as the user says", "w,x\n1,100\n2,50000\n", Options{}, []string{"workers=w", "train_seconds=x:s"}, nil, "does not fall with more workers"},
		{"a time that falls", "w,x\n1,100\n2,55\n", Options{}, seconds, []string{"train_seconds 100", "train_seconds 55"}, ""},
		{"a time that does not", "w,x\n1,100\n2,99\n", Options{}, seconds, nil, "train_seconds does not fall with more workers (100 s at 1, 99 s at 2)"},
		{"of a strong study", "w,x\n1,100\n2,99\n", Options{Scaling: "strong"}, seconds, []string{"train_seconds 100", "train_seconds 99"}, ""},
		{"of a weak study", "w,x\n1,100\n2,99\n", Options{Scaling: "weak"}, seconds, []string{weakSeconds + " 100", weakSeconds + " 99"}, ""},
		{"a row of one worker each", "w,x\n1,100\n2,90\n4,0\n", Options{}, []string{"workers=w", "throughput=x:samples/s/worker"}, nil, "a throughput of 0"},
		{"no count", "w,x\n1,100\n,90\n", Options{}, []string{"workers=w", "throughput=x:samples/s/worker"}, nil, "t.csv:3: no count in column"},
		{"a count of 0", "w,x\n1,100\n0,90\n", Options{}, []string{"workers=w", "throughput=x:samples/s/worker"}, nil, "t.csv:3: no count in column"},
		{"half a worker", "w,x\n1,100\n1.5,90\n", Options{}, []string{"workers=w", "throughput=x:samples/s/worker"}, nil, "t.csv:3: no count in column"},
		{"epochs that fall in the mean", "w,e,x\n1,1,100\n1,2,100\n2,1,100\n2,2,40\n", Options{}, []string{"workers=w", "epoch=e", "epoch_seconds=x"}, []string{"train_seconds 200", "train_seconds 140"}, ""},
		{"epochs that do not", "w,e,x\n1,1,100\n1,2,100\n2,1,60\n2,2,130\n", Options{}, []string{"workers=w", "epoch=e", "epoch_seconds=x"}, nil, "epoch_seconds does not fall with more workers (100 s at 1, 95 s at 2)"},
		{"the rate says that work grew", "w,x,r\n1,100,10\n2,99,19\n", Options{}, append(seconds, "throughput=r:samples/s"), []string{"throughput 10, " + weakSeconds + " 100", "throughput 19, " + weakSeconds + " 99"}, ""},
	} {
		runs, _, err := readRuns(c.csv, c.o, c.maps...)
		for i := range runs { // in any order
			words := strings.Split(runs[i], ", ")
			slices.Sort(words)
			runs[i] = strings.Join(words, ", ")
		}
		for i := range c.want {
			words := strings.Split(c.want[i], ", ")
			slices.Sort(words)
			c.want[i] = strings.Join(words, ", ")
		}
		checkRuns(t, c.name, runs, c.want, err, c.why)
	}
}

// Unmapped columns decide whether rows count as repeats.
func TestWhatOtherColumnsSay(t *testing.T) {
	rate := []string{"workers=w", "throughput=x:samples/s"}
	for _, c := range []struct {
		name string
		csv  string
		want int // runs
		told string
		why  string
	}{
		{"repeats by seed", "w,seed,x\n1,1,100\n1,2,101\n", 2, "", ""},
		{"another precision", "w,precision,x\n1,fp32,100\n1,bf16,190\n", 0, "", `rows of one series differ in column "precision" ("bf16", "fp32"); write --label precision=precision`},
		{"the same precision", "w,precision,x\n1,bf16,100\n1,bf16,101\n", 2, "", ""},
		{"another driver with the count", "w,driver,x\n1,535,100\n2,550,190\n", 2, "driver changes with the number of workers (535 at 1; 550 at 2)", ""},
		{"both drivers at each count", "w,driver,x\n1,535,100\n1,550,101\n2,535,190\n2,550,191\n", 4, "", ""},
		{"statistics", "w,stat,x\n1,mean,100\n1,median,101\n", 0, "", "they are statistics of the same runs and not repeats"},
		{"ranks", "w,rank,x\n2,0,100\n2,1,101\n", 0, "", "so they are parts of one run and not repeats"},
		{"an unknown word", "w,colour,x\n1,red,100\n1,blue,101\n", 2, `rows that differ in column "colour" ("blue", "red") count as repeats`, ""},
		{"a mean among runs", "w,seed,x\n1,1,100\n1,2,104\n1,mean,102\n", 2, "they summarise others", ""},
		{"a total without a count", "w,x\n1,100\n2,190\ntotal,290\n", 2, "they summarise others", ""},
		{"an unmarked mean", "w,x\n1,100\n1,105\n1,107\n1,104.000\n", 3, "they are the mean of others", ""},
		{"a table pasted twice", "w,x\n1,101.5\n2,190.25\n1,101.5\n2,190.25\n", 2, "copies of others, digit for digit", ""},
		{"a row pasted twice", "w,x\n1,101.534\n1,101.534\n2,190.25\n", 2, "copies of others, digit for digit", ""},
		{"five equal digits", "w,x\n1,101.53\n1,101.53\n2,190.25\n", 3, "", ""},
		{"few equal digits", "w,x\n1,100\n1,100\n2,190\n", 3, "", ""},
	} {
		runs, told, err := readRuns(c.csv, Options{}, rate...)
		switch all := strings.Join(told, "\n"); {
		case c.why != "":
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v, want an error with %q", c.name, err, c.why)
			}
		case err != nil || len(runs) != c.want:
			t.Errorf("%s: %q, %v; want %d runs", c.name, runs, err, c.want)
		case !strings.Contains(all, c.told) || c.told == "" && strings.Contains(all, "count as repeats"):
			t.Errorf("%s: told %q, want %q", c.name, told, c.told)
		}
	}
}

// A total of 400 from 4 workers at 100 each is consistent, within rounding and a twentieth.
func TestTotalsAndParts(t *testing.T) {
	maps := []string{"workers=w", "throughput=img/s"}
	for each, valid := range map[string]bool{"100": true, "104": true, "96": true, "120": false, "80": false, "400": false} {
		_, _, err := readRuns("w,img/s,img/s/gpu\n4,400,"+each+"\n", Options{}, maps...)
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "contradict each other: 400 of all and "+each+" of each of 4") {
			t.Errorf("%s each: %v, want valid: %v", each, err, valid)
		}
	}
}

func TestParseLabelAndColumn(t *testing.T) {
	for text, want := range map[string]any{"8": int64(8), "-8": int64(-8), "2.5": 2.5, "1e3": 1000.0, "inf": "inf", "NaN": "NaN", "true": true, "false": false, "True": "True", "x": "x", "[1": "[1", "1]": "1]", "[x]": "[x]"} {
		if got := ParseLabel(text); got != want {
			t.Errorf("%q: %T %v, want %T %v", text, got, got, want, want)
		}
	}
	if got := fmt.Sprintf("%#v", ParseLabel(`[1, 2.5, true, "a", "7"]`)); got != `[]interface {}{1, 2.5, true, "a", "7"}` {
		t.Error(got)
	}
	for text, want := range map[string]Column{"a=b": {Name: "b"}, "a=b:ms": {Name: "b", Unit: "ms"}, "a=b:c": {Name: "b:c"}, "a=b:": {Name: "b:"}, "a=:ms": {Name: ":ms"}, "a=b:c:s": {Name: "b:c", Unit: "s"}} {
		if ours, c, err := ParseColumn(text); err != nil || ours != "a" || c != want {
			t.Errorf("%q: %q, %+v, %v; want %+v", text, ours, c, err, want)
		}
	}
	for _, bad := range []string{"", "a", "a=", "=b"} {
		if _, _, err := ParseColumn(bad); err == nil {
			t.Errorf("%q is a mapping", bad)
		}
	}
}

// An expression may begin with the value group or the unit group.
func TestPatternsThatBeginWithAGroup(t *testing.T) {
	for _, c := range []struct {
		expression, line string
		want             float64
		why              string
	}{
		{`(?P<value>[\d.]+) tok/s`, "12.5 tok/s", 12.5, ""},
		{`(?P<value>[\d.]+)`, "12.5 ktok/s", 12500, ""},
		{`(?P<value>\d+).*tok`, "12.5 tok/s", 0, "only part of a number"},
		{`(?P<unit>\S+) (?P<value>\d+)`, "ktok/s 12", 12000, ""},
		{`: (?P<unit>\S*) (?P<value>\d+)`, ":  12", 12, ""},
	} {
		e, err := Patterns([]Pattern{{Name: "tokens_per_second", Pattern: c.expression, Unit: "tokens/s"}})
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		r, err := e.Extract(strings.NewReader(c.line+"\n"), Options{File: "log", Workers: 1})
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.expression, err, c.why)
			continue
		}
		if err == nil {
			for f := range r.Findings() {
				if got := f.Event.Figure.Value; got != c.want {
					t.Errorf("%s: %g, want %g", c.expression, got, c.want)
				}
			}
		}
	}
}
