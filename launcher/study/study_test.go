package study

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// frameworks replace those of launcher/framework in tests: one runs anything, and one has a single
// model.
var frameworks = []Framework{
	{Name: "native", Check: func(p Point) map[string]string {
		if p.Workload.Train.Model == "unheard-of" {
			return map[string]string{"workload.model": "not a model of native"}
		}
		return nil
	}},
	{Name: "other"},
}

const minimal = `
[study]
name = "s"
[workload]
model = "cnn"
epochs = 1
[sweep]
workers = [1, 2, 4]
`

func parse(t *testing.T, source string) *Study {
	t.Helper()
	s, err := Parse("study.toml", []byte(source), frameworks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plan(t *testing.T, s *Study, site *Site) *Plan {
	t.Helper()
	p, err := s.Plan(site)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanExpandsTheGrid(t *testing.T) {
	s := parse(t, `
[study]
name = "grid"
repeats = 2
seed = 7
[workload]
model = "cnn"
epochs = 1
learning_rate = 0.1
reference_batch = 32
[resources]
workers_per_node = 2
[sweep]
workers = [1, 2, 4]
batch = [32, 64]
framework = ["native", "other"]
[[exclude]]
framework = "other"
workers = [2, 4]
`)
	var got []string
	for _, p := range plan(t, s, DefaultSite()).Points {
		q := p.Point
		got = append(got, fmt.Sprintf("%s b%d w%d n%d×%d global %d lr %.3g seed %d exclusive %v", q.Framework, q.Workload.Train.Batch,
			q.Workers, q.Nodes, q.WorkersPerNode, q.GlobalBatch, q.LearningRate, q.Seed, p.Exclusive))
	}
	// Frameworks vary slowest, workers fastest, and repeats are adjacent. Linear scaling
	// gives 0.1·(batch·workers)/32; all points have whole nodes.
	var want []string
	for _, fw := range []string{"native", "other"} {
		for _, b := range []int{32, 64} {
			for _, w := range []int{1, 2, 4} {
				if fw == "other" && w > 1 {
					continue
				}
				for _, seed := range []int{7, 8} {
					want = append(want, fmt.Sprintf("%s b%d w%d n%d×%d global %d lr %.3g seed %d exclusive %v", fw, b, w,
						(w+1)/2, min(w, 2), b*w, 0.1*float64(b*w)/32, seed, true))
				}
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStrongScalingFixesTheGlobalBatch(t *testing.T) {
	s := parse(t, strings.Replace(minimal, "epochs = 1", "epochs = 1\nscaling = \"strong\"\nbatch = 64", 1))
	for _, p := range plan(t, s, DefaultSite()).Points {
		if p.Point.GlobalBatch != 64 || p.Point.WorkerBatch*p.Point.Workers != 64 {
			t.Errorf("%d workers: batch %d per worker, %d global", p.Point.Workers, p.Point.WorkerBatch, p.Point.GlobalBatch)
		}
	}
}

// All problems of a file are reported together, with line and path.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"syntax": {"\na = = 1\n", `study.toml:2: `},
		"many at once": {`
[study]
name = "a/b"
repeats = 0
colour = 1
[workload]
model = "cnn"
batch = -1
epochs = "three"
scaling = "sideways"
[sweep]
workers = [1, 0, 1]
colour = [1]
[resurces]
`, `study.toml:3: study.name: "a/b" cannot name a folder
study.toml:4: study.repeats: want 1 to 1000, got 0
study.toml:5: study.colour: unknown key; valid here: name, repeats, first_repeat, seed, site, share
study.toml:8: workload.batch: want 1 to 16777216, got -1
study.toml:9: workload.epochs: want a whole number, got a string
study.toml:10: workload.scaling: "sideways" is not known; valid: "weak", "strong"
study.toml:12: sweep.workers[1]: want 1 to
study.toml:12: sweep.workers[2]: the same value as [0]
study.toml:13: sweep.colour: cannot be swept; valid here: accumulate, augment, 
study.toml:14: resurces: unknown key; did you mean resources? Valid here: study, workload`},
		"nothing set":       {"", "study.toml: study.name: missing\nstudy.toml: sweep.workers: missing\nstudy.toml: workload.epochs: the training has no end\nstudy.toml: workload.model: missing"},
		"unknown framework": {strings.Replace(minimal, "[sweep]", "[sweep]\nframework=[\"pytroch\"]", 1), `study.toml:8: sweep.framework[0]: "pytroch" is not known; valid: native, other`},
		"not swept":         {minimal + "[[exclude]]\nbatch = 1\n", `study.toml:10: exclude[0].batch: is not swept; keys of this study's sweep: framework, workers`},
		"target in percent": {strings.Replace(minimal, "epochs", "targets = [75.0]\nepochs", 1), `study.toml:6: workload.targets[0]: a target is an accuracy above 0 and up to 1`},
		"unset variable":    {minimal + "[data]\npath = \"$SCALEBENCH_NO_SUCH\"\n", `study.toml:10: data.path: the environment variable SCALEBENCH_NO_SUCH is not set`},
		// found only in the plan
		"not divisible": {strings.Replace(minimal, "[1, 2, 4]", "[1, 2, 3]\nworkers_per_node = [2]", 1), `study.toml:8: sweep.workers: 3 workers do not divide into nodes of 2`},
		"no end":        {strings.Replace(minimal, "epochs = 1", "", 1), `study.toml:4: workload.epochs: the training has no end`},
		"strong batch":  {strings.Replace(minimal, "epochs = 1", "epochs = 1\nscaling = \"strong\"\nbatch = 6", 1), `study.toml:8: workload.batch: with scaling = "strong" the batch of 6 is shared by all workers, and 4 workers do not divide it`},
		"idle exclude":  {minimal + "[[exclude]]\nworkers = 8\n", `study.toml:9: exclude[0]: excludes no point`},
		"not its model": {strings.Replace(minimal, "cnn", "unheard-of", 1), `study.toml:5: workload.model: not a model of native`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("study.toml", []byte(c.source), frameworks)
			if err == nil {
				_, err = s.Plan(DefaultSite())
			}
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("want Problems, got %v", err)
			}
			got, want := strings.Split(err.Error(), "\n"), strings.Split(c.want, "\n")
			if len(got) != len(want) {
				t.Fatalf("got\n%v\nwant\n%v", err, c.want)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("got\n\t%s\nwant it to begin\n\t%s", got[i], want[i])
				}
			}
		})
	}
}

// The identity depends only on what is measured: not on explicit defaults, or the study's
// name, repeats, time limit or folder.
func TestIdentity(t *testing.T) {
	id := func(source string) string { return plan(t, parse(t, source), DefaultSite()).Points[0].Point.ID }
	base := id(minimal)
	for _, same := range []string{
		strings.Replace(minimal, "epochs = 1", "epochs = 1\nbatch = 128", 1),
		strings.Replace(minimal, "\"s\"", "\"t\"\nrepeats = 3\nseed = 9", 1),
		minimal + "[resources]\ntime = \"2h\"\nexclusive = false\n",
		strings.Replace(minimal, "epochs = 1", "epochs = 1\ntargets = [0.5, 0.75]", 1),
	} {
		if got := id(same); got != base {
			t.Errorf("identity changed from %s to %s by\n%s", base, got, same)
		}
	}
	for _, other := range []string{
		strings.Replace(minimal, "epochs = 1", "epochs = 1\nbatch = 64", 1),
		strings.Replace(minimal, "epochs = 1", "epochs = 2", 1),
		strings.Replace(minimal, "[1,", "[3,", 1),
		minimal + "[resources]\ncpus_per_worker = 2\n",
		minimal + "[data]\npath = \"elsewhere\"\n",
		strings.Replace(minimal, "epochs = 1", "epochs = 1\nuntil = \"targets\"\ntargets = [0.5]", 1),
	} {
		if got := id(other); got == base {
			t.Errorf("identity unchanged by\n%s", other)
		}
	}
	// A released identity: a change would orphan stored results. The expected hash comes
	// from sha256sum: printf
	// 'framework="native"\nworkers=1\nworkload.epochs=1\nworkload.model="cnn"' | sha256sum
	// | cut -c1-10
	if want := "native-w1-8c9085b525"; base != want {
		t.Errorf("identity is %s, was released as %s", base, want)
	}
}

func TestSitePlacesPoints(t *testing.T) {
	site, err := ParseSite("site.toml", []byte(`
[[partitions]]
name = "small"
max_workers = 2
cpus_per_node = 2
max_time = "30m"
[[partitions]]
name = "large"
cpus_per_node = 2
max_nodes = 4
`))
	if err != nil {
		t.Fatal(err)
	}
	source := strings.Replace(minimal, "[1, 2, 4]", "[1, 2, 4, 8]", 1) + "[resources]\ntime = \"20m\"\n"
	var got []string
	for _, p := range plan(t, parse(t, source), site).Points {
		got = append(got, fmt.Sprintf("w%d %s %d×%d %.3f", p.Point.Workers, p.Partition, p.Point.Nodes, p.Point.WorkersPerNode, p.NodeHours()))
	}
	// 20 minutes are 1/3 h per node.
	want := []string{"w1 small 1×1 0.333", "w2 small 1×2 0.333", "w4 large 2×2 0.667", "w8 large 4×2 1.333"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	_, err = parse(t, strings.Replace(minimal, "4]", "16]", 1)).Plan(site)
	for _, want := range []string{"sweep.workers: no partition of site.toml has room for 16 workers", "small: max_workers is 2", "large: max_nodes is 4, but the point takes 8"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

// A time limit above all partitions' limits is reported once, at the time.
func TestSiteTooShort(t *testing.T) {
	site, err := ParseSite("site.toml", []byte("[[partitions]]\nname = \"main\"\nmax_time = \"24h\"\n[[partitions]]\nname = \"short\"\nmax_time = \"5m\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parse(t, minimal+"[resources]\ntime = \"48h\"\n").Plan(site)
	want := "study.toml:10: resources.time: 48h is longer than any partition of site.toml allows (max_time: main 24h, short 5m)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := parse(t, minimal+"[resources]\ntime = \"20h\"\n").Plan(site); err != nil {
		t.Error(err)
	}
}

// A framework may have its own interpreter. Paths are relative to the site file, with
// variables expanded; names are looked up where they run.
func TestSiteInterpreter(t *testing.T) {
	t.Setenv("ENVS", "/envs")
	for source, want := range map[string]string{
		`python = "python3"`:                                  "python3",
		`python = "venv/bin/python"`:                          "/sites/venv/bin/python",
		`python = "$ENVS/pytorch/bin/python"`:                 "/envs/pytorch/bin/python",
		`pythons = { mxnet = "python3.8" }`:                   "python3.8",
		`pythons = { mxnet = "../mxnet/bin/python" }`:         "/mxnet/bin/python",
		"python = \"python3\"\npythons = { mxnet = \"a/b\" }": "/sites/a/b",
	} {
		site, err := ParseSite("/sites/site.toml", []byte(source))
		if err != nil {
			t.Errorf("%s: %v", source, err)
		} else if got := site.Interpreter("mxnet"); got != want {
			t.Errorf("%s has %q, want %q", source, got, want)
		}
	}
}

func TestSiteProblems(t *testing.T) {
	_, err := ParseSite("site.toml", []byte(`
interfce = "ib0"
pythons = { mxnet = "" }
[environment]
"A B" = "c"
[options]
"--constraint" = "a100"
job-nam = "x"
[container]
runtime = "docker"
[[partitions]]
max_nodes = -1
[[prices]]
per = "month"
hour = 1
[[prices]]
per = "gpu"
hour = -1
currency = "EUR"
market = "black"
max_tres = true
tres_billing_weights = "CPU=1"
where = {nodes = [1, 2]}
`))
	for _, want := range []string{`site.toml:2: interfce: unknown key; did you mean interface? Valid here: name, account`, `"A B" cannot name an environment variable`,
		`options.--constraint: is not a long sbatch option; write it in lower case without leading dashes`, `options.job-nam: means job-name, which is set by scalebench`, `pythons.mxnet: missing; name`, `container.runtime: "docker" is not known; valid: "", "pyxis", "apptainer"`,
		`partitions[0].name: missing`, `partitions[0].max_nodes: want 0`, `prices[0].per: "month"`, `prices[0].currency: missing`,
		`prices[1].hour: want 0 or more`, `prices[1].market: "black"`, `prices[1].max_tres: belongs to`, `prices[1].tres_billing_weights: belongs to`,
		`prices[1].where: nodes is a list`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %s", err, want)
		}
	}
}

func TestPriceLabels(t *testing.T) {
	s, err := ParseSite("site.toml", []byte(`
[[prices]]
per = "node"
hour = 1
currency = "EUR"
granularity = "1s"
minimum = "1m"
where = {platform = "p3", workload.batch = 64, "resources.exclusive" = true}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Price{{Per: "node", Hour: 1, Currency: "EUR", Granularity: Duration(time.Second), Minimum: Duration(time.Minute),
		Where: map[string]any{"platform": "p3", "workload.batch": int64(64), "resources.exclusive": true}}}
	if diff := cmp.Diff(want, s.Prices); diff != "" {
		t.Error(diff)
	}
}

// A point survives JSON, the contract with every program, and has the keys of the TOML.
func TestPointJSON(t *testing.T) {
	p := plan(t, parse(t, minimal+"[resources]\nmemory = \"2G\"\ntime = \"1:30:00\"\n"), DefaultSite()).Points[0].Point
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Point
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, back); d != "" {
		t.Error(d)
	}
	for _, want := range []string{`"workload":{"kind":"train","model":"cnn"`, `"memory":"2G"`, `"time":"1h30m"`, `"targets":[]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nlacks %s", text, want)
		}
	}
	if got := p.Parameters()["workload.batch"]; got != int64(128) {
		t.Errorf("workload.batch is %v (%T)", got, got)
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "30": 30 * time.Minute, "1:30": 90 * time.Second,
		"1:30:00": 90 * time.Minute, "2-12": 60 * time.Hour, "1-00:00:30": 24*time.Hour + 30*time.Second} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q: %v, %v; want %v", text, d, err, want)
		}
	}
	for text, want := range map[string]Bytes{"0": 0, "512M": 512 << 20, "16G": 16 << 30, "16GiB": 16 << 30, "1T": 1 << 40} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: %d, %v; want %d", text, b, err, want)
		}
	}
	for _, bad := range []string{"", "-1", "G", "1.5G", "99999999999T", "1 h"} {
		var b Bytes
		var d Duration
		if b.UnmarshalText([]byte(bad)) == nil || d.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"90m", "1:30:00", "2-12", "1h30m", "30"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d, back Duration
		if d.UnmarshalText([]byte(s)) != nil {
			return
		}
		if err := back.UnmarshalText([]byte(d.String())); err != nil || back != d {
			t.Errorf("%q is %v, which reads back as %v, %v", s, d, back, err)
		}
	})
}

// For any bytes, Parse returns a study that can be planned or problems that name the file;
// it never panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(minimal + "[[exclude]]\nworkers = [2]\n[resources]\ntime=\"1h\"\nexclusive=true\n[data]\nkind=\"synthetic\"\n"))
	f.Add([]byte("\xff\xfe[study]\nname = \"a\"\n"))
	f.Add([]byte("[workload]\nlearning_rate = nan\nbatch = 9223372036854775807\n[sweep]\nworkers=[[1]]\n"))
	f.Add([]byte("\ufeff'a'.\"b\\t\" = { c = [\"\"\"\n\"\"\"\"\", '''\n'''], d.e = 1 } # [\n[[x.y]]\n[[x.y]]\n[x.y.z]\nk = 1979-05-27 07:32:00\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		checkOutline(t, source)
		s, err := Parse("study.toml", source, frameworks)
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err != nil && !strings.HasPrefix(err.Error(), "study.toml") {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}

// A price of energy needs a currency, and may be 0.
func TestEnergy(t *testing.T) {
	for _, alone := range []string{"per_kwh = 0.3", "currency = \"EUR\""} {
		if _, err := ParseSite("site.toml", []byte("[energy]\n"+alone+"\n")); err == nil || !strings.Contains(err.Error(), "energy.per_kwh: needs energy.currency, and that needs it") {
			t.Errorf("%s: %v", alone, err)
		}
	}
	s, err := ParseSite("site.toml", []byte("[energy]\nco2_per_kwh = 0\n"))
	if err != nil || s.Energy.CO2PerKWh == nil || *s.Energy.CO2PerKWh != 0 || s.Energy.PerKWh != nil {
		t.Errorf("%+v, %v", s.Energy, err)
	}
	if s, err = ParseSite("site.toml", nil); err != nil || s.Energy != (Energy{}) {
		t.Errorf("%+v, %v", s.Energy, err)
	}
}

// The same for a site file.
func FuzzParseSite(f *testing.F) {
	f.Add([]byte("modules = [\"gcc\"]\n[environment]\nA = \"b\"\n[[partitions]]\nname = \"main\"\ncpus_per_node = 2\n"))
	f.Add([]byte("[[partitions]]\nname = \"\\u0000\"\ncpus_per_node = -1\ngpus_per_node = 9223372036854775807\n[prices]\ncpu_hour = inf\n"))
	f.Add([]byte("worker = 7\npython = [\"\"]\n[[partitions]]\n[[partitions]]\nname = [\n"))
	f.Add([]byte("\xff\xfe= nan"))
	f.Fuzz(func(t *testing.T, source []byte) {
		s, err := ParseSite("site.toml", source)
		if err != nil && !strings.HasPrefix(err.Error(), "site.toml") {
			t.Errorf("the error does not name the file: %v", err)
		}
		if err == nil {
			s.SecretWarnings()
			s.Secrets()
			s.Private()
		}
	})
}

func TestPathsAreTakenFromTheStudysFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SCALEBENCH_TEST_DATA", "set")
	file := filepath.Join(dir, "study.toml")
	source := strings.Replace(minimal, "\"s\"", "\"s\"\nsite = \"site.toml\"", 1) + "[data]\npath = \"../$SCALEBENCH_TEST_DATA\"\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file, frameworks)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "site.toml"); s.Site != want {
		t.Errorf("site is %s, want %s", s.Site, want)
	}
	if got, want := plan(t, s, DefaultSite()).Points[0].Point.Data.Path, filepath.Join(filepath.Dir(dir), "set"); got != want {
		t.Errorf("data.path is %s, want %s", got, want)
	}
}

// 10,000 points take a fraction of a second to plan.
func BenchmarkPlan10000(b *testing.B) {
	var batches []string
	for i := range 1000 {
		batches = append(batches, fmt.Sprint(i+1))
	}
	source := strings.Replace(minimal, "[1, 2, 4]", "[1,2,4,8,16,32,64,128,256,512]\nbatch = ["+strings.Join(batches, ",")+"]", 1)
	s, err := Parse("study.toml", []byte(source), frameworks)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if p, err := s.Plan(DefaultSite()); err != nil || len(p.Points) != 10_000 {
			b.Fatal(err)
		}
	}
}

// The reference documents every key that a study can set.
func TestReferenceIsComplete(t *testing.T) {
	const path = "../../docs/reference/study.md"
	reference, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for kind, fields := range pointFields() {
		for _, f := range fields {
			if !strings.Contains(string(reference), "`"+f.key+"`") {
				t.Errorf("%s does not explain %s of kind %s", path, f.path, kind)
			}
		}
	}
}

// Durations that would overflow are rejected in both forms; the longest one is accepted.
func TestDurationBounds(t *testing.T) {
	for text, want := range map[string]bool{
		"100000-00:00:00": true, "2400000h": true, "366-00:00:00": true,
		"100001-00:00:00": false, "99999999h": false, "99999999999999999999h": false, "2562048h": false, "2400000h1s": false,
		"2147483648": false, "4294967295:00:00": false, "99999999999999999999": false,
	} {
		var d Duration
		err := d.UnmarshalText([]byte(text))
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "too long; at most 100000 days") || err == nil && d <= 0 {
			t.Errorf("%s is %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "-1h", "h", "1 h", "1e300h", "NaN"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "write it like") {
			t.Errorf("%q is %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"99999999TB", "8388608T", "99999999999999999999G"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s is %v", text, b)
		}
	}
}

// A FIFO as the site file that a study names, or as the study itself, does not block; a
// FIFO from the shell is read.
func TestFIFODoesNotBlock(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	_, errStudy := Load(fifo, frameworks)
	_, errSite := LoadSite(fifo)
	if !errors.Is(errStudy, sharedfs.ErrNotRegular) || !errors.Is(errSite, sharedfs.ErrNotRegular) {
		t.Errorf("%v, %v", errStudy, errSite)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("name = \"piped\"\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if s, err := LoadSite(fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil || s.Name != "piped" {
		t.Errorf("%+v, %v", s, err)
	}
}
