package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// megatronSteps returns the lines of steps with a batch of 128, a stated step time in ms and a
// time between lines.
func megatronSteps(steps int, ms float64, each time.Duration, consumed int, more string) string {
	var b strings.Builder
	at := time.Date(2024, 4, 6, 23, 59, 0, 0, time.UTC)
	for i := 1; i <= steps; i++ {
		fmt.Fprintf(&b, " [%s] iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | global batch size:   128 | lm loss: 1.8E+00 |%s\n",
			at.Format(time.DateTime), i, consumed*i, ms, more)
		at = at.Add(each)
	}
	return b.String()
}

// secondHalf returns the lines after the sixth.
func secondHalf(log string) string {
	return strings.Join(strings.SplitAfter(log, "\n")[6:], "")
}

// Stated step times and batches are compared with the times of day and the consumed samples. The
// times pass midnight.
func TestStatedStepsAgainstTheLog(t *testing.T) {
	const none = " number of skipped iterations:   0 | number of nan iterations:   0 |"
	for _, c := range []struct{ name, log, figure, note string }{
		{"in agreement", megatronSteps(12, 5500, 5500*time.Millisecond, 128, none), "throughput", ""}, // 128 / 5.5 s
		{"one line a minute", megatronSteps(12, 5500, time.Minute, 128, ""), "stated_throughput", "by the times of day a step takes 60 s, and the stated step time is 5.5 s"},
		{"time between steps", megatronSteps(12, 5500, 10*time.Second, 128, ""), "throughput", "by the times of day a step takes 10 s, and the stated step time is 5.5 s"},
		{"times within rounding", megatronSteps(12, 1200, time.Second, 128, ""), "throughput", ""}, // 12 s against 10 s
		{"too fast", megatronSteps(12, 5500, 3*time.Second, 128, ""), "stated_throughput", "the log states 5.5 s for a step, and its times of day give 3 s"},
		{"too fast, a short log", megatronSteps(12, 5500, time.Second, 128, ""), "stated_throughput", "give 1 s"},
		// A line a second, whatever the steps take: 128 / 5.5 s of the second batch, as stated.
		{"a clock that counts lines", strings.ReplaceAll(megatronSteps(6, 1500, time.Second, 64, ""), "batch size:   128", "batch size:    64") + strings.ReplaceAll(secondHalf(megatronSteps(16, 5500, time.Second, 128, "")), "consumed samples:", "samples:"), "throughput", "these are not the times of steps"},
		{"too few lines", megatronSteps(5, 5500, time.Second, 128, ""), "throughput", ""},
		{"another batch", megatronSteps(12, 5500, 5500*time.Millisecond, 512, ""), "stated_throughput", "the consumed samples grow by 512 a step, and the global batch is stated as 128"},
		{"skipped", megatronSteps(12, 5500, 5500*time.Millisecond, 128, " number of skipped iterations:   1 |"), "throughput", "12 of 12 lines have iterations that were skipped"},
	} {
		r, err := megatron.Extract(strings.NewReader(c.log), Options{File: "log", Workers: 8})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := false
		for f := range r.Findings() {
			if g := f.Event.Figure; g != nil && g.Name == c.figure {
				found = g.Value > 0
			}
			if g := f.Event.Figure; g != nil && g.Name == "stated_step_seconds" && g.Value != 5.5 {
				t.Errorf("%s: a stated step time of %g s", c.name, g.Value)
			}
		}
		notes := strings.Join(r.Notes, "\n")
		if !found || !strings.Contains(notes, c.note) || c.note == "" && (strings.Contains(notes, "times of day give") || strings.Contains(notes, "by the times of day a step") || strings.Contains(notes, "skipped")) {
			t.Errorf("%s: found %v, %q; want %s and %q", c.name, found, notes, c.figure, c.note)
		}
	}
}

// The rate that DeepSpeed states is compared with the batch, if the user gives it: 13.2 samples/s
// in steps of 10 s are 132 samples, not 32.
func TestDeepSpeedAgainstTheBatch(t *testing.T) {
	log := func(each int) string {
		var b strings.Builder
		at := time.Date(2020, 6, 8, 5, 26, 0, 0, time.UTC)
		for i := 1; i < 8; i++ {
			fmt.Fprintf(&b, "[%s,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=13.2, CurrSamplesPerSec=13.2, MemAllocated=1GB, MaxMemAllocated=2GB\n", at.Format(time.DateTime), 10*i, 10*i)
			at = at.Add(time.Duration(10*each) * time.Second)
		}
		return b.String()
	}
	for _, c := range []struct {
		each, batch int
		want        string
	}{{10, 4, "stated_throughput"}, {10, 16, "throughput"}, {10, 0, "throughput"}, {2, 4, "throughput"}} { // 2.4 s a step at 32 samples
		r, err := deepSpeed.Extract(strings.NewReader(log(c.each)), Options{File: "log", Workers: 8, WorkerBatch: c.batch})
		got := ""
		for f := range r.Findings() {
			if g := f.Event.Figure; g != nil && g.Unit == "samples/s" {
				got = g.Name
			}
		}
		if err != nil || got != c.want {
			t.Errorf("%+v: %s, %v, %q", c, got, err, r.Notes)
		}
	}
}
