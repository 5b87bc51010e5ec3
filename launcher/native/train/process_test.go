package train

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// A job configures a rank that is a separate process.
type job struct {
	Point  study.Point
	World  world.World
	Events string
}

const jobVariable = "SCALEBENCH_TEST_JOB"

// TestMain makes this program one rank, if it was started as such.
func TestMain(m *testing.M) {
	text := os.Getenv(jobVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	f, err := os.OpenFile(j.Events, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err == nil {
		err = Run(context.Background(), j.Point, j.World, Options{Nonce: "n", Events: f, Timeout: 20 * time.Second})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startRanks starts every rank of p as a process and returns them with their
// event files.
func startRanks(t *testing.T, p study.Point) (ranks []*exec.Cmd, files []string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port := 1
	if p.Workers > 1 {
		ip, err := world.InterfaceAddress("lo")
		if err != nil {
			t.Fatal(err)
		}
		if port, err = world.FreePort(ip); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for r := range p.Workers {
		file := filepath.Join(dir, fmt.Sprintf("rank-%d.jsonl", r))
		text, err := json.Marshal(job{p, world.World{Rank: r, Size: p.Workers, Nodes: 1, Address: "127.0.0.1", Port: port}, file})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program)
		c.Env = append(os.Environ(), jobVariable+"="+string(text))
		c.Stderr = new(bytes.Buffer)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() })
		ranks, files = append(ranks, c), append(files, file)
	}
	return ranks, files
}

// trainedSome waits until a rank has reported steps.
func trainedSome(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(`"steps"`)) {
			return
		}
	}
	t.Fatalf("no steps in %s", file)
}

// A run killed at any moment leaves events that can be read: every line but an
// unfinished last one parses, and the steps have no gap.
func TestKilledRunLeavesReadableEvents(t *testing.T) {
	p := point("cnn", 1, 4)
	p.Workload.Train.Epochs = 1_000_000
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	withSteps := 0
	for i := range 8 {
		ranks, files := startRanks(t, p)
		if i == 0 || random.IntN(4) > 0 {
			trainedSome(t, files[0])
		}
		delay := time.Duration(random.IntN(40_000)) * time.Microsecond
		time.Sleep(delay)
		if err := ranks[0].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := ranks[0].Wait(); err == nil {
			t.Fatal("the run ended before it was killed")
		}
		content, err := os.ReadFile(files[0])
		if os.IsNotExist(err) {
			continue // killed before it had begun
		}
		if err != nil {
			t.Fatal(err)
		}
		reader := metrics.NewReader(bytes.NewReader(content), files[0], 0, 0)
		next := 0
		for {
			e, err := reader.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("killed after %v: %v", delay, err)
			}
			if e.Steps != nil {
				if e.Steps.First != next {
					t.Errorf("killed after %v: steps from %d where %d is next", delay, e.Steps.First, next)
				}
				next = e.Steps.First + len(e.Steps.Duration)
			}
			if e.Stop != nil {
				t.Errorf("killed after %v: there is a stop event", delay)
			}
		}
		if next > 0 {
			withSteps++
		}
		if rest := content[reader.Offset:]; bytes.ContainsRune(rest, '\n') {
			t.Errorf("killed after %v: the reader left %q", delay, rest)
		}
	}
	if withSteps == 0 {
		t.Error("no run was killed while it trained")
	}
}

// If one process is killed, the other names it in its error, and stops.
func TestKilledPeer(t *testing.T) {
	p := point("cnn", 2, 4)
	p.Workload.Train.Epochs = 1_000_000
	ranks, files := startRanks(t, p)
	trainedSome(t, files[0])
	trainedSome(t, files[1])
	if err := ranks[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// A rank that does not notice is killed, and has no stop event.
	defer time.AfterFunc(5*time.Minute, func() { _ = ranks[0].Process.Kill() }).Stop()
	_ = ranks[1].Wait() // killed
	if err := ranks[0].Wait(); err == nil {
		t.Error("rank 0 ended well although rank 1 was killed")
	}
	if said := ranks[0].Stderr.(*bytes.Buffer).String(); !strings.Contains(said, "rank 1 is gone") {
		t.Errorf("rank 0 says %q", said)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	events := readEvents(t, f)
	n := len(events)
	if n < 2 || events[n-2].Error == nil || !strings.Contains(events[n-2].Error.Message, "rank 1 is gone") || events[n-1].Stop == nil || events[n-1].Stop.Status != metrics.StopFailed {
		t.Errorf("the last events of rank 0 are not an error and a failed stop: %+v", events[max(0, n-2):])
	}
}
