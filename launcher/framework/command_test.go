package framework

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

func commandStart(change func(*study.Point)) Rank {
	p := study.Point{Framework: "command", Workers: 4, Nodes: 2, WorkersPerNode: 2, WorkerBatch: 32, GlobalBatch: 128, LearningRate: 0.4, Seed: 7, Repeat: 2,
		Command: study.Command{Start: "rank", Folder: "/studies"}, Resources: study.Resources{Device: "cpu", CPUsPerWorker: 3}}
	p.Workload.Kind, p.Workload.Train.Model, p.Workload.Train.LearningRate, p.Workload.Train.Epochs, p.Data.Path = "train", "m", 0.1, 5, "/data"
	if change != nil {
		change(&p)
	}
	return Rank{Point: p, Run: rundir.Folder("/runs/s/p"), World: world.World{Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, Node: 1, Nodes: 2,
		Hosts: []string{"n1", "n2"}, Address: "10.0.0.1", Port: 4321}}
}

// Every placeholder is replaced by the run's value; other text in braces is left alone.
func TestCommandPlaceholders(t *testing.T) {
	for text, want := range map[string]string{
		"{workers} {nodes} {workers_per_node} {cpus_per_worker} {device}": "4 2 2 3 cpu",
		"{batch} {global_batch} {learning_rate} {base_learning_rate}":     "32 128 0.4 0.1",
		"--epochs={epochs}": "--epochs=5",
		"{model} {seed} {repeat} {data} {study} {python}": "m 7 2 /data /studies python3",
		"{output}/log": "/runs/s/p/output/log",
		"{tp} {pp} {cp} {ep} {dp} {zero} {checkpointing}":                "1 1 1 1 4 0 false",
		"{rank} {local_rank} {node} {hosts} {master_addr}:{master_port}": "3 1 1 n1,n2 10.0.0.1:4321",
		`{"a": {"b": {batch}}} {} {1} {A} }{`:                            `{"a": {"b": 32}} {} {1} {A} }{`,
		"{{batch}} {{{batch}}}":                                          "{batch} {{batch}}",
	} {
		s := commandStart(func(p *study.Point) { p.Command.Run = study.CommandLine{"x", text} })
		if wrong := command.Check(s.Point); len(wrong) > 0 {
			t.Errorf("%q is refused: %v", text, wrong)
		}
		if got := command.Command(s); got[1] != want {
			t.Errorf("%q becomes %q, want %q", text, got[1], want)
		}
	}
}

// A layout reaches the program, and a parameter that older studies defined with such a name keeps its meaning.
func TestLayoutPlaceholders(t *testing.T) {
	s := commandStart(func(p *study.Point) {
		w := &p.Workload.Train
		w.TP, w.PP, w.EP, w.MicroBatch, w.Sequence, w.Zero = 2, 2, 2, 8, 512, 1
		p.MicroBatch = 8
		p.Own = study.Own{"cp": study.Scalar{Value: int64(7)}}
		p.Command.Run = study.CommandLine{"x", "{tp} {pp} {cp} {ep} {dp} {micro_batch} {accumulate} {sequence} {zero}"}
	})
	if wrong := command.Check(s.Point); len(wrong) > 0 {
		t.Errorf("refused: %v", wrong)
	}
	if got, want := command.Command(s)[1], "2 2 7 2 1 8 4 512 1"; got != want { // 32 samples, 8 at a time
		t.Errorf("%q, want %q", got, want)
	}
	uses := command.Uses(s.Point)
	for _, key := range []string{"workload.tp", "parameters.cp", "workload.micro_batch", "workload.batch"} {
		if !slices.Contains(uses, key) {
			t.Errorf("%s is not among %v", key, uses)
		}
	}
	// With both keys the batch is their product, and only those keys are used.
	s.Point.Workload.Train.Accumulate, s.Point.Command.Run = 4, study.CommandLine{"x", "{global_batch}"}
	if d := cmp.Diff([]string{"workload.micro_batch", "workload.accumulate"}, command.Uses(s.Point)); d != "" {
		t.Error(d)
	}
	if wrong := command.Check(commandStart(func(p *study.Point) { p.Command.Run = study.CommandLine{"x", "{accumulate}"} }).Point); !strings.Contains(wrong["command.run[1]"], "workload.accumulate is not set") {
		t.Errorf("%v", wrong)
	}
}

// Each placeholder that a key feeds names that key, so that sweeping the key is
// known to reach the program.
func TestCommandUses(t *testing.T) {
	for _, q := range placeholders {
		s := commandStart(func(p *study.Point) { p.Command.Directory = "{" + q.name + "}" })
		uses := command.Uses(s.Point)
		if diff := cmp.Diff(q.uses, uses); diff != "" {
			t.Errorf("{%s}: %s", q.name, diff)
		}
	}
	if uses := command.Uses(commandStart(func(p *study.Point) { p.Command.Run = study.CommandLine{"{{batch}}"} }).Point); len(uses) > 0 {
		t.Errorf("a literal brace uses %v", uses)
	}
}

// The error for a refused key names a placeholder that yields the key.
func TestPlaceholderOf(t *testing.T) {
	train, other := commandStart(nil).Point, study.Point{Workload: study.Workload{Kind: "collective"}}
	for _, test := range []struct {
		path string
		p    study.Point
		want string
	}{
		{"workload.batch", train, "{batch}"}, {"workload.model", train, "{model}"}, {"workload.tp", train, "{tp}"}, {"workload.accumulate", train, "{accumulate}"}, {"workload.scaling", train, "{batch}"}, {"workload.learning_rate", train, "{learning_rate}"},
		{"workload.reference_batch", train, "{learning_rate}"}, {"workload.epochs", train, "{epochs}"}, {"data.train_samples", train, "{train_samples}"},
		{"workload.decay", train, ""}, {"data.kind", train, ""}, {"workload.iterations", other, "{iterations}"}, {"data.kind", other, ""},
	} {
		if got := placeholderOf(test.path, test.p); got != test.want {
			t.Errorf("%s: %q, want %q", test.path, got, test.want)
		}
	}
}

// The documentation has every placeholder, and no other.
func TestCommandDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/frameworks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "| placeholder | |")
	section, _, found := strings.Cut(section, "\n\n")
	if !found {
		t.Fatal("docs/frameworks.md has no table of placeholders")
	}
	documented := named(section)
	for _, p := range placeholders {
		i := slices.Index(documented, "{"+p.name+"}")
		if i < 0 {
			t.Errorf("{%s} is not documented", p.name)
			continue
		}
		documented = slices.Delete(documented, i, i+1)
	}
	if len(documented) > 0 {
		t.Errorf("%v are documented, and there are none such", documented)
	}
}

func TestCommandRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*study.Point)
		path, want string
	}{
		"no program":    {func(p *study.Point) { p.Command.Run = nil }, "command.run", "missing"},
		"unknown":       {func(p *study.Point) { p.Command.Run[1] = "{batchsize}" }, "command.run[1]", "{batchsize} is not a placeholder; did you mean {batch}? To define it, set batchsize = … in [parameters]; {{batchsize}} is the text {batchsize}"},
		"rank of nodes": {func(p *study.Point) { p.Command.Start, p.Command.Run[1] = "node", "{rank}" }, "command.run[1]", "{node} says which node"},
		"no data":       {func(p *study.Point) { p.Data.Path, p.Command.Directory = "", "{data}" }, "command.directory", "{data} is used, but data.path is not set"},
		"no format":     {func(p *study.Point) { p.Command.Extract = []string{"timm", "tim"} }, "command.extract[1]", "unknown extractor \"tim\"; valid: "},
		"a wrong unit": {func(p *study.Point) {
			p.Command.Patterns = []study.Pattern{{Name: "throughput", Pattern: "(?P<value>x)", Unit: "s"}}
		}, "extract", "unit of throughput is \"s\""},
		"steps of no known batch": {func(p *study.Point) {
			p.Command.Patterns = []study.Pattern{{Name: "throughput", Pattern: "(?P<value>x)", Unit: "steps/s"}}
		}, "extract", "throughput in steps/s becomes samples/s by the batch, which [command] does not pass to the program"},
		"nobody reads": {func(p *study.Point) { p.Command.Columns = study.Variables{"accuracy": "acc"} }, "command.log", "nothing reads it"},
		"no epochs": {func(p *study.Point) {
			p.Workload.Train.Epochs, p.Command.Environment = 0, study.Variables{"E": "{epochs}"}
		}, "command.environment", "E: {epochs} is used, but workload.epochs is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			s := commandStart(func(p *study.Point) { p.Command.Run = study.CommandLine{"x", "y"}; c.change(p) })
			wrong := command.Check(s.Point)
			if len(wrong) != 1 || !strings.Contains(wrong[c.path], c.want) {
				t.Errorf("%v, want %s: %s", wrong, c.path, c.want)
			}
		})
	}
}

// The environment carries the command's own variables, the helper, and as many
// threads as a rank has CPUs.
func TestCommandEnvironment(t *testing.T) {
	t.Setenv("PYTHONPATH", "/mine")
	t.Setenv("OMP_NUM_THREADS", "")
	s := commandStart(func(p *study.Point) {
		p.Command.Environment = study.Variables{"OUT": "{output}", "PYTHONPATH": "{study}"}
	})
	want := []string{"PYTHONPATH=/runs/s/p/programs:/mine", "SCALEBENCH_OUTPUT=/runs/s/p/output", "OMP_NUM_THREADS=3",
		"OUT=/runs/s/p/output", "PYTHONPATH=/runs/s/p/programs:/mine:/studies"}
	if diff := cmp.Diff(want, command.Environment(s)); diff != "" {
		t.Error(diff)
	}
	s.Interface = "ib0"
	if list := command.Environment(s); !slices.Contains(list, "GLOO_SOCKET_IFNAME=ib0") || !slices.Contains(list, "NCCL_SOCKET_IFNAME=ib0") {
		t.Errorf("%q does not say which interface reaches the other nodes", list)
	}
	s.Point.Command.Start = "node"
	if list := command.Environment(s); !slices.Contains(list, "OMP_NUM_THREADS=6") {
		t.Errorf("%q: a process for 2 ranks with 3 CPUs each", list)
	}
	t.Setenv("OMP_NUM_THREADS", "1")
	if list := command.Environment(s); slices.Contains(list, "OMP_NUM_THREADS=3") {
		t.Error("a thread count that somebody set is overruled")
	}
	for directory, want := range map[string]string{"": "/studies", "sub": "/studies/sub", "{output}/{rank}": "/runs/s/p/output/3", "/abs": "/abs"} {
		if got := command.Directory(commandStart(func(p *study.Point) { p.Command.Directory = directory })); got != want {
			t.Errorf("directory %q is %s, want %s", directory, got, want)
		}
	}
}

// With launch = "torchrun" the command's arguments are unchanged. One torchrun per node starts it: the torchrun of the
// command's interpreter, with the plan's numbers of nodes and the run's address.
func TestCommandTorchrun(t *testing.T) {
	by := func(change func(*study.Point)) Rank {
		s := commandStart(func(p *study.Point) {
			p.Resources.Launch = "torchrun"
			p.Command.Run = study.CommandLine{"venv/bin/python3.11", "train.py", "--x", "a b;$c"}
			if change != nil {
				change(p)
			}
		})
		s.World = world.World{Rank: 2, Size: 4, LocalSize: 2, Node: 1, Nodes: 2, Address: "10.0.0.1", Port: 4321}
		return s
	}
	want := []string{"venv/bin/python3.11", "-B", "-u", "/runs/s/p/programs/torchrun.py", "--nnodes=2", "--nproc_per_node=2", "--node_rank=1",
		"--rdzv_backend=static", "--master_addr=10.0.0.1", "--master_port=4321", "--max_restarts=0", "--redirects=1", "--tee=1", "--no_python",
		"venv/bin/python3.11", "train.py", "--x", "a b;$c"}
	s := by(nil)
	if diff := cmp.Diff(want, command.Command(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if wrong := command.check(s.Point); len(wrong) > 0 || !command.OncePerNode(s.Point) {
		t.Errorf("refused: %v", wrong)
	}
	if got := command.Command(by(func(p *study.Point) { p.Command.Run = study.CommandLine{"./train"} }))[0]; got != "python3" {
		t.Errorf("a program that is no Python is started by the torchrun of %q, want the site's interpreter", got)
	}
	if !slices.Contains(command.Environment(s), "OMP_NUM_THREADS=3") && os.Getenv("OMP_NUM_THREADS") == "" {
		t.Errorf("a rank has 3 CPUs: %v", command.Environment(s))
	}
	// The fingerprint describes the program, not its launcher.
	s.Point.Command.Folder = "/"
	if files := NamedFiles(command, s); files["train.py"] == "" || len(files["runs/s/p/programs/torchrun.py"]) > 0 {
		t.Errorf("own files %v", files)
	}
	for _, test := range []struct {
		change     func(*study.Point)
		path, want string
	}{
		{func(p *study.Point) { p.Command.Start = "node" }, "command.start", "keep one of the two"},
		{func(p *study.Point) { p.Command.Run = append(p.Command.Run, "{rank}") }, "command.run[4]", "read $RANK and $LOCAL_RANK"},
		{func(p *study.Point) {
			p.Command.Patterns = []study.Pattern{{Name: "a", Pattern: "(?P<value>.)", Per: "run", Of: "run"}}
		}, "command.log", "[default0]:"},
	} {
		if wrong := command.check(by(test.change).Point); !strings.Contains(wrong[test.path], test.want) || len(wrong) != 1 {
			t.Errorf("%s: %v, want %q", test.path, wrong, test.want)
		}
	}
}

// A command that is started once gets no variables that differ between ranks, keeps the threads of one rank,
// and prints for all ranks.
func TestCommandOnce(t *testing.T) {
	once := func(change func(*study.Point)) Rank {
		return commandStart(func(p *study.Point) {
			p.Command.Start, p.Command.Run, p.Command.PrintedBy = "once", study.CommandLine{"mpirun", "-np", "{workers}", "{nodes}"}, "first"
			if change != nil {
				change(p)
			}
		})
	}
	s := once(nil)
	if wrong := command.Check(s.Point); len(wrong) > 0 {
		t.Errorf("refused: %v", wrong)
	}
	if !command.OncePerNode(s.Point) || !command.Once(s.Point) || command.Once(commandStart(nil).Point) {
		t.Error("Once or OncePerNode is wrong")
	}
	t.Setenv("OMP_NUM_THREADS", "")
	if list := commandEnvironment(s); !slices.Contains(list, "OMP_NUM_THREADS=3") {
		t.Errorf("3 CPUs per worker give %v", list)
	}
	for key, tt := range map[string]struct {
		change func(*study.Point)
		want   string
	}{
		"command.run[3]":     {func(p *study.Point) { p.Command.Run[3] = "{node}" }, "{node} differs between the ranks, and start = \"once\""},
		"command.run[2]":     {func(p *study.Point) { p.Command.Run[2] = "{rank}" }, "{rank} differs between the ranks"},
		"command.printed_by": {func(p *study.Point) { p.Command.PrintedBy, p.Command.Extract = "last", []string{Time} }, "start = \"once\" starts one process"},
		"command.start":      {func(p *study.Point) { p.Resources.Launch = "torchrun" }, "\"once\" leaves the start of the ranks to the command"},
	} {
		if wrong := command.Check(once(tt.change).Point)[key]; !strings.Contains(wrong, tt.want) {
			t.Errorf("%s: %q, want %q", key, wrong, tt.want)
		}
	}
}

// scalebench.py in a run is the file of the Python package that reports trainings.
func TestHelperIsOfThePackage(t *testing.T) {
	got, err := os.ReadFile("programs/scalebench.py")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../python/src/scalebench/_events.py")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("programs/scalebench.py differs from the package's _events.py; `go generate ./launcher/framework` copies it")
	}
}
