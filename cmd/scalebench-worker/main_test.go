package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// The test binary is the worker when it is called as one: the supervisor starts
// itself as the native trainer.
func TestMain(m *testing.M) {
	if os.Getenv("SCALEBENCH_TEST_AS_WORKER") != "" {
		os.Exit(run(os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// scalebench checks studies without linking the trainer, so its list of models must equal the
// trainer's.
func TestNativeModels(t *testing.T) {
	trainer, known := slices.Sorted(slices.Values(train.Models())), slices.Sorted(slices.Values(framework.NativeModels))
	if !slices.Equal(trainer, known) {
		t.Errorf("the trainer has %v, launcher/framework says %v", trainer, known)
	}
}

func TestAddress(t *testing.T) {
	var out, complaint bytes.Buffer
	if code := run([]string{"scalebench-worker", "address", "--interface", "lo"}, &out, &complaint); code != 0 {
		t.Fatalf("exit code %d: %s", code, &complaint)
	}
	fields := strings.Fields(out.String())
	if len(fields) != 2 || net.ParseIP(fields[0]) == nil {
		t.Fatalf("printed %q, want an address and a port", out.String())
	}
	out.Reset()
	if code := run([]string{"scalebench-worker", "address", "--interface", "nosuch0"}, &out, &complaint); code == 0 || out.Len() > 0 {
		t.Errorf("an interface that is not there: exit code %d, %q", code, &out)
	}
}

// runFolder creates a run folder for a tiny point with that many epochs.
func runFolder(t *testing.T, epochs int) rundir.Folder {
	t.Helper()
	s, err := study.Parse("study.toml", []byte(`
[study]
name = "t"
[workload]
model = "mlp"
batch = 16
warmup_epochs = 0
learning_rate = 0.01
epochs = 1
[data]
kind = "synthetic"
train_samples = 256
test_samples = 64
[sweep]
workers = [1]
`), framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Points[0].Point
	p.Workload.Train.Epochs = epochs
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	dir := rundir.Folder(t.TempDir())
	for path, content := range map[string]string{dir.Point(): string(text), dir.Nonce(): "0123456789abcdef\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// supervisor returns a command that runs this binary as "scalebench-worker run", rank 0 of 1.
func supervisor(t *testing.T, dir rundir.Folder) *exec.Cmd {
	t.Helper()
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1", Port: port}
	cmd := exec.Command(os.Args[0], "run", "--place", "environment", "--dir", dir.Path(), "--commit", "abc123")
	cmd.Env = append(append(os.Environ(), w.Environ()...), "SCALEBENCH_TEST_AS_WORKER=1", "SLURM_JWT=secret", "NCCL_DEBUG=WARN")
	return cmd
}

// events reads one writer's file.
func events(t *testing.T, dir rundir.Folder, writer string) []metrics.Event {
	t.Helper()
	path := dir.EventFile(writer, 0, 0)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []metrics.Event
	for r := metrics.NewReader(f, path, 0, 0); ; {
		e, err := r.Next()
		if err != nil {
			return list
		}
		list = append(list, e)
	}
}

func TestSupervise(t *testing.T) {
	dir := runFolder(t, 1)
	if out, err := supervisor(t, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list := events(t, dir, "supervisor")
	last := list[len(list)-1]
	if len(list) != 3 || list[1].Environment == nil || last.Stop == nil || last.Stop.Status != metrics.StopDone {
		t.Fatalf("the supervisor wrote %+v", list)
	}
	e := list[1].Environment
	if e.GitCommit != "abc123" || e.CPUs < 1 || e.MemoryBytes == 0 || e.Kernel == "" || e.Interface == nil || e.Interface.Name != "lo" {
		t.Errorf("environment %+v", e)
	}
	if e.Variables["NCCL_DEBUG"] != "WARN" || e.Variables["SLURM_JWT"] != "" {
		t.Errorf("variables %v: want NCCL_DEBUG, not SLURM_JWT, which is a secret", e.Variables)
	}
	ranks := events(t, dir, "rank")
	if stop := ranks[len(ranks)-1].Stop; stop == nil || stop.Status != metrics.StopDone || stop.Epochs != 1 {
		t.Errorf("the rank's last event is %+v", ranks[len(ranks)-1])
	}
	// A second process for the same rank is refused, and the existing files stay unchanged.
	out, err := supervisor(t, dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another process has rank 0") {
		t.Errorf("a second supervisor: %v\n%s", err, out)
	}
	if again := events(t, dir, "supervisor"); len(again) != len(list) {
		t.Errorf("the second supervisor wrote into the first one's file")
	}
}

// A signal to the supervisor reaches the program, which ends regularly: the measurements are
// kept, and both event files have the reason.
func TestSuperviseSignal(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		dir := runFolder(t, 100_000)
		cmd := supervisor(t, dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		rank := dir.EventFile("rank", 0, 0)
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if info, err := os.Stat(rank); err == nil && info.Size() > 4096 {
				break
			}
			if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatal("the program did not get going")
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Errorf("%v: the supervisor of an interrupted program ended with 0", signal)
		}
		list := events(t, dir, "rank")
		if stop := list[len(list)-1].Stop; stop == nil || stop.Status != metrics.StopInterrupted || stop.Steps == 0 || stop.Cause == "" {
			t.Errorf("%v: the rank's last event is %+v", signal, list[len(list)-1])
		}
		list = events(t, dir, "supervisor")
		if stop := list[len(list)-1].Stop; stop == nil || stop.Status != metrics.StopFailed || !strings.Contains(stop.Cause, signal.String()) {
			t.Errorf("%v: the supervisor's last event is %+v", signal, list[len(list)-1])
		}
	}
}

// A failing program's reason and exit code are recorded.
func TestSuperviseFailure(t *testing.T) {
	dir := runFolder(t, 1)
	point, err := os.ReadFile(dir.Point())
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(point), `"kind":"synthetic","path":""`, `"kind":"cifar10","path":"`+filepath.Join(dir.Path(), "nothing")+`"`, 1)
	if err := os.WriteFile(dir.Point(), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := supervisor(t, dir).Run(); err == nil {
		t.Error("ended with 0")
	}
	found := false
	for _, e := range events(t, dir, "rank") {
		found = found || e.Error != nil && e.Error.Where == "data" && strings.Contains(e.Error.Message, "data_batch_1.bin is missing")
	}
	if !found {
		t.Errorf("no error event names the missing file: %+v", events(t, dir, "rank"))
	}
}
