package telemetry

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// A batch stores what was added: values, gaps, and a single number for a column that does not change.
func TestBatch(t *testing.T) {
	var b batch
	same, rising := Gauge("cpus", "", "x", "", 1, 4), Counter("cpu", "", "y", "s", 0.01, 0)
	with := func(count int64) Reading { r := rising; r.Count = count; return r }
	b.add(0, []Reading{same})
	b.add(10, []Reading{same, with(1500)})
	b.add(10, []Reading{same, with(1600)}) // at the same time
	b.add(20, []Reading{same, with(-1)})
	b.add(30, []Reading{same, with(1700)})
	got := b.take(map[string]string{"cpu": "late", "energy": "forbidden"})
	e := metrics.Event{Telemetry: got}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	n := func(v int64) *int64 { return &v }
	want := &metrics.Telemetry{Tick: 0.001, At: []int64{0, 10, 20, 30}, Missing: map[string]string{"energy": "forbidden"}, Columns: []metrics.TelemetryColumn{
		{Name: "cpus", Source: "x", Scale: 1, Least: 4},
		{Name: "cpu", Source: "y", Unit: "s", Counter: true, Scale: 0.01, Least: 1500, Above: []*int64{nil, n(0), nil, n(200)}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v := got.Columns[1].Value(3); math.Abs(v-17) > 1e-9 || !math.IsNaN(got.Columns[1].Value(0)) {
		t.Errorf("the last value is %g, want 17", v)
	}
	if len(b.at) != 0 {
		t.Error("take did not start a new batch")
	}
}

// The file of a stopped sampler can be read, is complete, and has a first and a last sample even if the run was
// very short.
func TestSampler(t *testing.T) {
	var out bytes.Buffer
	events, err := metrics.NewWriter(&out, metrics.Start{Writer: "telemetry", WorldSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	root := tree(t, process(100, 7, "5", 200, 0, 10, 20, 1000, 10, ours))
	s := Start(events, Options{Root: root, Every: time.Millisecond, Marks: marks})
	if !s.Stop() {
		t.Fatal("it did not stop")
	}
	var kinds []string
	for r := metrics.NewReader(&out, "x", 0, 0); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind() == "telemetry" && len(e.Telemetry.At) < 1 {
			t.Error("no sample")
		}
		kinds = append(kinds, e.Kind())
	}
	if diff := cmp.Diff([]string{"start", "telemetry", "stop"}, kinds); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkSample measures one sample on this machine, with the given number of processes in the run.
func BenchmarkSample(b *testing.B) {
	for _, count := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(count), func(b *testing.B) {
			b.Setenv("SCALEBENCH_BENCHMARK", strconv.Itoa(os.Getpid()))
			var list []*exec.Cmd
			for range count {
				c := exec.Command("sleep", "600")
				if err := c.Start(); err != nil {
					b.Fatal(err)
				}
				list = append(list, c)
			}
			defer func() {
				for _, c := range list {
					_ = c.Process.Kill()
					_ = c.Wait()
				}
			}()
			n := newNode(Options{Marks: []Mark{{"SCALEBENCH_BENCHMARK", strconv.Itoa(os.Getpid())}}})
			n.sample()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := threadTime()
			for b.Loop() {
				n.sample()
			}
			b.ReportMetric(float64(threadTime()-before)/float64(b.N)/1e6, "cpu-ms/sample")
		})
	}
}
