//go:build cgo

package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// A job is the work of one rank, which is a separate process.
type job struct {
	Point         study.Point
	World         world.World
	Events, Model string        // files
	Timeout       time.Duration // 0: long enough for a busy machine
}

// JobVariable names the environment variable with a rank's job. A program that
// starts ranks calls Rank where the variable is set.
const JobVariable = "SCALEBENCH_GPU_CHECK_JOB"

// Rank trains as one rank of Run's.
func Rank() error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(JobVariable)), &j); err != nil {
		return fmt.Errorf("%s: %w", JobVariable, err)
	}
	f, err := os.OpenFile(j.Events, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	if j.Timeout == 0 {
		j.Timeout = 3 * time.Minute
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return train.Run(ctx, j.Point, j.World, train.Options{
		Nonce: "n", Events: f, ModelFile: j.Model, Timeout: j.Timeout, JoinTimeout: 3 * time.Minute,
		OpenGPU: func(ctx context.Context, o cpu.Options, precision string, g *collective.Group, w world.World) (train.GPU, error) {
			e, err := gpu.Open(ctx, gpu.Options{Options: o, Precision: precision, Timeout: j.Timeout}, g, w, os.Getenv)
			if err != nil {
				return nil, err
			}
			return e, nil
		},
	})
}

// An Outcome is one rank's output.
type Outcome struct {
	Said   string // standard error of the rank
	Failed bool
	Events []metrics.Event
}

// First returns the first event of a kind.
func (o Outcome) First(t gpucheck.T, kind string) metrics.Event {
	t.Helper()
	for _, e := range o.Events {
		if e.Kind() == kind {
			return e
		}
	}
	t.Fatalf("no %s event: %s", kind, o.Said)
	return metrics.Event{}
}

// A Start says how the ranks of a training are started.
type Start struct {
	Command     []string         // a program that calls Rank
	Timeout     time.Duration    // for a rank that waits for another; 0: minutes
	Environment []string         // added to all ranks' environment
	Own         map[int][]string // added to single ranks' environment
	// During is called when all ranks have been started; nil: nothing is.
	During func(ranks []*exec.Cmd, files []string)
}

// Run starts every rank of p and waits for all. trained is nil if no model was saved.
func (s Start) Run(t gpucheck.T, p study.Point) (list []Outcome, trained *netspec.Trained) {
	t.Helper()
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	saved := filepath.Join(dir, "model.safetensors")
	var ranks []*exec.Cmd
	var files []string
	for r := range p.Workers {
		w := world.World{Rank: r, Size: p.Workers, LocalRank: r, LocalSize: p.Workers, Nodes: 1, Address: "127.0.0.1", Port: port}
		files = append(files, filepath.Join(dir, fmt.Sprintf("rank-%d.jsonl", r)))
		text, err := json.Marshal(job{p, w, files[r], saved, s.Timeout})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(s.Command[0], s.Command[1:]...)
		c.Env = slices.Concat(os.Environ(), []string{JobVariable + "=" + string(text)}, s.Environment, s.Own[r])
		c.Stderr = new(bytes.Buffer)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() }) // in case it hangs
		ranks = append(ranks, c)
	}
	if s.During != nil {
		s.During(ranks, files)
	}
	for r, c := range ranks {
		o := Outcome{Failed: c.Wait() != nil, Said: c.Stderr.(*bytes.Buffer).String()}
		if o.Events, err = events(files[r]); err != nil {
			t.Fatalf("rank %d: %v; %s", r, err, o.Said)
		}
		list = append(list, o)
	}
	if text, err := os.ReadFile(saved); err == nil {
		if trained, err = netspec.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	return list, trained
}

func events(file string) (list []metrics.Event, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for reader := metrics.NewReader(f, file, 0, 0); ; {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
}
