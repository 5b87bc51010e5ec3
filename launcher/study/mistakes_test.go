package study

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// tomlFile is a TOML file as a list of tables and their keys.
type tomlFile []struct {
	table string // "[study]"
	keys  []string
}

// with returns the file with some keys changed or added, by table and key. The value ""
// removes the key; the key "" replaces the table.
func (f tomlFile) with(changes ...mistake) string {
	var b strings.Builder
	for _, t := range f {
		header, keys := t.table, slices.Clone(t.keys)
		for _, c := range changes {
			if c.table != t.table {
				continue
			}
			if c.key == "" {
				header, keys = c.value, nil
				continue
			}
			i := slices.IndexFunc(keys, func(k string) bool { return strings.HasPrefix(k, c.key+" ") })
			line := c.key + " = " + c.value
			switch {
			case i < 0:
				keys = append(keys, line)
			case c.value == "":
				keys = slices.Delete(keys, i, i+1)
			default:
				keys[i] = line
			}
		}
		b.WriteString(header + "\n" + strings.Join(keys, "\n") + "\n")
	}
	return b.String()
}

// mistake is a wrong value of a key and the expected message.
type mistake struct{ table, key, value, want string }

var goodStudy = tomlFile{
	{"[study]", []string{`name = "s"`, `repeats = 2`, `seed = 1`}},
	{"[workload]", []string{`kind = "train"`, `model = "cnn"`, `precision = "fp32"`, `learning_rate = 0.1`, `epochs = 1`, `targets = [0.5]`, `until = "targets"`}},
	{"[data]", []string{`kind = "synthetic"`, `train_samples = 100`}},
	{"[resources]", []string{`cpus_per_worker = 1`, `time = "1h"`, `workers_per_node = 2`, `memory = "1G"`}},
	{"[policy]", []string{`order = "plan"`, `rate = 10.0`}},
	{"[policy.retries]", []string{`failed = 1`}},
	{"[sweep]", []string{`framework = ["native", "other"]`, `batch = [32, 64]`, `workers = [2, 4]`}},
	{"[[exclude]]", []string{`workers = [4]`, `batch = 64`}},
}

var studyMistakes = []mistake{
	{"[study]", "name", `"a/b"`, "study.name: "},
	{"[study]", "repeats", `0`, "study.repeats: want 1 to 1000"},
	{"[study]", "seed", `"x"`, "study.seed: want a whole number, got a string"},
	{"[study]", "site", `3`, "study.site: want a string, got a whole number"},
	{"[study]", "colour", `1`, "study.colour: unknown key"},
	{"[workload]", "kind", `"trian"`, `workload.kind: "trian" is not known; did you mean train?`},
	{"[workload]", "model", `"unheard-of"`, "workload.model: not a model of "},
	{"[workload]", "model", ``, "workload.model: missing"},
	{"[workload]", "precision", `"fp31"`, `workload.precision: "fp31" is not known; did you mean fp32?`},
	{"[workload]", "learning_rate", `-1.0`, "workload.learning_rate: want more than 0"},
	{"[workload]", "epochs", `"one"`, "workload.epochs: want a whole number"},
	{"[workload]", "epochs", ``, "workload.epochs: the training has no end"},
	{"[workload]", "targets", `["x"]`, "workload.targets[0]: \"x\" is not a target"},
	{"[workload]", "targets", ``, `workload.until: "targets" needs workload.targets`},
	{"[workload]", "until", `"then"`, `workload.until: "then" is not known`},
	{"[workload]", "decay", `"step"`, `workload.decay_epochs: decay = "step" needs`},
	{"[workload]", "decay", `"stp"`, `workload.decay: "stp" is not known; did you mean step?`},
	{"[workload]", "max_steps", `[]`, "workload.max_steps: want a whole number, got a list"},
	{"[data]", "kind", `"syntetic"`, `data.kind: "syntetic" is not known`},
	{"[data]", "train_samples", `-1`, "data.train_samples: want 0 to"},
	{"[data]", "stage", `true`, "data.stage: no folder"},
	{"[data]", "path", `"$SCALEBENCH_NO_SUCH"`, "data.path: the environment variable"},
	{"[resources]", "cpus_per_worker", `0`, "resources.cpus_per_worker: want 1 to"},
	{"[resources]", "time", `"soon"`, `resources.time: "soon" is not a length of time`},
	{"[resources]", "memory", `"much"`, `resources.memory: "much" is not an amount`},
	{"[resources]", "nodes", `2`, "resources.nodes: unknown key; nodes is set by sweep.workers and resources.workers_per_node of the study"},
	{"[resources]", "device", `"tpu"`, `resources.device: "tpu" is not known`},
	{"[policy]", "order", `"random"`, `policy.order: "random" is not known`},
	{"[policy]", "rate", `0.001`, "policy.rate: want 0 (no limit)"},
	{"[policy]", "packing", `true`, "policy.packing: want a string, got true or false"},
	{"[policy.retries]", "failed", `101`, "policy.retries.failed: want 0 to 100"},
	{"[policy.retries]", "lots", `1`, "policy.retries.lots: unknown key"},
	{"[sweep]", "framework", `["nativ"]`, `sweep.framework[0]: "nativ" is not known; did you mean native?`},
	{"[sweep]", "framework", `["native", 1]`, `sweep.framework[1]: want a string`},
	{"[sweep]", "batch", `[32, -1, 64]`, "sweep.batch[1]: want 1 to"},
	{"[sweep]", "batch", `"all"`, `sweep.batch: want a list, like ["all"], got "all"`},
	{"[sweep]", "workers", `[2, 4, 2]`, "sweep.workers[2]: the same value as [0]"},
	{"[sweep]", "workers", `[2, 3, 4]`, "sweep.workers: 3 workers do not divide"},
	{"[sweep]", "workers", ``, "sweep.workers: missing"},
	{"[sweep]", "modle", `["cnn"]`, "sweep.modle: cannot be swept; did you mean model?"},
	{"[[exclude]]", "batch", `128`, "exclude[0]: excludes no point"},
	{"[[exclude]]", "augment", `true`, "exclude[0].augment: is not swept"},
	{"[[exclude]]", "workers", `"two"`, "exclude[0].workers: want a whole number"},
}

// related are pairs of keys where a mistake in one hides the intention of the other: the
// target of an exclusion, the end of a training.
var related = []string{
	"[sweep] workers|[[exclude]] batch", "[sweep] workers|[[exclude]] workers", "[sweep] batch|[[exclude]] batch",
	"[[exclude]] augment|[[exclude]] batch", "[[exclude]] workers|[[exclude]] batch",
	"[workload] model|[sweep] modle", "[workload] targets|[workload] until", "[workload] epochs|[workload] max_steps",
	"[data] kind|[data] stage", "[data] path|[data] stage",
}

func (m mistake) related(o mistake) bool {
	a, b := m.table+" "+m.key, o.table+" "+o.key
	return slices.Contains(related, a+"|"+b) || slices.Contains(related, b+"|"+a)
}

func problemsOf(t *testing.T, source string) Problems {
	t.Helper()
	s, err := Parse("study.toml", []byte(source), frameworks)
	if err == nil {
		_, err = s.Plan(DefaultSite())
	}
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	return problems
}

func siteProblemsOf(t *testing.T, source string) Problems {
	t.Helper()
	_, err := ParseSite("site.toml", []byte(source))
	var problems Problems
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	return problems
}

// says checks that the problems match the mistakes exactly, each with its line, in line order.
func says(problems Problems, source string, exactly bool, mistakes ...mistake) error {
	lines := strings.Split(source, "\n")
	for _, m := range mistakes {
		i := slices.IndexFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Path+": "+p.Message, m.want) })
		if i < 0 {
			return fmt.Errorf("%q is not said", m.want)
		}
		if line := problems[i].Line; line < 1 || m.value != "" && m.key != "" && !strings.Contains(m.want, "needs") && !strings.Contains(m.want, "excludes no") &&
			!strings.HasPrefix(lines[line-1], m.key+" = ") {
			return fmt.Errorf("%q is said of line %d", m.want, line)
		}
	}
	if exactly && len(problems) != len(mistakes) {
		return fmt.Errorf("%d problems for %d mistakes", len(problems), len(mistakes))
	}
	if !slices.IsSortedFunc(problems, func(a, b Problem) int { return a.Line - b.Line }) {
		return errors.New("not sorted by line")
	}
	return nil
}

func TestEachMistakeIsReportedOnce(t *testing.T) {
	for _, f := range []struct {
		good     tomlFile
		mistakes []mistake
		problems func(*testing.T, string) Problems
	}{{goodStudy, studyMistakes, problemsOf}, {goodSite, siteMistakes, siteProblemsOf}} {
		if p := f.problems(t, f.good.with()); p != nil {
			t.Fatal(p)
		}
		for i, a := range f.mistakes {
			source := f.good.with(a)
			if err := says(f.problems(t, source), source, true, a); err != nil {
				t.Errorf("%v in\n%v\nof\n%s", err, f.problems(t, source), source)
			}
			for _, b := range f.mistakes[i+1:] {
				if a.table == b.table && a.key == b.key {
					continue
				}
				source := f.good.with(a, b)
				got := f.problems(t, source)
				if a.related(b) {
					if len(got) > 2 || says(got, source, false, a) != nil && says(got, source, false, b) != nil {
						t.Errorf("of %q and %q neither is said, or more:\n%v", a.want, b.want, got)
					}
				} else if err := says(got, source, true, a, b); err != nil {
					t.Errorf("%v in\n%v\nof %q and %q", err, got, a.want, b.want)
				}
			}
		}
	}
}

// A misspelt word is reported once, and its intended key is not reported as missing.
func TestAMisspeltNameIsReportedOnce(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"[workload]", "[workloads]"}, {"[sweep]", "[sweeep]"}, {"[study]", "[studdy]"}, {"model =", "modle ="}, {"name =", "nmae ="},
		{"workers = [2", "worker = [2"}, {"epochs =", "epoch ="}, {"[data]", "[dta]"},
	} {
		source := strings.Replace(goodStudy.with(), c.from, c.to, 1)
		if got := problemsOf(t, source); len(got) != 1 || !strings.Contains(got[0].Message, "did you mean "+strings.Trim(strings.Fields(c.from)[0], "[]")+"?") {
			t.Errorf("%s: %v", c.to, got)
		}
	}
}

func TestTwelveMistakesAreAllReported(t *testing.T) {
	var twelve []mistake
	for _, want := range []string{"study.name", "study.repeats", "study.colour", "workload.model: not", "workload.precision", "workload.learning_rate",
		"data.train_samples", "resources.time", "policy.order", "sweep.framework[0]", "sweep.batch[1]", "sweep.modle"} {
		i := slices.IndexFunc(studyMistakes, func(m mistake) bool { return strings.HasPrefix(m.want, want) })
		twelve = append(twelve, studyMistakes[i])
	}
	source := goodStudy.with(twelve...)
	if err := says(problemsOf(t, source), source, true, twelve...); err != nil {
		t.Errorf("%v in\n%v", err, problemsOf(t, source))
	}
}

var goodSite = tomlFile{
	{"", []string{`name = "c"`, `account = "a"`}},
	{"[environment]", []string{`A = "1"`}},
	{"[options]", []string{`constraint = "a100"`}},
	{"[container]", []string{`runtime = "pyxis"`, `image = "x.sqsh"`}},
	{"[[partitions]]", []string{`name = "p"`, `max_workers = 4`, `max_time = "1h"`}},
	{"[energy]", []string{`per_kwh = 0.3`, `currency = "EUR"`, `co2_per_kwh = 380.0`}},
	{"[[prices]]", []string{`per = "node"`, `hour = 1.0`, `currency = "EUR"`}},
}

var siteMistakes = []mistake{
	{"", "name", `1`, "name: want a string"},
	{"", "acount", `"a"`, "acount: unknown key; did you mean account?"},
	{"[environment]", "A", `1`, "environment.A: want a string"},
	{"[environment]", `"B C"`, `"1"`, "environment.B C: "},
	{"[options]", "constraint", `""`, "options.constraint: needs a value"},
	{"[options]", "job-nam", `"x"`, "options.job-nam: means job-name"},
	{"[options]", "contiguous", `true`, "options.contiguous: want a string"},
	{"[container]", "runtime", `"docker"`, "container.runtime: "},
	{"[container]", "image", `3`, "container.image: want a string"},
	{"[container]", "imgae", `"x"`, "container.imgae: unknown key; did you mean image?"},
	{"[[partitions]]", "name", ``, "partitions[0].name: missing"},
	{"[[partitions]]", "max_workers", `"4"`, "partitions[0].max_workers: want a whole number"},
	{"[[partitions]]", "max_nodes", `-1`, "partitions[0].max_nodes: want 0"},
	{"[[partitions]]", "max_time", `"long"`, "partitions[0].max_time: "},
	{"[[prices]]", "per", `"month"`, "prices[0].per: "},
	{"[[prices]]", "hour", `-1.0`, "prices[0].hour: want 0 or more"},
	{"[[prices]]", "currency", ``, "prices[0].currency: missing"},
	{"[[prices]]", "where", `{ a = [1] }`, "prices[0].where: a is a list"},
	{"[[prices]]", "market", `"flea"`, "prices[0].market: "},
	{"[energy]", "per_kwh", `-0.3`, "energy.per_kwh: want 0 or more"},
	{"[energy]", "co2_per_kwh", `"dirty"`, "energy.co2_per_kwh: want a number"},
	{"[energy]", "co2", `380.0`, "energy.co2: unknown key"},
	{"[[prices]]", "vcpus", `4`, "prices[0].vcpus: is the size of a machine"},
}
