package extract

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

// A file may be as large as the limit, whether its size is known before or not.
func TestWholeFileLimit(t *testing.T) {
	const most = 3 << 20
	for name, c := range map[string]struct {
		size  int
		known int64
		large bool
	}{
		"at the limit":             {most, most, false},
		"size unknown":             {most, 0, false},
		"larger":                   {most + 1, most + 1, true},
		"larger, size unknown":     {most + 1, 0, true},
		"it grew while being read": {most + 1, most, true},
	} {
		l := &log{o: Options{File: "x.json", Bytes: c.known}}
		data, err := l.upTo(strings.NewReader(strings.Repeat("x", c.size)), most)
		if c.large && (err == nil || err.Error() != "x.json: larger than 3 MiB, the limit for a file of this format") {
			t.Errorf("%s: %v, want the limit", name, err)
		}
		if !c.large && (err != nil || len(data) != c.size) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(data), err, c.size)
		}
	}
	broken := errors.New("broken")
	if _, err := (&log{o: Options{File: "x.json"}}).upTo(iotest.ErrReader(broken), most); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "x.json: ") {
		t.Errorf("a failing read: %v, want its error with the file's name", err)
	}
}

// Rates that were multiplied by the worker count twice rise with its square: fourfold for
// twice the workers. Growth up to a fifth below that also counts.
func TestPerRises(t *testing.T) {
	for _, c := range []struct {
		values []float64 // on 2, 4 and 8 workers
		want   bool
	}{
		{[]float64{100, 400, 1600}, true},
		{[]float64{100, 330, 1300}, true},
		{[]float64{100, 310, 1600}, false},
		{[]float64{100, 400, 1270}, false},
		{[]float64{100, 200, 400}, false},
	} {
		var list []countedMedian
		for i, v := range c.values {
			list = append(list, countedMedian{workers: float64(int(2 << i)), value: v})
		}
		if got := new(survey).perRises(list); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// Losses a quarter of an epoch apart begin at most at 1.5 · 0.25 + 0.01 = 0.385.
func TestLateFirstLoss(t *testing.T) {
	for first, resumed := range map[float64]bool{0.25: false, 0.38: false, 0.4: true, 0.7: true} {
		h := &hfParts{epochs: []float64{first, first + 0.25, first + 0.5}, losses: []float64{2, 2, 2}}
		if why := h.resumed(0, 0); (why != "") != resumed {
			t.Errorf("a first loss at %g: %q, resumed %v", first, why, resumed)
		}
	}
	// A mean below nine tenths of 2, the mean of all losses, covers only a part of the training.
	for mean, resumed := range map[float64]bool{1.81: false, 1.79: true} {
		h := &hfParts{epochs: []float64{0.25, 0.5, 0.75}, losses: []float64{2, 2, 2}}
		if why := h.resumed(mean, 0); (why != "") != resumed {
			t.Errorf("a mean of %g: %q, resumed %v", mean, why, resumed)
		}
	}
}

// Blanks separate the columns of many tables of programs: two or more where names have blanks, as in
// the second one, and one elsewhere. Comments stand before the first row, and the last names the columns.
func TestBlanksBetweenColumns(t *testing.T) {
	for name, c := range map[string]struct{ csv, time string }{
		"gnuplot":                {"# made on 3 May\n# nodes time speedup\n1 3629 1\n32 201 18.05\n", "time:s"},
		"names of words":         {"# nodes  block time(sec)\n1    3629\n32   201\n", "block time(sec)"},
		"names of words, narrow": {"# nodes  block time(sec)\n1    3629\n32 201\n", "block time(sec)"},
		"column -t":              {"nodes  time   speedup\n1      3629   1\n32     201    18.05\n", "time:s"},
		"squeue":                 {"nodes time\n----- ----\n    1 3629\n   32  201\n\n", "time:s"},
		"a comment inside":       {"nodes time\n1 3629\n# again\n32 201\n", "time:s"},
	} {
		runs, _, err := readRuns(c.csv, Options{}, "workers=nodes", "train_seconds="+c.time)
		if got := strings.Join(runs, "; "); err != nil || got != "train_seconds 3629; train_seconds 201" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for csv, why := range map[string]string{
		"nodes time\n1 3629\n32\n":       "which is one column",                    // a cell is missing
		"nodes time\n1 3629\n32 3 min\n": "which is one column",                    // a blank in a cell
		"1 3629\n32 201\n":               "which is one column",                    // no names
		"nodes time\n1 3629\n\n32 x\n":   "t.csv:4: column time: \"x\"",            // its own line
		"nodes time\n1 3629\n32 20":      "t.csv:3: the last line has no line end", // cut off
	} {
		if runs, _, err := readRuns(csv, Options{}, "workers=nodes", "train_seconds=time:s"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %q, %v; want %q", csv, runs, err, why)
		}
	}
}

// What sacct prints: a job's time includes that of its step, so that each job is one run.
func TestStepsOfJobs(t *testing.T) {
	head := "JobID|NNodes|Elapsed|State\n"
	for name, c := range map[string]struct{ csv, want, why string }{
		"jobs and their steps": {"7|1|01:00:29|COMPLETED\n7.batch|1|01:00:29|COMPLETED\n7.0|1|01:00:20|COMPLETED\n8|2|00:31:32|COMPLETED\n8.0|2|00:31:30|COMPLETED\n", "train_seconds 3629; train_seconds 1892", ""},
		"array tasks":          {"7_1|1|01:00:29|COMPLETED\n7_1.0|1|01:00:20|COMPLETED\n7_2|2|00:31:32|COMPLETED\n", "train_seconds 3629; train_seconds 1892", ""},
		"steps only":           {"7.0|1|01:00:20|COMPLETED\n7.1|2|00:31:30|COMPLETED\n", "train_seconds 3620; train_seconds 1890", ""},
		"several steps":        {"7|2|01:40:00|COMPLETED\n7.0|1|01:00:20|COMPLETED\n7.1|2|00:31:30|COMPLETED\n", "", "job 7 has 2 steps and a row of its own (lines 3, 4, …)"},
	} {
		runs, _, err := readRuns(head+c.csv, Options{}, "workers=NNodes", "train_seconds=Elapsed")
		checkRuns(t, name, runs, strings.Split(c.want, "; "), err, c.why)
	}
}

// Rows of one run's evaluations are no repeats, whatever their step's column is called.
func TestRowsOfSteps(t *testing.T) {
	for name, c := range map[string]struct{ csv, want, why string }{
		"of one run":    {"n,at,l\n1,0,2.3\n1,100,1.8\n", "", "write --map epoch=at"},
		"of two runs":   {"n,at,l\n1,0,2.3\n2,0,2.2\n1,100,1.8\n2,100,1.7\n", "", "write --map epoch=at"},
		"repeats":       {"n,at,l\n1,812,2.3\n1,790,1.8\n", "loss 2.3; loss 1.8", ""},
		"one row a run": {"n,at,l\n1,800,2.3\n2,400,1.8\n", "loss 2.3; loss 1.8", ""},
		"numbered runs": {"n,at,l,run\n1,790,2.3,1\n1,812,1.8,2\n", "loss 2.3; loss 1.8", ""},
	} {
		maps := []string{"workers=n", "step=at", "loss=l"}
		if strings.Contains(c.csv, "run") {
			maps = append(maps, "run=run")
		}
		runs, _, err := readRuns(c.csv, Options{}, maps...)
		checkRuns(t, name, runs, strings.Split(c.want, "; "), err, c.why)
	}
}
