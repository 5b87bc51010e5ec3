package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/metrics/number"
)

// gpuVariant is the suffix of the worker's GPU variant.
const gpuVariant = "-gpu"

// ownNCCL reports which NCCL this host's worker would use. The default worker cannot load NCCL; its GPU variant
// may be next to it.
func ownNCCL(ctx context.Context, worker string, seen probe.Facts) Finding {
	f := Finding{Check: "NCCL", Subject: seen.Host, Verdict: NotTested}
	if seen.NCCL == nil {
		if _, err := exec.LookPath(worker + gpuVariant); err == nil {
			said, err := output(ctx, worker+gpuVariant, "probe")
			if err == nil {
				err = json.Unmarshal([]byte(said), &seen)
			}
			if err != nil {
				f.Found, f.Advice = oneLine(err.Error()), "build it again with make worker-gpu"
				return f
			}
		}
	}
	if seen.NCCL == nil {
		f.Found = "the worker is the default build, which cannot load NCCL"
		f.Advice = "for collectives between GPUs, build the GPU worker (make worker-gpu) and name it in the site file (worker = …); the Python frameworks bring their own NCCL"
		return f
	}
	f.Found, f.Verdict, f.Advice = judgeNCCL(*seen.NCCL)
	return f
}

// judgeNCCL judges what one process loaded.
func judgeNCCL(n probe.NCCL) (found string, r Verdict, advice string) {
	switch {
	case n.Error != "":
		return oneLine(n.Error), NotTested, "install NCCL, activate the environment of a PyTorch that brings it, or name the file: SCALEBENCH_NCCL=/…/libnccl.so.2"
	case n.DriverError != "":
		return fmt.Sprintf("%s, %s: %s", n.Name, n.Path, oneLine(n.DriverError)), NotTested, "NCCL needs a host with a GPU and its driver"
	}
	found = fmt.Sprintf("%s, %s; CUDA %s, %s", n.Name, n.Path, n.Driver, number.Count(*n.Devices, "GPU"))
	switch {
	case n.CuBLASError != "":
		found += "; " + oneLine(n.CuBLASError)
	case n.CuBLAS != "":
		found += "; " + n.CuBLAS
	}
	switch {
	case n.Double:
		return found, Warn, "this is scalebench's fake library for tests; unset SCALEBENCH_NCCL and SCALEBENCH_CUDA"
	case n.CuBLASError != "":
		return found, Warn, "the native trainer needs cuBLAS on GPUs: load the module of CUDA's toolkit, activate the environment of a PyTorch that brings it, or name the file: SCALEBENCH_CUBLAS=/…/libcublas.so.12"
	}
	return found, OK, ""
}

// nccl judges what the tasks of a job with GPUs loaded: all must have the same version. The default worker
// loads no NCCL and does not need it for the Python frameworks, which bring one.
func (j *job) nccl() []Finding {
	f := Finding{Check: "NCCL", Subject: j.use.subject()}
	if j.script.GPUsPerNode == 0 {
		return nil
	}
	var names []string
	worst := -1
	rank := []Verdict{OK, Warn, NotTested, Fail}
	for _, a := range j.answers {
		if a == nil || a.NCCL == nil {
			continue
		}
		found, r, advice := judgeNCCL(*a.NCCL)
		i := 2 * slices.Index(rank, r)
		if a.NCCL.CuBLASError != "" {
			i++ // every task may warn that it was not tested
		}
		if i > worst {
			worst, f.Found, f.Verdict, f.Advice = i, fmt.Sprintf("task %d on %s: %s", a.Rank, a.Host, found), r, advice
		}
		if a.NCCL.Error == "" && !slices.Contains(names, a.NCCL.Name) {
			names = append(names, a.NCCL.Name)
		}
	}
	switch {
	case worst < 0:
		return nil
	case len(names) > 1:
		f.Verdict, f.Found = Fail, "the tasks load different versions: "+strings.Join(names, ", ")
		f.Advice = "give all nodes the same version, with SCALEBENCH_NCCL=FILE in the site file's setup if needed"
	}
	return []Finding{f}
}
