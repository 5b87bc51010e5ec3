package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// The GPU check is offered on the first partition with GPUs, with a command that a shell parses correctly.
// Without GPUs it is not offered.
func TestGPUCheck(t *testing.T) {
	half := 30 * time.Minute / 2
	d := &slurm.Description{
		Partitions: []slurm.Partition{{Name: "cpu", Nodes: []string{"n1"}}, {Name: "gpu", Nodes: []string{"n1", "n2"}, MaxTime: &half}},
		Nodes:      []slurm.Node{{Name: "n1"}, {Name: "n2", GPUs: []slurm.GPUs{{Type: "h100", Count: 4}}}},
	}
	site := study.DefaultSite()
	site.Account, site.Options = "it's", map[string]string{"constraint": "h100&nvlink", "contiguous": ""}
	site.Worker = filepath.Join(t.TempDir(), "bin", "scalebench-worker-gpu")
	site.Partitions = []study.Partition{{Name: "cpu"}, {Name: "gpu", GPUsPerNode: 4, GPUType: "h100"}}
	c := Cluster{Site: site, Script: func(p study.Planned) (slurm.Script, error) {
		return slurm.Script{Worker: site.Worker, Account: site.Account, Options: site.Options, Partition: p.Partition, GPUType: "h100"}, nil
	}}
	list := c.gpuCheck(d, c.uses(d))
	if len(list) != 1 || list[0].Check != "GPU check" || list[0].Subject != "gpu" || list[0].Verdict != NotTested {
		t.Fatalf("%+v", list)
	}
	before, command, ok := strings.Cut(list[0].Advice, "sbatch ")
	if want := "check scalebench on one of these GPUs: run make gpu-bundle, copy dist/gpu-check-linux-amd64 to a folder that the nodes share, then "; !ok || before != want {
		t.Errorf("%q", list[0].Advice)
	}
	out, err := exec.Command("sh", "-c", "printf '%s\\n' "+command).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := `--job-name=gpu-check
--partition=gpu
--account=it's
--nodes=1
--gpus-per-node=h100:1
--cpus-per-task=8
--constraint=h100&nvlink
--contiguous
--time=15
--wrap=cd /SHARED/gpu-check-linux-amd64 && ./gpu-check --time 13m
`
	if string(out) != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}

	folder := filepath.Join(filepath.Dir(filepath.Dir(site.Worker)), "dist", bundleName)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "gpu-check"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if advice := c.gpuCheck(d, c.uses(d))[0].Advice; !strings.HasPrefix(advice, "check scalebench on one of these GPUs: sbatch ") || !strings.HasSuffix(advice, "cd "+folder+" && ./gpu-check --time 13m'") {
		t.Errorf("%q", advice)
	}

	d.Nodes[1].GPUs = nil
	if list := c.gpuCheck(d, c.uses(d)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}
