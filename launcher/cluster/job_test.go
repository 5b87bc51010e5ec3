package cluster

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/slurm"
)

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWatch runs both sides of a probe job on one host without Slurm. Every answer arrives, and a clock
// compared with itself differs by no more than the reported uncertainty.
func TestWatch(t *testing.T) {
	j := &job{dir: rundir.Probe(t.TempDir()), script: slurm.Script{Nodes: 2, TasksPerNode: 2, CPUsPerTask: 1, Worker: "/w"}, id: "1",
		answers: make([]*probe.Answer, 4), clocks: make([]nodeClock, 2)}
	writeJSON(t, j.dir.Question(), probe.Question{Token: token(), Interface: "lo"})
	ended := make(chan error, 4)
	for rank := range 4 {
		w := world.World{Rank: rank, Size: 4, LocalRank: rank % 2, LocalSize: 2, Node: rank / 2, Nodes: 2}
		go func() { ended <- probe.Run(t.Context(), j.dir, w, probe.Look(t.Context(), "v1")) }()
	}
	j.watch(t.Context())
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for node, c := range j.clocks {
		if c.err != nil || c.rounds != probe.Rounds || c.best.RoundTrip <= 0 || math.Abs(c.best.Offset) > c.best.RoundTrip/2+1e-5 {
			t.Errorf("node %d: %+v", node, c)
		}
	}
	list := j.judge(time.Minute)
	if list[0].Verdict != OK || of(list, "network")[0].Verdict != OK || len(of(list, "clock")) != 3 {
		t.Errorf("%+v", list)
	}
	// A loopback address only reaches the same host, which is reported as a failure.
	if f := of(list, "interface"); len(f) != 2 || f[0].Verdict != Fail {
		t.Errorf("%+v", f)
	}
}

// One node's clock is 100 s ahead; another node answers with the content of a different file.
func TestExchangeFiles(t *testing.T) {
	for _, test := range []struct {
		word  func(string) string
		wrong string
	}{
		{func(w string) string { return w }, ""},
		{func(string) string { return "stale" }, "something other than what was written"},
	} {
		dir := rundir.Probe(t.TempDir())
		go func() {
			if rundir.WriteFile(dir.Ready(0), nil, 0o600) != nil {
				return // the other side reports that there was no answer
			}
			for round := range probe.Rounds {
				word, err := probe.AwaitFile(t.Context(), dir.Ping(0, round), time.Minute)
				if err != nil {
					return
				}
				seen := float64(time.Now().UnixNano())/1e9 + 100
				time.Sleep(5 * time.Millisecond) // the node's processing time does not count as transfer time
				text, err := json.Marshal(probe.Pong{Word: test.word(string(word)), Seen: seen, Sent: float64(time.Now().UnixNano())/1e9 + 100})
				if err != nil || rundir.WriteFile(dir.Pong(0, round), text, 0o600) != nil {
					return
				}
			}
		}()
		c := exchangeFiles(t.Context(), dir, 0)
		switch {
		case test.wrong != "":
			if c.rounds != 0 || c.err == nil || !strings.Contains(c.err.Error(), test.wrong) {
				t.Errorf("%+v", c)
			}
		case c.err != nil || math.Abs(c.best.Offset-100) > c.best.RoundTrip/2+1e-5:
			t.Errorf("%+v", c)
		}
	}
}

// A job that failed according to both Slurm and its script is not waited for.
func TestWatchFailedJob(t *testing.T) {
	j := &job{dir: rundir.Probe(t.TempDir()), id: "1", answers: make([]*probe.Answer, 1), clocks: make([]nodeClock, 1),
		state: &slurm.Job{State: slurm.Failed, Word: "FAILED"}}
	if err := os.WriteFile(rundir.Folder(j.dir).Exit(0), []byte(`{"exit_code":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	j.watch(t.Context())
	if time.Since(begin) > fileGrace/2 {
		t.Error("waited for files that cannot come")
	}
	if j.answers[0] != nil || j.clocks[0].err == nil {
		t.Errorf("%+v", j.clocks)
	}
}

// take ignores other jobs with the same id or the same name.
func TestTake(t *testing.T) {
	j := &job{id: "5", script: slurm.Script{JobName: "x"}}
	j.take([]slurm.Job{{ID: "4", Name: "x", State: slurm.Failed}, {ID: "5", Name: "y", State: slurm.Failed}})
	if j.over() || j.state != nil {
		t.Error("another job's state was taken")
	}
	j.take([]slurm.Job{{ID: "5", Name: "x", State: slurm.Running}})
	if j.over() || j.state == nil {
		t.Error("not running")
	}
	j.take(nil)
	if !j.over() {
		t.Error("forgotten, and not over")
	}
}
