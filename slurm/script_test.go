package slurm

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// plainScript returns a small job on two nodes; the other scripts are variants of it.
func plainScript() Script {
	return Script{
		JobName: "cifar/mlp-2w-1f3c-r1-a1",
		Nodes:   2, TasksPerNode: 1, CPUsPerTask: 2,
		Time:    10 * time.Minute,
		Output:  "/scratch/runs/cifar/mlp-2w-1f3c-r1-a1/job.log",
		RunDir:  "/scratch/runs/cifar/mlp-2w-1f3c-r1-a1",
		Worker:  "/home/ada/bin/scalebench-worker",
		Command: []string{"/home/ada/bin/scalebench-worker", "train", "--run", "/scratch/runs/cifar/mlp-2w-1f3c-r1-a1"},
	}
}

func goldenScripts() map[string]Script {
	plain := plainScript()

	site := plainScript()
	site.Partition, site.Account, site.QOS = "gpu", "phys-042", "normal"
	site.Nodes, site.TasksPerNode, site.CPUsPerTask = 4, 4, 8
	site.GPUsPerNode, site.GPUType, site.MemoryPerNodeMB = 4, "a100", 240000
	site.Time, site.Exclusive, site.Requeue, site.SignalBefore = 26*time.Hour+30*time.Second, true, true, 90*time.Second
	site.CPUBind, site.Interface, site.Workdir = "cores", "ib0", "/scratch/my studies"
	site.Options = map[string]string{"constraint": "a100&nvlink", "contiguous": "", "comment": `say "hi" for $5`}
	site.Modules = []string{"GCC/12.3.0", "CUDA/12.4"}
	site.Setup = []string{`source "$HOME/venv/bin/activate"`, "export NCCL_DEBUG=WARN"}
	site.Environment = map[string]string{"NCCL_SOCKET_IFNAME": "ib0", "GREETING": "it's $HOME"}

	pyxis := plainScript()
	pyxis.GPUsPerNode, pyxis.Hint = 1, "nomultithread"
	pyxis.Container = Container{Runtime: "pyxis", Image: "nvcr.io#nvidia/pytorch:24.05-py3", Mounts: []string{"/data:/data:ro"}, Workdir: "/workspace"}

	apptainer := plainScript()
	apptainer.GPUsPerNode = 2
	apptainer.Workdir = "/scratch/ada"
	apptainer.Container = Container{Runtime: "apptainer", Image: "/images/torch 2.4.sif", Mounts: []string{"/data:/data"}}

	array := site
	array.JobName, array.RunDir, array.Output = "cifar/array-1f3c", "", "/scratch/runs/cifar/array-1f3c/job.log"
	array.Pack = &Pack{Dir: "/scratch/runs/cifar/array-1f3c", Runs: 6, Array: true, Limit: 2}
	array.Command = []string{"/home/ada/bin/scalebench-worker", "run"}

	allocation := pyxis
	allocation.JobName, allocation.RunDir, allocation.Output = "cifar/allocation-1f3c", "", "/scratch/runs/cifar/allocation-1f3c/job.log"
	allocation.Pack = &Pack{Dir: "/scratch/runs/cifar/allocation-1f3c", Runs: 6}
	allocation.Command = array.Command

	inside := plainScript()
	inside.Inside, inside.GPUsPerNode = true, 1

	worker := plain.Worker
	staged := plainScript()
	staged.Stage = []string{worker, "stage", "--for", staged.JobName, "--to", "$TMPDIR", "--time", "10m0s"}
	staged.Unstage = []string{worker, "unstage", "--for", staged.JobName, "--to", "$TMPDIR"}

	stagedArray := array
	stagedArray.Stage, stagedArray.Unstage = staged.Stage, staged.Unstage
	stagedAllocation := allocation
	stagedAllocation.Stage, stagedAllocation.Unstage = staged.Stage, staged.Unstage
	kept := inside
	kept.Stage = append(slices.Clone(staged.Stage), "--keep")

	// Environments as computing centres document them.
	modules := plainScript()
	modules.Setup = []string{"module list"}
	modules.Modules = []string{"gcc/12.2.0", "cuda/12.4.1", "openmpi/4.1.6-cuda"}

	conda := plainScript()
	conda.Modules = []string{"Miniforge3/24.1.2-0"}
	conda.Setup = []string{`eval "$(conda shell.bash hook)"`, "conda activate torch-2.4"}

	venv := plainScript()
	venv.Modules = []string{"python/3.11.5"}
	venv.Setup = []string{`source "$HOME/venvs/torch/bin/activate"`}

	return map[string]Script{"modules": modules, "conda": conda, "venv": venv,
		"staged": staged, "staged-array": stagedArray, "staged-allocation": stagedAllocation, "staged-inside": kept,
		"plain": plain, "site": site, "pyxis": pyxis, "apptainer": apptainer,
		"array": array, "allocation": allocation, "inside": inside}
}

func TestRenderGolden(t *testing.T) {
	for name, s := range goldenScripts() {
		t.Run(name, func(t *testing.T) {
			got := render(t, s)
			golden := filepath.Join("testdata", name+".sh")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("rendered script differs from %s; if that is meant: go test ./slurm -update\n%s", golden, d)
			}
			checkShell(t, golden)
		})
	}
}

func TestGoldenFilesAreAllRendered(t *testing.T) {
	files, err := filepath.Glob("testdata/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	scripts := goldenScripts()
	for _, f := range files {
		if _, ok := scripts[strings.TrimSuffix(filepath.Base(f), ".sh")]; !ok {
			t.Errorf("%s belongs to no script in this test", f)
		}
	}
}

func render(t *testing.T, s Script) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Render(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// shellcheck fails the test if shellcheck reports anything. It needs the build tag slurm, since shellcheck is a
// Debian package.
var shellcheck = func(*testing.T, string) {}

// checkShell fails the test if bash or shellcheck reports anything.
func checkShell(t *testing.T, path string) {
	t.Helper()
	check := exec.Command("bash", "-n", path)
	check.Env = append(os.Environ(), "LC_ALL=C") // bash warns about locales that are not installed
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("bash -n %s: %v\n%s", path, err, out)
	}
	shellcheck(t, path)
}

func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		in   time.Duration
		want string
	}{
		{time.Second, "00:01:00"},
		{time.Minute, "00:01:00"},
		{time.Minute + 1, "00:02:00"},
		{90 * time.Minute, "01:30:00"},
		{24 * time.Hour, "1-00:00:00"},
		{50*time.Hour + 61*time.Second, "2-02:02:00"},
	} {
		if got := (Script{Time: tt.in}).TimeLimit(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestDirectiveQuoting(t *testing.T) {
	// As sbatch 22.05 parses them (see TestDirectivesReachSlurm, build tag slurm).
	for _, tt := range []struct{ value, want string }{
		{"", "#SBATCH --comment"},
		{"a100", "#SBATCH --comment=a100"},
		{"a b", `#SBATCH --comment="a b"`},
		{"a#b", `#SBATCH --comment="a#b"`},
		{`say "hi" \ $HOME`, `#SBATCH --comment="say \"hi\" \\ $HOME"`},
		{"it's", `#SBATCH --comment="it's"`},
	} {
		got, err := directive("comment", tt.value)
		if err != nil || got != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.value, got, err, tt.want)
		}
	}
	for _, value := range []string{"a\nb", "a\rb", "\x00", "a\u0085b"} {
		if got, err := directive("comment", value); err == nil {
			t.Errorf("%q became %q", value, got)
		}
	}
}

func TestValidateNamesEveryProblem(t *testing.T) {
	s := Script{
		JobName: "a b", TasksPerNode: -1, GPUType: "a100", SignalBefore: -1, Output: `a\b`,
		Hint: "compute_bound", CPUBind: "cores", QOS: "a\nb",
		Options:     map[string]string{"nodes": "3", "Bad_Name": "", "comment": "a\nb"},
		Environment: map[string]string{"1A": "", "MASTER_PORT": "1", "SLURM_JOB_ID": "1", "SLURM_MPI_TYPE": "pmix"},
		Setup:       []string{"a\r"},
		RunDir:      "runs", Command: []string{"-x"},
		Container: Container{Runtime: "docker"},
	}
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`JobName is "a b"`, "Nodes is 0", "TasksPerNode is -1", "CPUsPerTask is 0", "Time is 0s",
		"SignalBefore", "GPUType", "Output", "one or the other", `QOS is "a\nb"`, `Options "nodes" is decided by Nodes`,
		`Options "Bad_Name" is not`, `Options "comment"`, `Environment has "1A"`, `Environment has "MASTER_PORT"`, `Environment has "SLURM_JOB_ID"`, "Setup line 1",
		`RunDir is "runs"`, "Worker is", "Command is", `Runtime is "docker"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no mention of %s in:\n%v", want, err)
		}
	}
	var b bytes.Buffer
	if s.Render(&b) == nil || b.Len() > 0 {
		t.Errorf("rendered nevertheless: %q", b.String())
	}
}

func TestValidateContainer(t *testing.T) {
	for _, c := range []Container{
		{Image: "x.sif"},
		{Runtime: "pyxis"},
		{Runtime: "apptainer", Image: "--bind"},
		{Runtime: "pyxis", Image: "x", Mounts: []string{"/data"}},
		{Runtime: "pyxis", Image: "x", Mounts: []string{"/a:/b,/c:/d"}},
	} {
		s := plainScript()
		s.Container = c
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "Container.") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	s := plainScript()
	s.RunDir = "/a:b"
	s.Container = Container{Runtime: "apptainer", Image: "x.sif"}
	if s.Validate() == nil {
		t.Error("a path with a colon was taken as a mount")
	}
}

func TestRenderWithSiteTemplate(t *testing.T) {
	var b bytes.Buffer
	site := "#!/bin/bash -l\n{{template \"directives\" .}}\n#SBATCH --wckey=physics\n{{template \"body\" .}}\n"
	if err := plainScript().RenderWith(&b, "site.sh.tmpl", site); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(render(t, plainScript())), "#!/bin/bash\n# Written by scalebench; a new submission writes it again.\n", "#!/bin/bash -l\n", 1)
	want = strings.Replace(want, "job.log\n#SBATCH --no-requeue\n", "job.log\n#SBATCH --no-requeue\n\n#SBATCH --wckey=physics\n", 1)
	if d := cmp.Diff(strings.ReplaceAll(want, "\n\n", "\n"), strings.ReplaceAll(b.String(), "\n\n", "\n")); d != "" {
		t.Errorf("(-built-in +site):\n%s", d)
	}

	for _, tt := range []struct{ text, want string }{
		{"#!/bin/bash\n{{.Nodez}}\n", "etc/site.sh.tmpl:2:"},
		{"#!/bin/bash\n\n{{if}}\n", "etc/site.sh.tmpl:3:"},
		{"#!/bin/bash\n{{template \"nope\" .}}", "nope"},
		// A template that would let a second copy of the job train.
		{"#!/bin/bash\n{{template \"prepare\" .}}\n{{template \"step\" .}}", "does not claim its attempt"},
		{"#!/bin/bash\n{{define \"claim\"}}true{{end}}{{template \"body\" .}}", "does not claim its attempt"},
		// A template that sets an option which the script's fields determine.
		{"#!/bin/bash\n{{template \"directives\" .}}\n#SBATCH -J mine\n{{template \"body\" .}}", "-J means job-name, which is decided by JobName"},
		{"#!/bin/bash\n#SBATCH --test-onl\n{{template \"directives\" .}}\n{{template \"body\" .}}", "line 2 of the script: --test-onl means test-only"},
	} {
		b.Reset()
		err := plainScript().RenderWith(&b, "etc/site.sh.tmpl", tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) || b.Len() > 0 {
			t.Errorf("%q: %v, wrote %q; want an error with %s", tt.text, err, b.String(), tt.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "a b", "it's", "$(touch x)", "`id`", "a\nb", "\\", "!", "~", "a=b", "--a=b", "\xff", "é", "-n", "''"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q, err := Quote(s)
		if err != nil {
			if !strings.Contains(s, "\x00") {
				t.Fatalf("%q refused: %v", s, err)
			}
			return
		}
		out, err := exec.Command("bash", "-c", "set -- "+q+`; [ $# = 1 ] && printf '%s' "$1"`).Output()
		if err != nil || string(out) != s {
			t.Fatalf("%q quoted as %s came back as %q (%v)", s, q, out, err)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	s := goldenScripts()["site"]
	var buf bytes.Buffer
	for b.Loop() {
		buf.Reset()
		if err := s.Render(&buf); err != nil {
			b.Fatal(err)
		}
	}
}
