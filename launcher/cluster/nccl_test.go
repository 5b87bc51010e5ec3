package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
)

func TestJudgeNCCL(t *testing.T) {
	well := probe.NCCL{Name: "NCCL 2.28.0", Path: "/lib/libnccl.so.2", Driver: "12.4", Devices: pointer(2)}
	double := well
	double.Name, double.Double = "DOUBLE of NCCL 2.28.0 (not NCCL, not a GPU)", true
	multiplies, cannot := well, well
	multiplies.CuBLAS, cannot.CuBLASError = "cuBLAS 12.9.3, /lib/libcublas.so.12", "cuBLAS cannot be loaded: libcublas.so.12: no such file"
	for _, test := range []struct {
		name   string
		seen   *probe.NCCL
		other  *probe.NCCL // of task 3
		result Verdict
		found  []string
	}{
		{"a default worker in one task", &well, nil, OK, []string{"NCCL 2.28.0"}},
		{"well", &well, &well, OK, []string{"NCCL 2.28.0, /lib/libnccl.so.2; CUDA 12.4, 2 GPUs"}},
		{"cuBLAS", &multiplies, &multiplies, OK, []string{"2 GPUs; cuBLAS 12.9.3, /lib/libcublas.so.12"}},
		{"no cuBLAS on a node", &multiplies, &cannot, Warn, []string{"libcublas.so.12: no such file"}},
		{"double", &double, &double, Warn, []string{"DOUBLE of NCCL 2.28.0"}},
		{"no library", &probe.NCCL{Error: "NCCL cannot be loaded: libnccl.so.2: no such file"}, &well, NotTested, []string{"libnccl.so.2: no such file"}},
		{"no GPU", &probe.NCCL{Name: "NCCL 2.28.0", Path: "/lib/libnccl.so.2", DriverError: "no CUDA-capable device"}, &well, NotTested, []string{"NCCL 2.28.0", "no CUDA-capable device"}},
		{"versions differ", &well, &probe.NCCL{Name: "NCCL 2.27.3", Path: "/lib", Driver: "12.4", Devices: pointer(2)}, Fail, []string{"different versions: NCCL 2.28.0, NCCL 2.27.3"}},
	} {
		j := healthy(t)
		for rank, a := range j.answers {
			if a.NCCL = test.seen; rank == 3 {
				a.NCCL = test.other
			}
		}
		list := of(j.judge(0), "NCCL")
		if len(list) != 1 || list[0].Verdict != test.result {
			t.Errorf("%s: %+v", test.name, list)
			continue
		}
		for _, want := range test.found {
			if !strings.Contains(list[0].Found, want) {
				t.Errorf("%s: %q does not say %q", test.name, list[0].Found, want)
			}
		}
	}
	j := healthy(t)
	if list := of(j.judge(0), "NCCL"); len(list) != 0 {
		t.Errorf("default workers are judged by NCCL: %+v", list)
	}
	j.answers[0].NCCL = &well
	j.script.GPUsPerNode = 0
	if list := of(j.judge(0), "NCCL"); len(list) != 0 {
		t.Errorf("a job without GPUs is judged by NCCL: %+v", list)
	}
}

// If the worker itself has no NCCL, ownNCCL asks the GPU variant next to it.
func TestOwnNCCL(t *testing.T) {
	worker := filepath.Join(t.TempDir(), "worker")
	f := ownNCCL(context.Background(), worker, probe.Facts{Host: "here"})
	if f.Verdict != NotTested || f.Found != "the worker is the default build, which cannot load NCCL" || !strings.Contains(f.Advice, "make worker-gpu") {
		t.Errorf("%+v", f)
	}
	script := "#!/bin/sh\necho '{\"host\":\"here\",\"nccl\":{\"name\":\"NCCL 2.28.0\",\"path\":\"/x\",\"driver\":\"12.4\",\"devices\":1}}'\n"
	if err := os.WriteFile(worker+"-gpu", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	f = ownNCCL(context.Background(), worker, probe.Facts{Host: "here"})
	if !strings.Contains(f.Found, "NCCL 2.28.0, /x; CUDA 12.4, 1 GPU") {
		t.Errorf("%+v", f)
	}
	if err := os.WriteFile(worker+"-gpu", []byte("#!/bin/sh\necho broken >&2; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f = ownNCCL(context.Background(), worker, probe.Facts{Host: "here"}); f.Verdict != NotTested || !strings.Contains(f.Found, "broken") {
		t.Errorf("%+v", f)
	}
}
