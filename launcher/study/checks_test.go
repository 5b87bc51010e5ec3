package study

import (
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"
)

// Reading a point whose counts are outside their bounds is an error, since no plan can contain it.
func TestPointCheck(t *testing.T) {
	good := Point{Workers: 4, Nodes: 2, WorkersPerNode: 2, Repeat: 1}
	for want, change := range map[string]func(*Point){
		"":                          func(*Point) {},
		"workload.kind = \"tarin\"": func(p *Point) { p.Workload.Kind = "tarin" },
		"workers = 0, want 1":       func(p *Point) { p.Workers = 0 },
		"nodes = 0, want 1":         func(p *Point) { p.Nodes = 0 },
		"workers_per_node = -1":     func(p *Point) { p.WorkersPerNode = -1 },
		"repeat = 0, want 1":        func(p *Point) { p.Repeat = 0 },
		"beside = -1, want 0":       func(p *Point) { p.AuxRanks = -1 },
		"beside_nodes = -1, want 0": func(p *Point) { p.AuxNodes = -1 },
		"worker_batch = -1, want 0 to 1099511627776":           func(p *Point) { p.WorkerBatch = -1 },
		"global_batch = 1099511627777, want 0":                 func(p *Point) { p.GlobalBatch = 1<<40 + 1 },
		"micro_batch = -2, want 0":                             func(p *Point) { p.MicroBatch = -2 },
		"resources.time = -1ns, resources.memory = 0":          func(p *Point) { p.Resources.Time = -1 },
		"resources.time = 0s, resources.memory = -1, want 0 o": func(p *Point) { p.Resources.Memory = -1 },
	} {
		p := good
		change(&p)
		err := p.Check()
		if want == "" && err != nil {
			t.Errorf("a good point: %v", err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	p := good
	p.GlobalBatch = 1 << 40
	if err := p.Check(); err != nil {
		t.Errorf("the largest batch: %v", err)
	}
	p.Workers = maxWorkers + 1
	if p.Check() == nil {
		t.Error("more workers than a plan may have are accepted")
	}
}

// Six workers on three nodes and a load generator on a fourth: four nodes with two ranks
// each need two other ranks.
func TestShapeAndGather(t *testing.T) {
	p := Point{Workers: 6, Nodes: 3, WorkersPerNode: 2, AuxRanks: 2, AuxNodes: 1}
	if nodes, each := p.Shape(); p.Ranks() != 8 || nodes != 4 || each != 2 {
		t.Errorf("%d ranks, %d on each of %d nodes, want 8, 2 and 4", p.Ranks(), each, nodes)
	}
	p.OnOneNode()
	if nodes, each := p.Shape(); p.Nodes != 1 || p.WorkersPerNode != 6 || nodes != 1 || each != 7 {
		t.Errorf("on one node: %d nodes of %d workers, %d of %d ranks; want 1, 6, 1 and 7", p.Nodes, p.WorkersPerNode, nodes, each)
	}
}

// The learning rate is multiplied by the batch's ratio to the reference, here 4, or by
// its square root.
func TestPeakLearningRate(t *testing.T) {
	for scale, want := range map[string]float64{"linear": 0.4, "sqrt": 0.2, "none": 0.1} {
		w := Train{LearningRate: 0.1, ReferenceBatch: 128, ScaleLearningRate: scale}
		if got := w.PeakLearningRate(512); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %g, want %g", scale, got, want)
		}
	}
}

func TestPointsThatDoNotFit(t *testing.T) {
	s := site(t, variedSite+`[[variant]]
name = "loaded"
modules = ["cuda"]
[[variant]]
name = "boxed"
container = { runtime = "apptainer", image = "/other.sif" }
[[variant]]
name = "elsewhere"
partition = "cpu"
[[variant]]
name = "elsewhere-wide"
partition = "cpu"
cpus_per_worker = 2
`)
	for _, c := range []struct {
		variant       string
		local, inside string // what is wrong on this machine, and in an allocation
	}{
		{"", "", ""},
		{"unknown", "", ""},
		{"plain", "", ""},
		{"tuned", "only Slurm can meet its constraint", "only Slurm can meet its constraint"},
		{"loaded", "its modules are loaded by batch scripts", ""},
		{"boxed", "its container is started by batch scripts", ""},
		{"elsewhere", "it changes only the partition, cpu", ""},
		{"elsewhere-wide", "", ""},
		{"gpu", "", ""},
	} {
		for allocation, want := range map[bool]string{false: c.local, true: c.inside} {
			if got := s.Unfit(c.variant, allocation); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
				t.Errorf("%q, in an allocation %v: %q, want %q", c.variant, allocation, got, want)
			}
		}
	}
	if got := (*Site)(nil).Unfit("tuned", false); got != "" {
		t.Errorf("without a site: %q", got)
	}
}

// A copy of a site file is readable by others only if the file is, and never if it has
// lines that may hold secrets.
func TestSiteMode(t *testing.T) {
	for source, private := range map[string]bool{
		"python = \"python3\"\n":                               false,
		"setup = [\"module list\"]\n":                          true,
		"[environment]\nA = \"b\"\n":                           true,
		"[[variant]]\nname = \"v\"\npython = \"/p\"\n":         false,
		"[[variant]]\nname = \"v\"\nenvironment = {A = \"b\"}": true,
	} {
		s := site(t, source)
		for mode, want := range map[fs.FileMode]fs.FileMode{0o600: 0o600, 0o644: 0o644, 0o640: 0o640, 0o755: 0o644} {
			if private {
				want = 0o600
			}
			s.mode = mode
			if got := s.Mode(); s.Private() != private || got != want {
				t.Errorf("%q with mode %o: private %v, copy %o; want %v and %o", source, mode, s.Private(), got, private, want)
			}
		}
	}
}

func TestSiteSecretWarnings(t *testing.T) {
	s := site(t, `setup = ["module load gcc", "export API_TOKEN=hunter2hunter2"]
[environment]
A = "b"
DB_PASSWORD = "hunter2hunter2"
EMPTY_TOKEN = ""
[[variant]]
name = "plain"
python = "/p"
[[variant]]
name = "v"
environment = { HF_TOKEN = "hunter2hunter2" }
`)
	var got []string
	for _, p := range s.SecretWarnings() {
		word, _, _ := strings.Cut(p.Message, " looks like a secret")
		got = append(got, p.Path+": "+word)
	}
	want := []string{"environment: DB_PASSWORD", "variant[1].environment: HF_TOKEN", "setup[1]: part of it"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStageAndPriceProblems(t *testing.T) {
	const stage = "[stage]\npython = \"/venv\"\n"
	for source, want := range map[string]string{
		stage:                                       "",
		"python = \"/p\"\n" + stage:                 "stage.python: python names another",
		"[pythons]\npytorch = \"/p\"\n" + stage:     "stage.python: pythons names other",
		"[container]\nimage = \"/i.sif\"\n" + stage: "stage.python: the programs run in a container",
		"[[prices]]\nper = \"node\"\nhour = 1.0\ncurrency = \"EUR\"\n":      "",
		"[[prices]]\nper = \"node\"\nhour = 1.0\n":                          "prices[0].currency: missing",
		"[[prices]]\nper = \"cow\"\nhour = 1.0\ncurrency = \"EUR\"\n":       "prices[0].per: ",
		"[[prices]]\nper = \"node\"\nhour = -1.0\ncurrency = \"EUR\"\n":     "prices[0].hour: want 0 or more",
		"[[prices]]\nper = \"node\"\ncurrency = \"EUR\"\nvcpus = 4\n":       "prices[0].vcpus: is the size of a machine",
		"[[prices]]\nper = \"node\"\ncurrency = \"EUR\"\ngpus = 4\n":        "prices[0].gpus: is the size of a machine",
		"[[prices]]\nper = \"node\"\ncurrency = \"EUR\"\nmemory = \"4G\"\n": "prices[0].memory: is the size of a machine",
	} {
		problems := siteProblemsOf(t, source)
		if want == "" && len(problems) > 0 {
			t.Errorf("%s: %v", source, problems)
		}
		if want != "" && !slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Path+": "+p.Message, want) }) {
			t.Errorf("%s: %v, want %q", source, problems, want)
		}
	}
}

func TestInterpreter(t *testing.T) {
	s := site(t, variedSite)
	for framework, want := range map[string]string{"other": "/other", "pytorch": "python3"} {
		if got := s.Interpreter(framework); got != want {
			t.Errorf("%s: %q, want %q", framework, got, want)
		}
	}
}

// The last part of a key names it if only one key ends with it: batch means workload.batch, but
// kind is ambiguous.
func TestOverridable(t *testing.T) {
	list := Overridable()
	for name, want := range map[string]bool{
		"workload.batch": true, "batch": true, "study.repeats": true, "repeats": true, "resources.time": true,
		"workload.kind": true, "data.kind": true, "kind": false, "bath": false,
	} {
		if got := slices.Contains(list, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("not sorted, or some twice: %q", list)
	}
	for want, o := range map[string]Override{
		"workload.batch = 64":                     {Path: "workload.batch", Value: "64"},
		"workload.batch = 64 (128 in the file)":   {Path: "workload.batch", Value: "64", Was: "128"},
		"command.environment.HF_TOKEN":            {Path: "command.environment.HF_TOKEN", Value: `"secret"`, Was: `"other"`},
		`command.run = "train" ("x" in the file)`: {Path: "command.run", Value: `"train"`, Was: `"x"`},
	} {
		if got := o.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// If a replica has several workers, a strong-scaling batch is divided by replicas, and the error says so.
func TestStrongBatch(t *testing.T) {
	for keys, want := range map[string]string{
		"":       "the batch of 4 is shared by all workers, and 8 workers do not divide it",
		"tp = 1": "the batch of 4 is shared by all workers, and 8 workers do not divide it",
	} {
		_, err := layoutPlan(t, strings.Replace(layoutStudy, "batch = 4", "batch = 4\nscaling = \"strong\"\n"+keys, 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", keys, err, want)
		}
	}
	text := strings.Replace(layoutStudy, "batch = 4", "batch = 6\nscaling = \"strong\"\ntp = 2", 1)
	if _, err := layoutPlan(t, text); err == nil || !strings.Contains(err.Error(), "and 4 replicas do not divide it") {
		t.Errorf("8 workers in replicas of 2: %v, want 4 replicas", err)
	}
	if p, err := layoutPlan(t, strings.Replace(text, "batch = 6", "batch = 12", 1)); err != nil || p.Points[0].Point.WorkerBatch != 3 || p.Points[0].Point.GlobalBatch != 12 {
		t.Errorf("a batch of 12 of 4 replicas: %v, want 3 for each", err)
	}
}
