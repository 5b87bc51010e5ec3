package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// worker is a fake of the worker's GPU variant. Its checks pass, fail, end the process, or hang
// until the file "go" exists.
const worker = `#!/bin/sh
cd "$(dirname "$0")"
case $1 in
checks) echo '[{"name": "kernels/good", "seconds": 1}, {"name": "kernels/bad", "seconds": 1}, {"name": "kernels/dies", "seconds": 1}, {"name": "kernels/slow", "seconds": 1}, {"name": "kernels/long", "seconds": 100000}, {"name": "products/good", "seconds": 1}]' ;;
probe) cat facts ;;
check) while read name; do
	case $name in
	*/good) echo "{\"name\": \"$name\", \"seconds\": 0.1, \"log\": [\"all of it\"]}" ;;
	*/bad) echo "{\"name\": \"$name\", \"failure\": {\"said\": [\"weights: 1 of 9\"], \"differences\": [{\"what\": \"weights\", \"wrong\": 1, \"first\": [{\"index\": 4, \"got\": \"NaN\", \"want\": \"0.5\"}], \"launch\": {\"kernel\": \"adam\", \"blocks\": 3}}]}}" ;;
	*/dies) echo "Segmentation fault" >&2; exit 3 ;;
	*/slow) [ -e go ] || exec sleep 600; echo "{\"name\": \"$name\"}" ;;
	esac
done ;;
esac
`

const facts = `{"nccl": {"name": "NCCL 2.28.0", "path": "/lib/libnccl.so.2", "driver": "12.8", "devices": 1, "gpu": "NVIDIA H100", "cublas": "cuBLAS 12.8.4, /lib/libcublas.so.12"}}`

// A fixture is a folder with the fake worker.
type fixture struct {
	*testing.T
	dir string
}

func newFixture(t *testing.T) fixture {
	b := fixture{t, t.TempDir()}
	b.write("worker", worker)
	b.write("facts", facts)
	return b
}

func (b fixture) write(name, text string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o700); err != nil {
		b.Fatal(err)
	}
}

func (b fixture) file(name string) string { return filepath.Join(b.dir, name) }

// check runs the command, and returns its exit code, its output and its results.
func (b fixture) check(args ...string) (int, string, *report) {
	b.Helper()
	var out, complaint bytes.Buffer
	if !strings.Contains(strings.Join(args, " "), "--resume") {
		args = append(args, "--output", b.file("gpu-check.json"))
	}
	code := run(b.Context(), append([]string{"--worker", b.file("worker"), "--scalebench", b.file("nothing")}, args...), &out, &complaint)
	r, err := load(b.file("gpu-check.json"))
	if err != nil {
		r = &report{}
	}
	return code, out.String() + complaint.String(), r
}

// A failure is recorded with its values. Neither it nor a worker that ends prevents other
// checks.
func TestFailures(t *testing.T) {
	b := newFixture(t)
	b.write("go", "")
	code, said, r := b.check("--only", "kernels/good", "--only", "kernels/bad,kernels/dies", "--only", "products")
	if code != exitFailed || r.Result != "failed" {
		t.Fatalf("exit code %d: %s", code, said)
	}
	for name, want := range map[string]string{"kernels/good": passed, "kernels/bad": failed, "kernels/dies": failed, "products/good": passed} {
		if o := r.outcome(name); o.Result != want || !strings.Contains(said, name+": ") {
			t.Errorf("%s: %s, want %s\n%s", name, o.Result, want, said)
		}
	}
	f := r.outcome("kernels/bad").Failure
	if f == nil || len(f.Differences) != 1 || f.Differences[0].First[0].Got != "NaN" || f.Differences[0].Launch.Kernel != "adam" || f.Versions["nccl"] != "2.28.0" ||
		!strings.HasSuffix(f.Reproduce, "./gpu-check --only kernels/bad --output repro.json") {
		t.Errorf("%+v", f)
	}
	if f := r.outcome("kernels/dies").Failure; f == nil || !strings.Contains(f.Said[0], "exit status 3") || !strings.Contains(f.Said[0], "Segmentation fault") {
		t.Errorf("%+v", f)
	}
	page, err := os.ReadFile(b.file("gpu-check.md"))
	if err != nil || !strings.Contains(string(page), "## kernels/bad failed") {
		t.Errorf("%v\n%s", err, page)
	}
	b.check("--only", "kernels/good") // the earlier results are kept
	if before, err := load(b.file("old-gpu-check.json")); err != nil || before.Result != "failed" {
		t.Errorf("%v", err)
	}
}

// A part that hangs is ended at its limit. After two of one check, its other parts are not run.
func TestHangs(t *testing.T) {
	hangs := func(ctx context.Context, _ *outcome) error {
		<-ctx.Done()
		return fmt.Errorf("waiting: %w", context.Cause(ctx))
	}
	made := func(_ context.Context, o *outcome) error { o.Found = []string{"made"}; return nil }
	c := &checker{options: options{Log: io.Discard, Output: filepath.Join(t.TempDir(), "r.json")}, report: &report{Calls: []call{{}}}, patience: 10 * time.Millisecond, hung: map[string][]string{}}
	err := c.makeParts(t.Context(), []part{{name: "kernels/a", run: hangs}, {name: "kernels/b", run: made}, {name: "kernels/c", run: hangs}, {name: "kernels/d", run: made}, {name: "products/a", run: made}}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"kernels/a": failed, "kernels/b": passed, "kernels/c": failed, "kernels/d": notMade, "products/a": passed} {
		if o := c.report.outcome(name); o.Result != want {
			t.Errorf("%s: %s, want %s", name, o.Result, want)
		}
	}
	if said := c.report.outcome("kernels/a").Failure.Said[0]; said != "waiting: ended after 10ms, the limit of this check" {
		t.Errorf("%q", said)
	}
	if why := c.report.outcome("kernels/d").Why; why != "kernels/a and kernels/c ran into their time limits" {
		t.Errorf("%q", why)
	}
}

// --time ends a check that takes longer than expected, and skips one that does not fit. --resume
// runs the rest, and searches the libraries again.
func TestTimeAndResume(t *testing.T) {
	b := newFixture(t)
	code, said, r := b.check("--time", "12s", "--only", "kernels/good,kernels/slow,kernels/long")
	if took := r.Calls[0].Seconds; took > 12 {
		t.Errorf("--time 12s took %.1f s", took)
	}
	if code != exitUnfinished || r.outcome("kernels/good").Result != passed || r.outcome("kernels/slow").Result != pending || r.outcome("kernels/long").Result != pending {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if why := r.outcome("kernels/slow").Why; !strings.Contains(why, "the time is over") {
		t.Errorf("%q", why)
	}
	b.write("go", "")
	code, said, r = b.check("--resume", b.file("gpu-check.json"), "--only", "kernels/slow")
	if code != exitUnfinished || r.outcome("kernels/slow").Result != passed || len(r.Calls) != 2 || r.Calls[0].Limit != 12 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if strings.Contains(said, "kernels/good") {
		t.Errorf("a check that --only does not name was made:\n%s", said)
	}
}

// If all results of --only passed, the check is still incomplete: --resume runs the rest.
func TestResumeAfterOnly(t *testing.T) {
	b := newFixture(t)
	if code, said, _ := b.check("--only", "kernels/good"); code != exitPassed {
		t.Fatalf("exit code %d: %s", code, said)
	}
	b.write("go", "")
	if _, said, r := b.check("--resume", b.file("gpu-check.json"), "--time", "10m"); r.outcome("kernels/bad").Result == pending {
		t.Errorf("kernels/bad was not made:\n%s", said)
	}
}

// Results of another machine are recorded without a GPU.
func TestRecordOfResults(t *testing.T) {
	b := newFixture(t)
	if code, said, _ := b.check("--only", "kernels/good"); code != exitPassed {
		t.Fatalf("exit code %d: %s", code, said)
	}
	b.write("facts", "no longer there")
	if code, said, _ := b.check("--resume", b.file("gpu-check.json"), "--record", b.file("")); code != exitError || !strings.Contains(said, "--record: ") || strings.Contains(said, "kernels/good") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A node of another kind, other fakes and other versions are refused.
func TestResumeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(b fixture)
		args   []string
		want   string
	}{
		"another GPU":     {func(b fixture) { b.write("facts", strings.ReplaceAll(facts, "H100", "A100")) }, nil, "the results so far are of 1 × NVIDIA H100, and this node has 1 × NVIDIA A100"},
		"fakes":           {func(fixture) {}, []string{"--double"}, "fakes: true"},
		"not the results": {func(b fixture) { b.write("gpu-check.json", "{}") }, nil, "not a gpu-check.json of this version"},
		"no file":         {func(b fixture) { os.Remove(b.file("gpu-check.json")) }, nil, "no such file"},
	} {
		b := newFixture(t)
		b.write("go", "")
		if code, said, _ := b.check("--only", "kernels/good,kernels/bad"); code != exitFailed {
			t.Fatal(said)
		}
		test.change(b)
		if code, said, _ := b.check(append(test.args, "--resume", b.file("gpu-check.json"))...); code != exitUsage || !strings.Contains(said, test.want) {
			t.Errorf("%s: exit code %d, %q; want %q", name, code, said, test.want)
		}
	}
}

// Parts that cannot be checked give the reason.
func TestCannotCheck(t *testing.T) {
	for name, test := range map[string]struct {
		facts string
		args  []string
		code  int
		want  string
	}{
		"no driver": {`{"nccl": {"name": "NCCL 2.28.0", "path": "/lib/libnccl.so.2", "driver_error": "CUDA's driver cannot be loaded: libcuda.so.1", "cublas_error": "cuBLAS cannot be loaded"}}`, nil, exitFailed,
			" s: no usable GPU: CUDA's driver cannot be loaded: libcuda.so.1 (run this on a node with a GPU and NVIDIA's driver); other libraries: NCCL 2.28.0, /lib/libnccl.so.2; cuBLAS not found\n"},
		"no GPU":        {`{"nccl": {"name": "NCCL 2.28.0", "devices": 0}}`, nil, exitFailed, "the driver sees none"},
		"a fake":        {strings.ReplaceAll(facts, "NVIDIA", "DOUBLE,"), nil, exitUsage, "or give --double"},
		"no fake":       {facts, []string{"--double"}, exitUsage, "is not the test fake"},
		"plain worker":  {`{}`, nil, exitFailed, "is not the GPU variant"},
		"unknown check": {facts, []string{"--only", "kernel"}, exitUsage, "want one of libraries, kernels, products, collectives, training, study, scaling, energy, pytorch"},
		"no time":       {facts, []string{"--time", "-1s"}, exitUsage, "--time -1s"},
		"an argument":   {facts, []string{"now"}, exitUsage, `"now" is one argument too many`},
		"no worker":     {facts, []string{"--worker", "/nowhere"}, exitError, "use the bundle"},
		"no option":     {facts, []string{"--tim"}, exitUsage, "not defined"},
	} {
		b := newFixture(t)
		b.write("facts", test.facts)
		code, said, _ := b.check(test.args...)
		if code != test.code || !strings.Contains(said, test.want) {
			t.Errorf("%s: exit code %d, want %d: %q; want %q", name, code, test.code, said, test.want)
		}
		if _, err := os.Stat(b.file("gpu-check.json")); (err == nil) != (code == exitFailed) {
			t.Errorf("%s: results were written: %v", name, err == nil)
		}
		if name == "no driver" && strings.Count(said, "\n") != 1 {
			t.Errorf("want one line:\n%s", said)
		}
	}
}

// For a worker that hung, the stack with our functions is recorded.
func TestFrames(t *testing.T) {
	const stacks = `SIGQUIT: quit
PC=0x4 m=0 sigcode=0

goroutine 0 [idle]:
runtime.futex(0x1)
	runtime/sys.s:557 +0x21

goroutine 7 gp=0xc0 m=3 mp=0xc1 [syscall, locked to thread]:
runtime.cgocall(0x1, 0xc0)
	runtime/cgocall.go:167 +0x4b
github.com/scalebench/scalebench/launcher/gpu/cuda._Cfunc_cuda_upload(0x7f)
	_cgo_gotypes.go:1 +0x4b
github.com/scalebench/scalebench/launcher/gpu/cuda.(*Device).Upload(0xc0, 0x1)
	github.com/scalebench/scalebench/launcher/gpu/cuda/device.go:1 +0x4b
github.com/scalebench/scalebench/launcher/gpucheck/suite.put[...](0xc0)
	github.com/scalebench/scalebench/launcher/gpucheck/suite/bench.go:1

goroutine 8 [running]:
github.com/scalebench/scalebench/launcher/world.FreePort(0x1)
`
	if got, want := strings.Join(frames(stacks), " < "), "cuda._Cfunc_cuda_upload < cuda.(*Device).Upload < suite.put[...]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := frames("killed"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

func TestList(t *testing.T) {
	b := newFixture(t)
	code, said, _ := b.check("--list")
	if code != exitPassed || !strings.HasPrefix(said, "libraries/driver ") || !strings.Contains(said, "kernels/good ") || !strings.Contains(said, "\nenergy/nvml ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat(b.file("gpu-check.json")); err == nil {
		t.Error("--list wrote results")
	}
}

func TestDriverLines(t *testing.T) {
	log := "<6>[ 1.0] usb 1-1: new device\n<4>[ 2.0] NVRM: Xid (PCI:0000:01:00): 31, pid=7, MMU Fault\n<6>[ 3.0] nvidia-nvlink: up\n"
	if got := strings.Join(driverLines([]byte(log)), "|"); got != "<4>[ 2.0] NVRM: Xid (PCI:0000:01:00): 31, pid=7, MMU Fault|<6>[ 3.0] nvidia-nvlink: up" {
		t.Errorf("%q", got)
	}
	if n := len(driverLines([]byte(strings.Repeat("NVRM: again\n", 100)))); n != mostLog {
		t.Errorf("%d lines are kept", n)
	}
}
