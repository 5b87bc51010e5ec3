package study

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Each case is a study or site file and the text of its problem; "" if the file is valid.
func TestRulesOfFiles(t *testing.T) {
	collective := func(keys string) string {
		return "[study]\nname = \"s\"\n[workload]\nkind = \"collective\"\n" + keys + "\n[sweep]\nworkers = [2]\n"
	}
	machine := func(keys string) string {
		return "[[prices]]\nper = \"node\"\nhour = 1\ncurrency = \"EUR\"\n" + keys + "\n"
	}
	partition := func(keys string) string { return "[[partitions]]\nname = \"p\"\n" + keys + "\n" }
	for _, c := range []struct {
		name, source string
		problems     func(*testing.T, string) Problems
		want         string
	}{
		{"sizes of one", collective("min_bytes = \"1K\"\nmax_bytes = \"1K\""), problemsOf, ""},
		{"sizes that fall", collective("min_bytes = \"2K\"\nmax_bytes = \"1K\""), problemsOf, "workload.max_bytes: "},
		{"no latency in 0 s", serving("threads = [1]\nlimit = { p95 = \"0s\" }"), problemsOf, `workload.limit: p95 = "0s" is not a latency`},
		{"a negative one", serving("threads = [1]\nlimit = { p95 = \"-5ms\" }"), problemsOf, `workload.limit: p95 = "-5ms" is not a latency`},
		{"a stream without its request", serving("threads = [1]\nstream = true\npath = \"/v1\""), problemsOf, "workload.stream: needs workload.path"},
		{"the shortest sampling", minimal + "[telemetry]\nevery = \"100ms\"\n", problemsOf, ""},
		{"shorter", minimal + "[telemetry]\nevery = \"99ms\"\n", problemsOf, `telemetry.every: want "0s" (no samples) or 100ms to`},
		{"the longest sampling", minimal + "[telemetry]\nevery = \"10m\"\n", problemsOf, ""},
		{"longer", minimal + "[telemetry]\nevery = \"11m\"\n", problemsOf, "telemetry.every: "},
		{"no sampling", minimal + "[telemetry]\nevery = \"0s\"\n", problemsOf, ""},
		{"an end at the rate", strings.Replace(minimal, "epochs = 1", "epochs = 1\nuntil = \"targets\"", 1), problemsOf, `workload.until: "targets" needs workload.targets`},

		{"a machine", machine("machine = \"m\"\nvcpus = 1\nmemory = \"1G\"\ngpus = 1"), siteProblemsOf, ""},
		{"a machine without memory", machine("machine = \"m\"\nvcpus = 4"), siteProblemsOf, "prices[0].machine: also needs vcpus and memory"},
		{"a machine without vCPUs", machine("machine = \"m\"\nmemory = \"1G\""), siteProblemsOf, "prices[0].machine: also needs vcpus and memory"},
		{"a machine by the GPU", strings.Replace(machine("machine = \"m\"\nvcpus = 4\nmemory = \"1G\""), "per = \"node\"", "per = \"gpu\"", 1), siteProblemsOf, `prices[0].machine: "m" is priced per gpu; a machine has a price of its own`},
		{"vCPUs of no machine", machine("vcpus = 4"), siteProblemsOf, "prices[0].vcpus: "},
		{"memory of no machine", machine("memory = \"1G\""), siteProblemsOf, "prices[0].memory: "},
		{"GPUs of no machine", machine("gpus = 1"), siteProblemsOf, "prices[0].gpus: "},
		{"too many vCPUs", machine("machine = \"m\"\nvcpus = 1048577\nmemory = \"1G\""), siteProblemsOf, "prices[0].vcpus: want 0 to 1048576, got 1048577"},
		{"as many as can be", machine("machine = \"m\"\nvcpus = 1048576\nmemory = \"1G\""), siteProblemsOf, ""},
		{"fewer than none", machine("machine = \"m\"\nvcpus = 4\nmemory = \"1G\"\ngpus = -1"), siteProblemsOf, "prices[0].gpus: want 0 to 1048576, got -1"},
		{"a label that is a list", machine("where = { zone = [\"eu\"] }"), siteProblemsOf, "prices[0].where: zone is a list or a date"},
		{"labels", machine("where = { zone = \"eu\", a = { b = 1 } }"), siteProblemsOf, ""},
		{"one number of workers", partition("min_workers = 4\nmax_workers = 4"), siteProblemsOf, ""},
		{"no number of workers", partition("min_workers = 5\nmax_workers = 4"), siteProblemsOf, "partitions[0].min_workers: 5 is more than max_workers, 4"},
		{"no largest number", partition("min_workers = 5"), siteProblemsOf, ""},
		{"a negative limit", partition("max_nodes = -1"), siteProblemsOf, "partitions[0].max_nodes: want 0 (no such limit) or more, got -1"},
		{"an interpreter in a bucket", "python = \"s3://b/python\"\n", siteProblemsOf, "python: object storage cannot be used here"},
		{"an interpreter by a variable", "python = \"$NO_SUCH_VARIABLE_HERE/python\"\n", siteProblemsOf, "python: the environment variable NO_SUCH_VARIABLE_HERE is not set"},
		{"a staging folder", "[stage]\ndir = \"/tmp\"\n", siteProblemsOf, ""},
		{"a staging folder of the job", "[stage]\ndir = \"$TMPDIR\"\n", siteProblemsOf, ""},
		{"a relative staging folder", "[stage]\ndir = \"tmp\"\n", siteProblemsOf, `stage.dir: "tmp" is not an absolute path`},
	} {
		var got []string
		for _, p := range c.problems(t, c.source) {
			got = append(got, p.Path+": "+p.Message)
		}
		if c.want == "" && got != nil || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A user's program receives the keys that its placeholders name; other keys are for scalebench itself.
func TestReaches(t *testing.T) {
	plain := Point{Workload: Workload{Kind: "train"}}
	command := plain
	command.Command = Command{Folder: "/f", Uses: []string{"workload.batch"}}
	with := func(change func(p *Point)) Point { p := command; change(&p); return p }
	for _, c := range []struct {
		name string
		p    Point
		path string
		want bool
	}{
		{"a trainer of ours", plain, "workload.learning_rate", true},
		{"named", command, "workload.batch", true},
		{"not named", command, "workload.learning_rate", false},
		{"the kind", command, "workload.kind", true},
		{"another table", command, "resources.time", true},
		{"no data", command, "data.path", false},
		{"data", with(func(p *Point) { p.Data.Path = "/d" }), "data.path", true},
		{"data, and not their kind", with(func(p *Point) { p.Data.Path, p.Data.Stage = "/d", true }), "data.kind", false},
		{"staged", with(func(p *Point) { p.Data.Stage = true }), "data.stage", true},
		{"not staged", command, "data.stage", false},
		{"a question", command, "workload.targets", true},
		{"a question of no training", with(func(p *Point) { p.Workload.Kind = "serve" }), "workload.targets", false},
		{"the model of an MFU", with(func(p *Point) { p.Workload.Train.MFU = "palm" }), "workload.model", true},
		{"its sequence", with(func(p *Point) { p.Workload.Train.MFU = "palm" }), "workload.sequence", true},
		{"its precision", with(func(p *Point) { p.Workload.Train.MFU = "palm" }), "workload.precision", true},
		{"and no more", with(func(p *Point) { p.Workload.Train.MFU = "palm" }), "workload.learning_rate", false},
		{"the model", command, "workload.model", false},
		{"a sample's length", with(func(p *Point) { p.Workload.Train.Sample = measure.Sequence }), "workload.sequence", true},
		{"and no more", with(func(p *Point) { p.Workload.Train.Sample = measure.Sequence }), "workload.model", false},
	} {
		if got := c.p.Reaches(c.path); got != c.want {
			t.Errorf("%s: %s reaches the program: %v", c.name, c.path, got)
		}
	}
}

// The load generator either gets a core on the replicas' nodes, or a separate node with as many
// ranks as each of the others.
func TestAuxRanksOfReplicas(t *testing.T) {
	for _, c := range []struct {
		target, client string
		ranks, nodes   int
	}{{"url", "", 0, 0}, {HTTP, "", 1, 0}, {HTTP, ownNode, 4, 1}, {"url", ownNode, 0, 0}} {
		p := &Point{WorkersPerNode: 4, Nodes: 2}
		p.Workload.Serve.Target, p.Workload.Serve.Client = c.target, c.client
		if ranks, nodes := auxRanks(p); ranks != c.ranks || nodes != c.nodes {
			t.Errorf("target %q, client %q: %d ranks and %d nodes, want %d and %d", c.target, c.client, ranks, nodes, c.ranks, c.nodes)
		}
	}
}

func TestNearWordsOfLongWords(t *testing.T) {
	valid := []string{strings.Repeat("a", 100), "--workers"}
	if got := NearWords(strings.Repeat("a", 100), valid); !slices.Equal(got, valid[:1]) {
		t.Errorf("100 letters: %q", got)
	}
	if got := NearWords(strings.Repeat("a", 101), valid); got != nil {
		t.Errorf("101 letters: %q", got)
	}
	if got := NearWords("workrs", valid); !slices.Equal(got, valid[1:]) {
		t.Errorf("without its dashes: %q", got)
	}
}

// If accuracies are read without times, the time to a target is unknown.
func TestTimeless(t *testing.T) {
	study := func(name, pattern, targets string) *Study {
		source := "[study]\nname = \"s\"\n[workload]\n" + targets + "[command]\nrun = \"train\"\n[[extract]]\nname = \"" + name + "\"\nper = \"epoch\"\npattern = '" + pattern + "'\n[sweep]\nframework = [\"command\"]\nworkers = [1]\n"
		s, err := Parse("study.toml", []byte(source), append(slices.Clone(frameworks), program))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const asked = "targets = [0.5]\n"
	for _, c := range []struct {
		name, pattern, targets string
		want                   bool
	}{
		{"accuracy", `acc (?P<value>\S+)`, asked, true},
		{"accuracy", `acc (?P<value>\S+) at (?P<elapsed>\S+)`, asked, false},
		{"accuracy", `acc (?P<value>\S+)`, "", false},
		{"wait", `wait (?P<value>\S+)`, asked, false},
		{"loss", `loss (?P<value>\S+)`, "targets = [\"loss=2\"]\n", true},
		{"loss", `loss (?P<value>\S+)`, asked, false},
	} {
		s := study(c.name, c.pattern, c.targets)
		got := s.Timeless(plan(t, s, DefaultSite()))
		if (len(got) > 0) != c.want || c.want && (got[0].Path != "extract[0].pattern" || got[0].Line == 0) {
			t.Errorf("%s by %s, %q: %v", c.name, c.pattern, c.targets, got)
		}
	}
}

// A point with a plain secret is distinguished from one whose secrets are digests.
func TestPlainSecrets(t *testing.T) {
	const secret = "hf_0123456789abcdefghijABCDEFGHIJ0123"
	for name, change := range map[string]func(p *Point){
		"an argument": func(p *Point) { p.Command.Run = []string{"train", "--token", secret} },
		"a variable":  func(p *Point) { p.Command.Environment = map[string]string{"HF_TOKEN": secret} },
		"a parameter": func(p *Point) { p.Own = Own{"token": Scalar{secret}} },
	} {
		p := &Point{}
		p.Command.Run = []string{"train"}
		if p.Plain() {
			t.Error("a point without secrets has some")
		}
		change(p)
		if !p.Plain() {
			t.Errorf("%s is not seen", name)
		}
		p.Seal(nil)
		if p.Plain() {
			t.Errorf("%s is seen after it was replaced", name)
		}
	}
}

// The keys of a workload as text.
func TestKeyOfPoint(t *testing.T) {
	p := Point{Workload: Workload{Kind: "train"}}
	p.Workload.Train.LearningRate, p.Workload.Train.Model = 1e-4, "cnn"
	for name, want := range map[string]string{"learning_rate": "0.0001", "model": "cnn", "no_such_key": ""} {
		if got, ok := p.Key(name); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, ok, want)
		}
	}
	p.Workload.Kind = "no such kind"
	if got, ok := p.Key("model"); ok {
		t.Errorf("a key of an unknown kind: %q", got)
	}
	for want, v := range map[string]any{"0.0001": 1e-4, "1e+21": 1e21, "2": 2.0, "3": int64(3), "true": true, "a b": "a b"} {
		if got := (Scalar{v}).String(); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// Numbers of tokens at their limits.
func TestEdgesOfTokenLengths(t *testing.T) {
	for text, want := range map[string]TokenLength{
		"1": {"constant", 1, 0}, "uniform(1, 1)": {"uniform", 1, 1}, "uniform( 1,2 )": {"uniform", 1, 2}, "normal(1, 0)": {"normal", 1, 0}, "lognormal(512, 3)": {"lognormal", 512, 3},
	} {
		if got, err := parseTokenLength(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0.5", "uniform(0, 5)", "uniform(2, 1)", "uniform(1)", "uniform(1, 2, 3)", "uniform(1, 2", "lognormal(512, 3.1)", "normal(5, -1)", "normal(a, 1)", "other(1, 2)"} {
		if got, err := parseTokenLength(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// Sizes of our own language models at their limits.
func TestEdgesOfDecoders(t *testing.T) {
	for size, want := range map[string]string{
		"": "", "kv_heads=1": "", "kv_heads=4": "", "kv_heads=3": "heads=4 is no multiple of kv_heads=3", "vocabulary=256": "", "vocabulary=255": "vocabulary=255; tokens are bytes",
		"hidden=8": "", "hidden=12": "make heads of 3 numbers", "layers=2 layers=2": "layers is given twice", "layers=1": "",
	} {
		if _, ok, err := Decoder("llama-1m " + size); !ok || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", size, ok, err, want)
		}
	}
}
