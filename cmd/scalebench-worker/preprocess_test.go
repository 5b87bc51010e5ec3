package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/launcher/study"
)

// A study knows the formats that the pipeline has.
func TestPreprocessFormats(t *testing.T) {
	want := slices.Sorted(slices.Values(study.PreprocessFormats))
	if got := preprocess.Formats(); !slices.Equal(got, want) {
		t.Errorf("the pipeline has %v, a study %v", got, want)
	}
}

// The bound is the lowest ceiling where the throughput is near it. Elsewhere nothing
// is called a bound, and what threads did with their time is said.
func TestVerdict(t *testing.T) {
	list := []ceiling{{"cores", 200, "5.00 ms of CPU time per sample on 1 CPU"}, {"reading", 150, "reading alone"}, {"writing", 1000, "writing alone"}}
	busy := func(cpu, delay, rest float64, fewer float64) *tally {
		t := &tally{delay: delay, fewer: fewer}
		t.stageSeconds[preprocess.Decode], t.stageCPU[preprocess.Decode] = cpu+delay, cpu
		t.stageSeconds[preprocess.Read] = rest
		return t
	}
	for name, c := range map[string]struct {
		rate float64
		sum  *tally
		want []string
		not  string
	}{
		"reading":       {140, busy(1, 0, 9, 0), []string{"bound by reading: 140 samples/s are 93.3 % of the lowest ceiling, 150 samples/s"}, "no bound"},
		"neighbours":    {70, busy(5, 5, 0, 0), []string{"no bound is active: 70.0 samples/s are 46.7 %", "had no CPU for 50.0 % of their time"}, "waited for storage"},
		"in turn":       {80, busy(5, 0, 5, 0), []string{"no bound is active", "waited for storage, or for the consumer, for 50.0 %"}, "no CPU"},
		"too few files": {80, busy(10, 0, 0, 1), []string{"no bound is active", "fewer files than threads"}, "why is not known"},
		"unknown":       {80, busy(10, 0, 0, 0), []string{"why is not known"}, "storage"},
	} {
		got := verdict(c.rate, list, c.sum)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", name, got, want)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%s: %q has %q", name, got, c.not)
		}
	}
}

// A throughput of six times a ceiling is the ceiling's fault. 115 of 100 is noise.
func TestBelow(t *testing.T) {
	kept, left := below(600, []ceiling{{"cores", 650, ""}, {"reading", 100, ""}, {"writing", 522, ""}})
	if len(kept) != 2 || kept[0].bound != "cores" || kept[1].bound != "writing" || !strings.Contains(left, "ceiling of reading, 100 samples/s, was measured too low") {
		t.Errorf("%v, %q", kept, left)
	}
}
