//go:build release

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

const bundle = "../../dist/gpu-check-linux-amd64"

// A node is the root folder of the programs under test, with busybox, a C library and the bundle.
// It has no Go, compiler or Python, and only a loopback network.
type node struct {
	t    *testing.T
	root string
}

// mostBytes limits the unpacked size of the bundle, so that it can be copied to a node in one go
// with the source tree (12 MiB).
const mostBytes = 50 << 20

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t, t.TempDir()}
	for _, dir := range []string{"bin", "dev/shm", "lib/x86_64-linux-gnu", "lib64", "proc", "tmp", "work"} {
		n.did(os.MkdirAll(filepath.Join(n.root, dir), 0o755))
	}
	n.write("dev/null", "")
	busybox, err := exec.LookPath("busybox")
	n.did(err)
	n.copy(busybox, "bin/busybox", 0o755)
	for _, name := range []string{"sh", "ifconfig"} {
		n.did(os.Symlink("busybox", filepath.Join(n.root, "bin", name)))
	}
	for _, name := range []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2"} {
		n.copy("/lib/x86_64-linux-gnu/"+name, "lib/x86_64-linux-gnu/"+name, 0o755)
	}
	n.copy("/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2", 0o755)
	if err := os.CopyFS(filepath.Join(n.root, "bundle"), os.DirFS(bundle)); err != nil {
		t.Fatalf("%v; run `make gpu-bundle`", err)
	}
	return n
}

func (n *node) did(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) copy(from, to string, mode os.FileMode) {
	n.t.Helper()
	content, err := os.ReadFile(from)
	n.did(err)
	n.did(os.MkdirAll(filepath.Join(n.root, filepath.Dir(to)), 0o755))
	n.did(os.WriteFile(filepath.Join(n.root, to), content, mode))
}

func (n *node) write(name, text string) {
	n.t.Helper()
	n.did(os.WriteFile(filepath.Join(n.root, name), []byte(text), 0o644))
}

// fakes installs the fakes of CUDA's libraries and returns the environment that names them. The
// power is constantly 250 W.
func (n *node) fakes(kernels fs.FS) []string {
	n.t.Helper()
	dir := n.t.TempDir()
	gpu, err := gputest.BuildKernels(dir, "libgpu-double.so", kernels)
	n.did(err)
	sensors, err := gputest.BuildNVML(dir)
	n.did(err)
	n.copy(gpu, "lib/libgpu-double.so", 0o755)
	n.copy(sensors, "lib/libnvml-double.so", 0o755)
	n.write("gpus", "gpu\npower 0:250\n")
	return []string{"SCALEBENCH_CUDA=/lib/libgpu-double.so", "SCALEBENCH_CUBLAS=/lib/libgpu-double.so", "SCALEBENCH_NCCL=/lib/libgpu-double.so",
		"SCALEBENCH_NVML=/lib/libnvml-double.so", gputest.NVMLVariable + "=/gpus"}
}

// check runs gpu-check on the node, as root of a user namespace without a network, and returns its
// exit code, its standard error and its results.
func (n *node) check(environment []string, args ...string) (code int, said string, r report) {
	n.t.Helper()
	const enter = `root=$1; shift; mount --bind /dev/null "$root/dev/null" && mount --rbind /proc "$root/proc" && mount -t tmpfs shm "$root/dev/shm" &&
		"$root/bin/busybox" ifconfig lo 127.0.0.1 up && cd "$root/work" && exec env -i PATH=/bin "$(command -v chroot)" "$root" /bin/sh -c 'cd /work; exec env "$@"' sh "$@"`
	cmd := exec.Command("unshare", slices.Concat([]string{"--map-root-user", "--mount", "--net", "sh", "-c", enter, "sh", n.root}, environment, []string{"/bundle/gpu-check"}, args)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(n.root, "work/gpu-check.json")); err == nil {
		n.did(json.Unmarshal(text, &r))
	}
	return cmd.ProcessState.ExitCode(), complaint.String(), r
}

// TestReleaseBundle runs all checks on the fakes on a bare node, in three calls with --time and
// --resume. Checks that need PyTorch, several GPUs or nccl-tests are
// left out.
func TestReleaseBundle(t *testing.T) {
	n := newNode(t)
	fakes := n.fakes(ptx.Source())
	first := []string{"--double", "--time", "20s"}
	code, said, r := n.check(fakes, first...)
	if code != exitUnfinished || r.Result != "unfinished" || r.count(passed) == 0 || r.count(pending) == 0 || r.count(failed) > 0 {
		t.Fatalf("the first call ended with %d, %s: %d passed, %d pending\n%s", code, r.Result, r.count(passed), r.count(pending), said)
	}
	if took := r.Calls[0].Seconds; took > 20 {
		t.Errorf("--time 20s took %.1f s\n%s", took, said)
	}
	before := r.count(passed)
	code, said, r = n.check(fakes, "--double", "--resume", "gpu-check.json", "--only", "collectives")
	if code != exitUnfinished || r.count(passed) <= before {
		t.Fatalf("the second call ended with %d, %s: %d passed after %d\n%s", code, r.Result, r.count(passed), before, said)
	}
	code, said, r = n.check(fakes, "--double", "--resume", "gpu-check.json")
	if code != exitPassed || r.Result != "passed" || len(r.Calls) != 3 {
		t.Fatalf("the third call ended with %d, %s, after %d calls\n%s", code, r.Result, len(r.Calls), said)
	}
	for _, o := range r.Parts {
		pytorch := strings.Contains(o.Name, "pytorch")
		if want := map[bool]string{true: leftOut, false: passed}[pytorch || o.Name == "collectives/nccl-tests" || o.Name == "scaling/gpus"]; o.Result != want {
			t.Errorf("%s: %s (%s), want %s", o.Name, o.Result, o.Why, want)
		}
		if o.Result == passed && !(o.Seconds > 0) || !(o.Estimate > 0) {
			t.Errorf("%s took %v s, estimated %v s", o.Name, o.Seconds, o.Estimate)
		}
	}
	// 250 W by NVML's counter and by its power, whose steps a short run may cut. On a busy
	// machine, too long a gap between two readings of the power leaves no area.
	energy := regexp.MustCompile(`\| GPU 0 \| \S+ J \| (?:\S+ J|none) \| (\S+) W \| (\S+) \| DOUBLE of NVML`).FindStringSubmatch(strings.Join(r.outcome("energy/nvml").Found, "\n"))
	if energy == nil {
		t.Fatalf("no row of GPU 0: %q", r.outcome("energy/nvml").Found)
	}
	for i, want := range []float64{250, 1} {
		if i == 1 && strings.Contains(energy[0], "| none |") && energy[2] == "–" {
			continue
		}
		if v, err := strconv.ParseFloat(energy[i+1], 64); err != nil || v < 0.8*want || v > 1.2*want {
			t.Errorf("%s, want about %g", energy[i+1], want)
		}
	}
	text, err := os.ReadFile(filepath.Join(n.root, "work/gpu-check.md"))
	n.did(err)
	for _, want := range []string{"# DOUBLE, not a GPU\n", ", sgd, adam, squared-norm, bfloat16, graph | passed |", "## Speed", "| model | batch | trainer | fp32 | tf32 | bf16 |\n|---|---|---|---|---|---|\n| cnn | 16 | native | ", " ms: products ", "noticed on that rank only"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
}

// TestReleaseBundleFindsFaults checks that faults of libraries and kernels are found, and that the
// results say which values are wrong and how to reproduce them.
func TestReleaseBundleFindsFaults(t *testing.T) {
	n := newNode(t)
	fakes := n.fakes(ptx.Source())
	for _, test := range []struct {
		fault, only string
		fails       string
		values      bool   // the first wrong values are recorded
		want        string // in the failure
	}{
		{"CUBLAS_DOUBLE_CORRUPT=3", "products", "products/exact", true, `"kernel":"cublasGemmEx"`},
		{"CUDA_DOUBLE_LAUNCH_ERROR=2", "kernels/adam", "kernels/adam", false, "kernel adam: cuLaunchKernel"},
		{"CUDA_DOUBLE_ILLEGAL_ADDRESS=1", "kernels/sgd", "kernels/sgd", false, "CUDA error 700"},
		{"NCCL_DOUBLE_CORRUPT=33", "collectives/correct", "collectives/correct", true, `"kernel":"NCCL's all-reduce"`},
		{"NCCL_DOUBLE_ERROR=33", "collectives/correct", "collectives/correct", false, "ncclRemoteError"},
	} {
		code, said, r := n.check(append(slices.Clone(fakes), test.fault), "--double", "--only", test.only)
		o := r.outcome(test.fails)
		if code != exitFailed || o.Failure == nil || !strings.Contains(said, test.fails+": FAILED") {
			t.Errorf("%s: exit code %d, %s is %s\n%s", test.fault, code, test.fails, o.Result, said)
			continue
		}
		text, err := json.Marshal(o.Failure)
		n.did(err)
		if !strings.Contains(string(text), test.want) || !strings.Contains(o.Failure.Reproduce, test.fault) || !strings.Contains(o.Failure.Reproduce, "--only "+test.fails) {
			t.Errorf("%s: %s", test.fault, text)
		}
		if values := len(o.Failure.Differences) > 0 && len(o.Failure.Differences[0].First) > 0; values != test.values {
			t.Errorf("%s: values are kept: %v, want %v\n%s", test.fault, values, test.values, text)
		}
		if o.Failure.Versions["nccl"] == "" || len(o.Failure.DriverLog) == 0 {
			t.Errorf("%s: %s", test.fault, text)
		}
	}
}

// A kernel that computes something else is named, with its launch.
func TestReleaseBundleFindsKernel(t *testing.T) {
	ptx, err := fs.ReadFile(ptx.Source(), "kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	before, sgd, ok := bytes.Cut(ptx, []byte(".entry sgd("))
	own, after, closed := bytes.Cut(sgd, []byte("\n}\n"))
	wrong := bytes.Replace(own, []byte("sub.rn.f32"), []byte("add.rn.f32"), 1)
	if !ok || !closed || bytes.Equal(own, wrong) {
		t.Fatal("the PTX of sgd is not as expected")
	}
	wrong = slices.Concat(before, []byte(".entry sgd("), wrong, []byte("\n}\n"), after)
	n := newNode(t)
	code, said, r := n.check(n.fakes(fstest.MapFS{"kernels.ptx": {Data: wrong}}), "--double", "--only", "kernels")
	f := r.outcome("kernels/sgd").Failure
	if code != exitFailed || f == nil || len(f.Differences) == 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if d := f.Differences[0]; d.Launch == nil || d.Launch.Kernel != "sgd" || d.Launch.Blocks != 4 || d.Launch.Threads != 256 || !strings.Contains(d.Launch.Arguments, "Count:1003") || len(d.First) == 0 || d.First[0].Got == d.First[0].Want {
		t.Errorf("%+v", d)
	}
	if failed := r.count(failed); failed != 2 { // the check of graphs uses that kernel, too
		t.Errorf("%d checks failed, want 2\n%s", failed, said)
	}
}

// Where there are several GPUs, each rank has one, and scaling over them is measured.
func TestReleaseBundleSeveralGPUs(t *testing.T) {
	n := newNode(t)
	code, said, r := n.check(append(n.fakes(ptx.Source()), "CUDA_DOUBLE_GPUS=4"), "--double", "--only", "collectives,scaling")
	if code != exitPassed {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	page := r.markdown()
	for _, want := range []string{"4 × DOUBLE, not a GPU", "4 ranks, each on its GPU", "the CNN through the fakes, once each", "\n| 4 | ", "no all_reduce_perf"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "not performance") {
		t.Errorf("a GPU for each rank is marked:\n%s", page)
	}
}

// TestReleaseBundleWithoutDriver checks that with the libraries of PyTorch's wheels but without a
// driver, one line says what is missing.
func TestReleaseBundleWithoutDriver(t *testing.T) {
	n := newNode(t)
	n.fakes(ptx.Source())
	n.copy(filepath.Join(n.root, "lib/libgpu-double.so"), "site/nvidia/nccl/lib/libnccl.so.2", 0o755)
	n.copy(filepath.Join(n.root, "lib/libgpu-double.so"), "site/nvidia/cublas/lib/libcublas.so.12", 0o755)
	// A fake interpreter, which prints the output of libraries.py.
	n.did(os.WriteFile(filepath.Join(n.root, "bin/python3"), []byte("#!/bin/sh\necho '{\"nccl\": \"/site/nvidia/nccl/lib/libnccl.so.2\", \"cublas\": \"/site/nvidia/cublas/lib/libcublas.so.12\", \"pytorch\": true}'\n"), 0o755))
	code, said, _ := n.check(nil)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if code != exitFailed || len(lines) != 1 {
		t.Errorf("exit code %d, %d lines:\n%s", code, len(lines), said)
	}
	for _, want := range []string{"libcuda.so.1", "/site/nvidia/nccl/lib/libnccl.so.2", "/site/nvidia/cublas/lib/libcublas.so.12"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not name %s", said, want)
		}
	}
}

// TestReleaseBundleSize checks that the bundle is small and stripped, and starts with an old C library.
func TestReleaseBundleSize(t *testing.T) {
	files, err := os.ReadDir(bundle)
	if err != nil {
		t.Fatalf("%v; run `make gpu-bundle`", err)
	}
	total := int64(0)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		if info.Mode()&0o100 == 0 {
			continue
		}
		path := filepath.Join(bundle, f.Name())
		if sections, err := exec.Command("objdump", "-h", path).Output(); err != nil || bytes.Contains(sections, []byte(".debug_")) {
			t.Errorf("%s is not stripped (%v)", f.Name(), err)
		}
		symbols, err := exec.Command("objdump", "-T", path).CombinedOutput()
		if err != nil && !bytes.Contains(symbols, []byte("not a dynamic object")) {
			t.Errorf("objdump %s: %v\n%s", f.Name(), err, symbols)
		}
		for _, m := range regexp.MustCompile(`GLIBC_2\.(\d+)`).FindAllSubmatch(symbols, -1) {
			if minor, err := strconv.Atoi(string(m[1])); err != nil || minor > 34 {
				t.Errorf("%s needs %s; want at most GLIBC_2.34", f.Name(), m[0])
			}
		}
	}
	if total > mostBytes {
		t.Errorf("the bundle has %d bytes, want at most %d", total, mostBytes)
	}
	t.Logf("%.1f MiB", float64(total)/(1<<20))
}
