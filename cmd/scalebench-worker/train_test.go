package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// A peer is one process of "scalebench-worker train" and its settings.
type peer struct {
	dir    rundir.Folder
	world  world.World
	cmd    *exec.Cmd
	output bytes.Buffer
	began  time.Time
}

// peers starts two processes with the same run folder that know each other's address.
func peers(t *testing.T, timeout string) (list [2]*peer) {
	t.Helper()
	dir := runFolder(t, 1)
	p, err := worker.LoadPoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	p.Workers, p.GlobalBatch = 2, 2*p.WorkerBatch
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Point(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for rank := range list {
		list[rank] = &peer{dir: dir, cmd: exec.Command(os.Args[0], "train"),
			world: world.World{Rank: rank, Size: 2, LocalRank: rank, LocalSize: 2, Nodes: 1, Address: "127.0.0.1", Port: port}}
		list[rank].cmd.Env = append(os.Environ(), timeoutVariable+"="+timeout)
	}
	return list
}

func (p *peer) start(t *testing.T) {
	t.Helper()
	p.cmd.Env = append(append(p.cmd.Env, p.world.Environ()...), "SCALEBENCH_TEST_AS_WORKER=1", framework.RunVariable+"="+p.dir.Path())
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
}

// refused waits for the process and checks that it failed at the rendezvous,
// within a time, with the same words on its terminal and in its events.
func (p *peer) refused(t *testing.T, want string, within time.Duration) {
	t.Helper()
	err := p.cmd.Wait()
	if took := time.Since(p.began); took > within {
		t.Errorf("rank %d took %v, want at most %v", p.world.Rank, took, within)
	}
	words := regexp.MustCompile(want)
	if err == nil || !words.Match(p.output.Bytes()) {
		t.Errorf("rank %d: %v, want %q: %s", p.world.Rank, err, want, &p.output)
	}
	var report *metrics.Error
	var stop *metrics.Stop
	f, err := os.Open(p.dir.EventFile("rank", p.world.Rank, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := metrics.NewReader(f, f.Name(), 0, 0); ; {
		e, err := r.Next()
		if err != nil {
			break
		}
		if e.Error != nil {
			report = e.Error
		}
		stop = e.Stop
	}
	if report == nil || report.Where != "rendezvous" || !words.MatchString(report.Message) {
		t.Errorf("rank %d: error event %+v", p.world.Rank, report)
	}
	if stop == nil || stop.Status != metrics.StopFailed || !words.MatchString(stop.Cause) {
		t.Errorf("rank %d: stop event %+v", p.world.Rank, stop)
	}
}

// Ranks of different runs refuse each other at the rendezvous, and both report
// why.
func TestWrongPeers(t *testing.T) {
	// patience is long enough for both to start on a busy machine. slack is the limit for cases that
	// need no waiting, half of the longest timeout.
	const patience, slack = 10 * time.Second, 30 * time.Second
	t.Run("another nonce", func(t *testing.T) {
		t.Parallel()
		two := peers(t, patience.String())
		two[1].dir = peers(t, patience.String())[1].dir
		if err := os.WriteFile(two[1].dir.Nonce(), []byte("fedcba9876543210\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, p := range two {
			p.start(t)
		}
		two[0].refused(t, "wrong nonce: it belongs to another run", patience+slack)
		two[1].refused(t, "rank 0 does not answer: the process listening at .* does not know this run's nonce", patience+slack)
	})
	t.Run("another size", func(t *testing.T) {
		t.Parallel()
		two := peers(t, "60s")
		two[1].world.Size = 3
		for _, p := range two {
			p.start(t)
		}
		for _, p := range two {
			p.refused(t, "rank 1 was started for a world of 3 ranks, rank 0 for 2", slack)
		}
	})
	t.Run("another version", func(t *testing.T) {
		t.Parallel()
		other := filepath.Join(t.TempDir(), "scalebench-worker")
		build := exec.Command("go", "build", "-ldflags", "-X github.com/scalebench/scalebench/cmd/version.stamped=v0.0.1-other", "-o", other, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		two := peers(t, "60s")
		two[1].cmd.Path = other
		for _, p := range two {
			p.start(t)
		}
		for _, p := range two {
			p.refused(t, "v0.0.1-other", slack)
		}
	})
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		two := peers(t, "2s")
		two[0].start(t)
		two[0].refused(t, "heard nothing at .* from rank 1", 2*time.Second+slack)
		two[1].start(t)
		two[1].refused(t, "rank 0 does not answer at", 2*time.Second+slack)
	})
}

func TestPeerTimeout(t *testing.T) {
	for _, test := range []struct {
		text, problem string
		want          time.Duration
	}{{"", "", 0}, {"90s", "", 90 * time.Second}, {"5m", "", 5 * time.Minute}, {"90", "want one like", 0}, {"-1s", `SCALEBENCH_PEER_TIMEOUT = "-1s"`, 0}, {"0s", "not a length of time", 0}} {
		got, err := peerTimeout(func(name string) string {
			if name == "SCALEBENCH_PEER_TIMEOUT" {
				return test.text
			}
			return ""
		})
		if test.problem == "" && (err != nil || got != test.want) {
			t.Errorf("%q: %v, %v; want %v", test.text, got, err, test.want)
		}
		if test.problem != "" && (err == nil || !regexp.MustCompile(test.problem).MatchString(err.Error())) {
			t.Errorf("%q: error %v, want %q", test.text, err, test.problem)
		}
	}
}

// A rank's clock starts with its process, so that the wait for the other ranks counts as initialisation: rank 1
// is started after rank 0 has started. TestInitialisationBeginsWithTheProcess (launcher/framework) checks the
// same for the Python trainers.
func TestInitialisationBeginsWithTheProcess(t *testing.T) {
	two := peers(t, "5m")
	before := time.Now()
	two[0].start(t)
	after := time.Now()
	two[1].start(t)
	for _, p := range two {
		if err := p.cmd.Wait(); err != nil {
			t.Fatalf("rank %d: %v\n%s", p.world.Rank, err, &p.output)
		}
	}
	f, err := os.Open(two[0].dir.EventFile("rank", 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var began, ready float64
	for r := metrics.NewReader(f, f.Name(), 0, 0); ; {
		e, err := r.Next()
		if err != nil {
			break
		}
		switch {
		case e.Start != nil:
			began = e.Start.Unix
		case e.Train != nil:
			ready = began + e.Time
		}
	}
	// A process's start is known to 10 ms, rounded down.
	if began < metrics.Unix(before)-0.02 || began > metrics.Unix(after)+0.01 {
		t.Errorf("the clock began %.3f s after the process was started", began-metrics.Unix(before))
	}
	if ready < metrics.Unix(after)-0.02 {
		t.Errorf("the training clock began %.3f s before rank 1 was started", metrics.Unix(after)-ready)
	}
}
