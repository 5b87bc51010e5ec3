//go:build slurm && frameworks

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// A ride is one framework to be tested on a real Slurm.
type ride struct {
	framework string
	family    string // of launcher/framework/locks; "": Debian's own interpreter
	versions  []string
	launch    string // resources.launch: how the ranks start
	nodes     int
	ranks     int  // on each node
	language  bool // it supports only language models
}

// rides are all frameworks except native, which other tests cover.
var rides = []ride{
	{"pytorch-ddp", "", []string{"torch"}, "srun", 2, 2, false},
	{"pytorch-ddp", "", []string{"torch"}, "torchrun", 2, 2, false},
	{"pytorch-ddp", "pytorch2", []string{"torch"}, "srun", 2, 2, false},
	{"pytorch-ddp", "pytorch2", []string{"torch"}, "torchrun", 2, 2, false},
	{"pytorch-fsdp", "pytorch2", []string{"torch"}, "srun", 2, 2, true},
	{"pytorch-fsdp", "pytorch2", []string{"torch"}, "torchrun", 2, 2, true},
	{"deepspeed", "deepspeed", []string{"torch", "deepspeed"}, "srun", 2, 2, true},
	{"deepspeed", "deepspeed", []string{"torch", "deepspeed"}, "torchrun", 2, 2, true},
	{"pytorch-horovod", "pytorch", []string{"torch", "horovod"}, "srun", 2, 2, false},
	{"tensorflow-horovod", "tensorflow", []string{"tensorflow", "horovod"}, "srun", 2, 2, false},
	{"keras-horovod", "tensorflow", []string{"tensorflow", "keras", "horovod"}, "srun", 2, 2, false},
	{"tensorflow-multiworker", "tensorflow", []string{"tensorflow"}, "srun", 2, 2, false},
	{"keras-mirrored", "tensorflow", []string{"tensorflow", "keras"}, "srun", 1, 2, false},
	{"jax", "jax", []string{"jax"}, "srun", 2, 2, true},
	{"mxnet", "mxnet", []string{"mxnet", "horovod"}, "srun", 2, 2, false},
}

var matrixFile = flag.String("matrix", "", "rewrite the matrix of frameworks in this document with what was tested")

// TestFrameworksOnSlurm runs each framework in its environment on nodes of a real Slurm. It
// compares one step of all ranks with the first step of a single worker on rank 0's
// samples: if the ranks had not found each other, both would end with the same parameters.
// A framework whose environment is unavailable is a failure, and the matrix states the
// error.
func TestFrameworksOnSlurm(t *testing.T) {
	b := newBench(t, startCluster(t, slurmtest.Options{Conf: "Licenses=turn:1"}))
	b.must(0, nil, "data", "synth", "data", "--train", "640", "--test", "101")
	// 640 sequences of 32 bytes, and 101.
	line := "the quick brown fox jumps over the lazy dog; "
	if err := os.MkdirAll(filepath.Join(b.dir, "text"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("text/train.txt", strings.Repeat(line, 500)[:640*32+1])
	b.write("text/test.txt", strings.Repeat(line, 100)[:101*32+1])
	rows := map[string]string{}
	for _, r := range rides {
		t.Run(r.framework+"/"+r.name(), func(t *testing.T) {
			b := &bench{t, b.dir, b.env}
			python, err := interpreter(r.family)
			if err != nil {
				rows[r.name()] = r.row("untested: "+query.LastLine(err.Error()), "–")
				t.Fatal(err)
			}
			rows[r.name()] = r.row("–", "failed") // remains if try fails the test
			versions := b.try(r, python)
			if t.Failed() {
				rows[r.name()] = r.row(versions, "failed")
				return
			}
			rows[r.name()] = r.row(versions, time.Now().Format(time.DateOnly))
		})
	}
	if len(rows) == 0 {
		t.Error("none of the frameworks that -run asks for is tried here")
	}
	if *matrixFile != "" {
		if err := rewriteMatrix(*matrixFile, rows); err != nil {
			t.Error(err)
		}
	}
}

// try runs a step and a few epochs, and returns the versions as text. The nodes
// have 4000 MB each, of which a worker gets its share: PyTorch 2 with its CUDA
// libraries takes more than the partition's default, and under torchrun twice.
func (b *bench) try(r ride, python string) (versions string) {
	t := b.t
	b.write("site.toml", fmt.Sprintf("python = %q\n[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\noptions = { licenses = \"turn\" }\n", python))
	data, models := "path = \"data\"", []string{"model = \"mlp\"", "model = \"resnet20\""}
	if r.language {
		data, models = "kind = \"text\"\npath = \"text\"", []string{"model = \"llama-100k\"\nsequence = 32", "model = \"gpt-100k\"\nsequence = 32"}
	}
	study := func(name, workload, sweep string) string {
		name = r.name() + "-" + name
		b.write(name+".toml", "[study]\nname = \""+name+"\"\n[workload]\n"+workload+`
batch = 16
learning_rate = 0.02
scale_learning_rate = "none"
warmup_epochs = 0
[data]
`+data+`
[resources]
time = "10m"
memory = "1900M"
workers_per_node = `+fmt.Sprint(r.ranks)+`
launch = "`+r.launch+`"
[sweep]
framework = ["`+r.framework+`"]
`+sweep)
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		return name
	}
	workers := r.nodes * r.ranks
	step := b.ends(study("step", models[0]+"\nmax_steps = 1", fmt.Sprintf("workers = [1, %d]\n", workers)))
	if len(step) != 2 || step[0].start != step[1].start {
		t.Fatalf("runs %+v, want two that start from the same parameters", step)
	}
	if step[0].stop == step[1].stop {
		t.Errorf("a step of %d workers is that of rank 0 alone", workers)
	}
	name := study("long", models[1]+"\nepochs = 2\ntargets = [0.11]", fmt.Sprintf("workers = [%d]\n", workers))
	long := b.ends(name)
	if want := 2 * (640 / 16 / workers); len(long) != 1 || long[0].steps != want || long[0].evaluations != 2 {
		t.Errorf("run %+v, want one of %d steps and 2 evaluations", long, want)
	}
	return b.versions(name, r.versions)
}

// These lines enclose the matrix in the document.
const (
	matrixBegin = "<!-- make test-frameworks writes this table: begin -->\n"
	matrixEnd   = "<!-- end -->\n"
	matrixHead  = "| framework | environment | versions | ranks started by | nodes × ranks each | passed on |\n|---|---|---|---|---|---|\n"
)

// name returns the unique name of a ride.
func (r ride) name() string {
	return r.framework + "-" + r.environment() + "-by-" + r.launch
}

// environment returns the lock file of the ride's interpreter.
func (r ride) environment() string {
	if r.family == "" {
		return "debian"
	}
	return r.family
}

// head returns the start of its line in the matrix.
func (r ride) head() string { return fmt.Sprintf("| `%s` | %s | ", r.framework, r.environment()) }

// row returns the framework's line of the matrix.
func (r ride) row(versions, passed string) string {
	versions = strings.ReplaceAll(versions, "|", "\\|")
	return fmt.Sprintf("%s%s | %s | %d × %d | %s |\n", r.head(), versions, r.launch, r.nodes, r.ranks, passed)
}

// rewriteMatrix puts the rows into the document's table. Rows of untested frameworks stay
// unchanged.
func rewriteMatrix(path string, rows map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), matrixBegin)
	old, after, ends := strings.Cut(rest, matrixEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %q and %q", path, matrixBegin, matrixEnd)
	}
	table := matrixHead
	for _, r := range rides {
		kept := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(r.head()) + ".* " + r.launch + " \\| .*\n").FindString(old)
		if row, tried := rows[r.name()]; tried {
			kept = row
		}
		table += kept
	}
	return os.WriteFile(path, []byte(before+matrixBegin+table+matrixEnd+after), 0o644)
}
