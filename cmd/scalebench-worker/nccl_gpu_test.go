//go:build gpu

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/cuda"
	"github.com/scalebench/scalebench/launcher/nccl"
	"github.com/scalebench/scalebench/launcher/nccl/double"
	"github.com/scalebench/scalebench/launcher/probe"
)

// withDouble is this binary as the worker, with the double as its libraries.
func withDouble(t *testing.T, environment []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	path, err := double.Build(t.TempDir(), "libnccl-double.so")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "SCALEBENCH_TEST_AS_WORKER=1", nccl.Variable+"="+path, cuda.Variable+"="+path), environment...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	return out.String(), complaint.String(), err
}

func TestGPUProbe(t *testing.T) {
	out, complaint, err := withDouble(t, []string{"NCCL_DOUBLE_GPUS=2"}, "probe")
	if err != nil {
		t.Fatal(err, complaint)
	}
	var f probe.Facts
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	n := f.NCCL
	if n == nil || !n.Double || !strings.HasPrefix(n.Name, "DOUBLE of NCCL") || n.Devices == nil || *n.Devices != 2 || n.Driver != "12.4" || n.Error != "" || n.DriverError != "" {
		t.Errorf("%+v", n)
	}
	if out, _, err = withDouble(t, []string{nccl.Variable + "=/nowhere/libnccl.so.2", cuda.Variable + "=/nowhere/libcuda.so.1"}, "probe"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err)
	}
	if n := f.NCCL; n == nil || !strings.Contains(n.Error, "/nowhere/libnccl.so.2") || !strings.Contains(n.DriverError, "/nowhere/libcuda.so.1") {
		t.Errorf("%+v", n)
	}
}

// The collective benchmark through the double: right sums pass, a wrong one ends
// it, and the table says what it is of.
func TestGPUCollective(t *testing.T) {
	args := []string{"collective", "--ranks", "2", "--backend", "nccl", "--max", "64K", "--iterations", "2", "--warmup", "1"}
	out, complaint, err := withDouble(t, []string{"NCCL_DOUBLE_GPUS=2"}, args...)
	if err != nil || !strings.Contains(out, "2 ranks through nccl: DOUBLE, not a GPU") || strings.Contains(out, "share a GPU") {
		t.Errorf("%v %s\n%.300s", err, complaint, out)
	}
	if out, complaint, err = withDouble(t, []string{"SCALEBENCH_SHARE_GPU=1"}, args...); err != nil || !strings.Contains(out, "ranks share a GPU, not performance") {
		t.Errorf("%v %s\n%.300s", err, complaint, out)
	}
	// Of each size: one to warm up, two that are timed, and the one that is
	// checked; out of place comes first.
	_, complaint, err = withDouble(t, []string{"NCCL_DOUBLE_GPUS=2", "NCCL_DOUBLE_CORRUPT=4"}, args...)
	if err == nil || !strings.Contains(complaint, "all_reduce of 8 bytes") {
		t.Errorf("a wrong sum: %v %s", err, complaint)
	}
	_, complaint, err = withDouble(t, nil, args...)
	if err == nil || !strings.Contains(complaint, "ncclInvalidUsage") {
		t.Errorf("two ranks on one GPU, unasked: %v %s", err, complaint)
	}
	_, complaint, err = withDouble(t, []string{"NCCL_DOUBLE_GPUS=3"}, append(args, "--ranks", "4")...)
	if err == nil || !strings.Contains(complaint, "4 ranks on this node and 3 GPUs") {
		t.Errorf("more ranks than GPUs: %v %s", err, complaint)
	}
}
