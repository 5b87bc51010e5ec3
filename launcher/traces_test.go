package launcher

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// writeRank writes the events of one rank: steps of 10 ms with 32
// samples, an epoch, an evaluation, and the given events.
func writeRank(t *testing.T, run rundir.Folder, rank, size, restart, steps int, more ...metrics.Event) {
	t.Helper()
	if err := os.MkdirAll(run.Events(), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(run.EventFile("rank", rank, restart))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := metrics.NewWriter(f, metrics.Start{Writer: "rank", Rank: rank, WorldSize: size, Restart: restart})
	if err != nil {
		t.Fatal(err)
	}
	for range steps {
		if err := w.Step(metrics.Step{Duration: 10 * time.Millisecond, Samples: 32}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range append([]metrics.Event{
		{Epoch: &metrics.Epoch{Epoch: 2, Step: steps, Samples: 32 * int64(steps)}},
		{Evaluation: &metrics.Evaluation{Epoch: 2, Accuracy: 0.5, Samples: 100}},
	}, more...) {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
}

func claim(t *testing.T, run rundir.Folder, restart int) {
	t.Helper()
	if err := os.MkdirAll(run.Claim(restart), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTraces(t *testing.T) {
	done := metrics.Event{Stop: &metrics.Stop{Status: metrics.StopDone}}
	run := rundir.Folder(t.TempDir())
	if traces, err := ReadTraces(run); err != nil || traces.Begun {
		t.Fatalf("an empty folder: %+v, %v", traces, err)
	}
	// A first incarnation failed; it does not count once the second has begun.
	claim(t, run, 0)
	writeRank(t, run, 0, 2, 0, 1, metrics.Event{Error: &metrics.Error{Where: "train", Message: "old"}})
	claim(t, run, 1)
	// 20,000 steps make a file far longer than the part that is read.
	writeRank(t, run, 0, 2, 1, 20_000, done)
	writeRank(t, run, 1, 2, 1, 20_000)
	for rank, host := range []string{"node1", "node2"} {
		f, err := os.Create(run.EventFile("supervisor", rank, 1))
		if err != nil {
			t.Fatal(err)
		}
		w, err := metrics.NewWriter(f, metrics.Start{Writer: "supervisor", Rank: rank, WorldSize: 2, Restart: 1, Host: host})
		if err == nil && rank == 0 {
			err = w.Write(done)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	traces, err := ReadTraces(run)
	if err != nil {
		t.Fatal(err)
	}
	// 2 ranks of 32 samples every 10 ms.
	want := Traces{Begun: true, Restart: 1, Done: 1, Stopped: 1, Epoch: 2, Step: 20_000, Throughput: 6400, Silent: []string{"node2"}}
	if traces.Accuracy == nil || *traces.Accuracy != 0.5 {
		t.Errorf("accuracy %v, want 0.5", traces.Accuracy)
	}
	if age := metrics.Unix(time.Now()) - traces.StartUnix; age < 0 || age > 600 {
		t.Errorf("started %v, want a moment ago", traces.StartUnix)
	}
	traces.StartUnix = 0
	traces.Accuracy = nil // fmt would compare addresses
	if math.Abs(traces.Throughput-6400) < 1e-6 {
		traces.Throughput = 6400
	}
	if fmt.Sprint(traces) != fmt.Sprint(want) {
		t.Errorf("got\n%+v\nwant\n%+v", traces, want)
	}
}

// The cause is the event that happened first, not its consequences elsewhere.
func TestTracesFindTheEarliestCause(t *testing.T) {
	run := rundir.Folder(t.TempDir())
	claim(t, run, 0)
	synctest.Test(t, func(t *testing.T) { // with a simulated clock
		writeRank(t, run, 1, 2, 0, 1, metrics.Event{Error: &metrics.Error{Where: "data", Message: "data_batch_1.bin is missing"}})
		time.Sleep(10 * time.Millisecond)
		writeRank(t, run, 0, 2, 0, 1, metrics.Event{Error: &metrics.Error{Where: "rendezvous", Message: "rank 1 is gone"}})
	})
	traces, err := ReadTraces(run)
	if err != nil {
		t.Fatal(err)
	}
	if traces.Cause != "data: data_batch_1.bin is missing" {
		t.Errorf("cause is %q", traces.Cause)
	}
}

// Ranks that miss a killed rank often report it before its supervisor does.
func TestTracesPreferTheRanksOwnCause(t *testing.T) {
	gone := metrics.Event{Error: &metrics.Error{Where: "serve", Message: "all-reduce of int64 4: rank 0 is gone: its connection was closed; its own log or events say why"}}
	killed := metrics.Event{Error: &metrics.Error{Where: "train", Message: "rank 0 was killed by SIGKILL"}}
	for _, order := range [][]metrics.Event{{gone, killed}, {killed, gone}, {gone, killed, gone}} {
		run := rundir.Folder(t.TempDir())
		claim(t, run, 0)
		synctest.Test(t, func(t *testing.T) {
			for i, e := range order {
				writeRank(t, run, i, len(order), 0, 1, e)
				time.Sleep(10 * time.Millisecond)
			}
		})
		if traces, err := ReadTraces(run); err != nil || traces.Cause != "rank 0 was killed by SIGKILL" {
			t.Errorf("cause %q, %v", traces.Cause, err)
		}
	}
	// Without a better cause, this one is used.
	run := rundir.Folder(t.TempDir())
	claim(t, run, 0)
	writeRank(t, run, 1, 2, 0, 1, gone)
	if traces, err := ReadTraces(run); err != nil || !strings.Contains(traces.Cause, "rank 0 is gone") {
		t.Errorf("cause %q, %v", traces.Cause, err)
	}
}

func TestTracesOfABrokenExitRecord(t *testing.T) {
	run := rundir.Folder(t.TempDir())
	claim(t, run, 0)
	if err := os.WriteFile(run.Exit(0), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTraces(run); err == nil || !strings.Contains(err.Error(), run.Exit(0)) {
		t.Errorf("%v does not name the file", err)
	}
}

// A last line with a few slow steps does not determine the rate that status shows.
func TestRecentThroughput(t *testing.T) {
	steps := func(n int, each int64) metrics.Event {
		return metrics.Event{Steps: &metrics.Steps{Tick: 1e-3, Duration: slices.Repeat([]int64{each}, n), Samples: slices.Repeat([]int64{32}, n)}}
	}
	var traces Traces
	traces.follow([]metrics.Event{{Start: &metrics.Start{WorldSize: 2}}, steps(10, 10), steps(1, 900)})
	if want := 11 * 2 * 32 / 1.0; math.Abs(traces.Throughput-want) > 1e-6 { // in 10·10 ms + 900 ms
		t.Errorf("%g samples/s, want %g", traces.Throughput, want)
	}
}
