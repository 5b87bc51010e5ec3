package compare

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func TestProgram(t *testing.T) {
	for line, want := range map[string]string{
		"python3 -u /home/me/train.py --lr 1":  "train.py",
		"./train.py":                           "train.py",
		"/opt/pi 1000":                         "pi",
		"torchrun --nproc_per_node 4 train.py": "train.py",
		"python -m trainer.main --lr 1":        "trainer.main",
		"mpirun -n 4 ./pi":                     "pi",
		"env OMP_NUM_THREADS=1 ./pi":           "pi",
		"sh":                                   "sh",
		"":                                     "",
	} {
		if got := program(strings.Fields(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Different programs are not compared: the second is not 728 times better.
func TestOtherProgramsAreNotJudged(t *testing.T) {
	of := func(set string, rate float64, run ...any) []scaling.Observation {
		var list []scaling.Observation
		for i := range 6 {
			list = append(list, scaling.Observation{Run: set + string(rune('1'+i)), Study: set, Point: set, Repeat: i + 1, Framework: "command", Workers: 1, Nodes: 1,
				Parameters: map[string]any{"command.run": run}, Values: map[string]float64{measure.Throughput: rate + float64(i)}})
		}
		return list
	}
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		b    []any
		mix  bool
		want Verdict
	}{
		{[]any{"python3", "other/train.py", "--fast"}, false, Better},
		{[]any{"./pi", "1000"}, false, Insufficient},
		{[]any{"./pi", "1000"}, true, Better},
	} {
		r, err := Runs(of("a", 100, "python", "train.py"), of("b", 72800, tt.b...), throughput, Options{Mix: tt.mix})
		if err != nil {
			t.Fatal(err)
		}
		p := r.Pairs[0]
		if p.Verdict != tt.want {
			t.Errorf("%v: %s (%s), want %s", tt.b, p.Verdict, p.Why, tt.want)
		}
		if p.Verdict == Insufficient && (p.Ratio != nil || !strings.Contains(p.Why, "different programs (train.py; pi)")) {
			t.Errorf("%v: ratio %v, why %q", tt.b, p.Ratio, p.Why)
		}
		if err := r.FailAt(0.05); (err != nil) != (tt.want == Insufficient) || err != nil && !strings.Contains(err.Error(), "different programs") {
			t.Errorf("%v: FailAt: %v", tt.b, err)
		}
	}
}
