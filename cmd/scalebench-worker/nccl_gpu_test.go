//go:build gpu

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// withFakes runs this binary as the worker, with the fake as its libraries.
func withFakes(t *testing.T, environment []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := gputest.BuildKernels(t.TempDir(), "libgpu-double.so", ptx.Source())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "SCALEBENCH_TEST_AS_WORKER=1", nccl.Variable+"="+path, cuda.Variable+"="+path, cuda.BLASVariable+"="+path), environment...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	return out.String(), complaint.String(), err
}

func TestGPUProbe(t *testing.T) {
	out, complaint, err := withFakes(t, []string{"CUDA_DOUBLE_GPUS=2"}, "probe")
	if err != nil {
		t.Fatal(err, complaint)
	}
	var f probe.Facts
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	n := f.NCCL
	if n == nil || !n.Double || !strings.HasPrefix(n.Name, "DOUBLE of NCCL") || n.Devices == nil || *n.Devices != 2 || n.Driver != "12.4" || !strings.HasPrefix(n.CuBLAS, "DOUBLE of cuBLAS") || n.Error != "" || n.DriverError != "" {
		t.Errorf("%+v", n)
	}
	if out, _, err = withFakes(t, []string{nccl.Variable + "=/nowhere/libnccl.so.2", cuda.Variable + "=/nowhere/libcuda.so.1"}, "probe"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	if n := f.NCCL; n == nil || !strings.Contains(n.Error, "/nowhere/libnccl.so.2") || !strings.Contains(n.DriverError, "/nowhere/libcuda.so.1") {
		t.Errorf("%+v", n)
	}
}

// The collective benchmark runs on the fake: correct sums pass, a wrong one ends it, and the
// table is marked as the fake's.
func TestGPUCollective(t *testing.T) {
	args := []string{"collective", "--ranks", "2", "--backend", "nccl", "--max", "64K", "--iterations", "2", "--warmup", "1"}
	out, complaint, err := withFakes(t, []string{"CUDA_DOUBLE_GPUS=2"}, args...)
	if err != nil || !strings.Contains(out, "2 ranks through nccl: DOUBLE, not a GPU") || strings.Contains(out, "share a GPU") {
		t.Errorf("%v %s\n%.300s", err, complaint, out)
	}
	if out, complaint, err = withFakes(t, []string{"SCALEBENCH_SHARE_GPU=1"}, args...); err != nil || !strings.Contains(out, "ranks share a GPU, not performance") {
		t.Errorf("%v %s\n%.300s", err, complaint, out)
	}
	// Each size has one warm-up, two timed iterations and one checked iteration; out of place comes
	// first.
	_, complaint, err = withFakes(t, []string{"CUDA_DOUBLE_GPUS=2", "NCCL_DOUBLE_CORRUPT=4"}, args...)
	if err == nil || !strings.Contains(complaint, "all_reduce of 8 bytes") {
		t.Errorf("a wrong sum: %v %s", err, complaint)
	}
	_, complaint, err = withFakes(t, nil, args...)
	if err == nil || !strings.Contains(complaint, "ncclInvalidUsage") {
		t.Errorf("two ranks on one GPU, unasked: %v %s", err, complaint)
	}
	_, complaint, err = withFakes(t, []string{"CUDA_DOUBLE_GPUS=3"}, append(args, "--ranks", "4")...)
	if err == nil || !strings.Contains(complaint, "more ranks (4) than GPUs (3)") {
		t.Errorf("more ranks than GPUs: %v %s", err, complaint)
	}
}

// ofStudy returns the run folder of a study's first point, which must have 2 workers.
func ofStudy(t *testing.T, text string) rundir.Folder {
	t.Helper()
	s, err := study.Parse("study.toml", []byte("[study]\nname = \"t\"\n"+text+"[resources]\ndevice = \"gpu\"\n[sweep]\nworkers = [2]\n"), framework.ForStudy())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		t.Fatal(err)
	}
	point, err := json.Marshal(plan.Points[0].Point)
	if err != nil {
		t.Fatal(err)
	}
	dir := rundir.Folder(t.TempDir())
	for path, content := range map[string]string{dir.Point(): string(point), dir.Nonce(): "0123456789abcdef\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runTwo runs both ranks of the folder's point on one GPU of the fake, and returns the warnings
// and versions that they recorded.
func runTwo(t *testing.T, dir rundir.Folder, command string) (doubts []string, versions map[string]string) {
	t.Helper()
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	var ranks sync.WaitGroup
	for rank := range 2 {
		w := world.World{Rank: rank, Size: 2, LocalRank: rank, LocalSize: 2, Nodes: 1, Address: "127.0.0.1", Port: port}
		ranks.Go(func() {
			if _, complaint, err := withFakes(t, append(w.Environ(), framework.RunVariable+"="+dir.Path(), "SCALEBENCH_SHARE_GPU=1"), command); err != nil {
				t.Errorf("rank %d: %v %s", rank, err, complaint)
			}
		})
	}
	ranks.Wait()
	for _, e := range events(t, dir, "rank") {
		if e.Note != nil {
			doubts = append(doubts, e.Note.Text)
		}
		if e.Environment != nil {
			versions = e.Environment.Versions
		}
	}
	return doubts, versions
}

// A study's run records the warnings as events, so that every table and figure shows
// them.
func TestGPUTimingCaveatsAreStored(t *testing.T) {
	dir := ofStudy(t, "[workload]\nkind = \"collective\"\nbackend = \"nccl\"\nmax_bytes = 64\niterations = 1\n")
	doubts, versions := runTwo(t, dir, "collective")
	if strings.Join(doubts, "|") != "DOUBLE, not a GPU|ranks share a GPU, not performance" || !strings.HasPrefix(versions["nccl"], "DOUBLE of NCCL") {
		t.Errorf("%q, NCCL %q", doubts, versions["nccl"])
	}
}

// A study's training on GPUs.
func TestGPUTraining(t *testing.T) {
	dir := ofStudy(t, "[workload]\nmodel = \"cnn\"\nprecision = \"tf32\"\nbatch = 2\nmax_steps = 3\n[data]\nkind = \"synthetic\"\ntrain_samples = 16\ntest_samples = 4\n")
	doubts, versions := runTwo(t, dir, "train")
	if len(doubts) != 3 || !strings.HasPrefix(versions["cublas"], "DOUBLE of cuBLAS") {
		t.Errorf("%q, cuBLAS %q", doubts, versions["cublas"])
	}
	stops := 0
	for _, e := range events(t, dir, "rank") {
		if e.Stop != nil && e.Stop.Status == metrics.StopDone && e.Stop.Steps == 3 {
			stops++
		}
	}
	if stops == 0 {
		t.Error("no rank made its three steps")
	}
}
