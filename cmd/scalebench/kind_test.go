package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// A new kind of workload needs only the files and lines that docs/design.md and
// CONTRIBUTING.md list. This test's kind is in testdata/kind: the programs are built with
// three additional files and two additional lines. Three of its keys have the names of keys
// of trainings, two of them with another type.
func TestNewKind(t *testing.T) {
	s := newScratch(t, map[string]string{
		"launcher/study/answering.go":        "kind/study.go.txt", // the files belong to three packages, so they are text here
		"metrics/measure/answering.go":       "kind/measure.go.txt",
		"cmd/scalebench-worker/answering.go": "kind/worker.go.txt",
	}, map[string]insertion{
		"launcher/study/point.go": {"	Collective Collective\n", "	Answering  Answering\n"},
		"metrics/measure/kind.go": {"	collective,\n", "	answering,\n"},
	}, "./cmd/scalebench", "./cmd/scalebench-worker")
	scalebench, write, has, dir := s.run, s.write, s.has, s.dir
	const service = "[study]\nname = \"service\"\n[workload]\nkind = \"answering\"\n[sweep]\nworkers = [1]\nload = [20, 40]\n"
	write("service.toml", service)

	// Keys, defaults, rules, derived values, and sweeps.
	write("wrong.toml", "[study]\nname = \"wrong\"\n[workload]\nkind = \"answering\"\nmodel = \"resnet20\"\nmomentum = 0.9\nbatch = 64\n[sweep]\nworkers = [1, 4]\nload = [-1]\n")
	has(scalebench(2, "check", "wrong.toml"),
		`wrong.toml:5: workload.model: "resnet20" is not known; valid: "small", "large"`,
		"wrong.toml:6: workload.momentum: unknown key; valid here: kind, model, epochs, batch, load",
		"wrong.toml:7: workload.batch: want a list", "wrong.toml:10: sweep.load[0]: want more than 0, got -1",
		"wrong.toml:9: sweep.workers: a service has 1 or 2 workers here")
	// Writing a default explicitly gives the same point; another value gives another point.
	identities := func(file string) string { return scalebench(0, "check", file, "--format", "csv", "-q") }
	before := identities("service.toml")
	write("explicit.toml", strings.Replace(service, "[sweep]", "model = \"small\"\n[sweep]", 1))
	write("large.toml", strings.Replace(service, "[sweep]", "model = \"large\"\n[sweep]", 1))
	if identities("explicit.toml") != before || identities("large.toml") == before {
		t.Error("the identity is not of what differs from the kind's own defaults")
	}
	// Its keys are placeholders of a command; a training's are not.
	write("command.toml", strings.Replace(service, "[sweep]", "[command]\nrun = \"serve {model} {load} {learning_rate}\"\n[sweep]\nframework = [\"command\"]", 1))
	has(scalebench(2, "check", "command.toml"), "command.run[3]: {learning_rate} is not a placeholder")

	// It runs, and the record has its own keys.
	scalebench(0, "run", "service.toml")
	points, err := filepath.Glob(filepath.Join(dir, "runs", "*", "*", "point.json"))
	if err != nil || len(points) != 2 {
		t.Fatalf("%v, %v", points, err)
	}
	for _, path := range points {
		var point struct {
			Workload map[string]any `json:"workload"`
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &point)
		}
		if w := point.Workload; err != nil || len(w) != 5 || w["kind"] != "answering" || w["model"] != "small" || w["epochs"] != 0.5 || w["load"] == nil {
			t.Errorf("%v: %s", err, text)
		}
	}
	// Its measure is stored, followed and selected by its keys like any other: 40
	// requests/s take 40 ms.
	has(scalebench(0, "history", "--measure", "answer_p99", "--where", "workload.load = 40 AND workload.model = 'small'"), "40.0 ms")
	if out := scalebench(0, "history", "--measure", "answer_p99", "--where", "workload.load = 40"); strings.Contains(out, "20.0 ms") {
		t.Errorf("not selected by its own key:\n%s", out)
	}
	// It gives a curve over any of its keys: twice the load, half as good. Without a measure,
	// scaling prints the table of its measures. Requests that only trainings support are
	// refused with a suggestion.
	has(scalebench(0, "collect", "service"), "2 done")
	has(scalebench(0, "scaling", "service", "-m", "answer_p99", "-x", "load", "--format", "csv"),
		"native,20,1,answer_p99,s,0.02,,,1,", "native,40,1,answer_p99,s,0.04,,,0.5,")
	scalebench(0, "plot", "answer_p99", "service", "-x", "load", "-o", "load.svg")
	has(scalebench(0, "scaling", "service", "--format", "csv"), "series,workers,runs,answer_p99,", "native load=20,1,1,0.02,", "native load=40,1,1,0.04,")
	has(scalebench(0, "scaling", "service", "-x", "load"), "20.0 ms", "40.0 ms")
	has(scalebench(2, "plot", "speedup", "service", "-o", "no.svg"), `of kind "answering"`, "trains nothing", "plot answer_p99 service")

	// advise, cost and report answer by what the kind declares: twice the workers answer
	// twice as fast, provisionally, because its runs are equal to the last digit. A run says that it
	// took an hour for each, at 1.50 EUR.
	write("prices.toml", "[[prices]]\nper = \"node\"\nhour = 1.5\ncurrency = \"EUR\"\nas_of = \"2026-01-01\"\nsource = \"list\"\n")
	write("grown.toml", "[study]\nname = \"grown\"\nrepeats = 6\n[workload]\nkind = \"answering\"\nload = 40\n[sweep]\nworkers = [1, 2]\n")
	scalebench(0, "run", "grown.toml")
	has(scalebench(0, "collect", "grown"), "12 done")
	has(scalebench(0, "advise", "grown"), "Provisional: use 2 workers", "improves answer p99 2×")
	has(scalebench(0, "cost", "grown", "--site", "prices.toml", "--format", "csv"), "native,1,6,a run,3600,,,1.5,,,EUR", "native,2,6,a run,7200,,,3,,,EUR")
	scalebench(0, "report", "grown", "--site", "prices.toml", "-o", "page.html")
	page, err := os.ReadFile(filepath.Join(dir, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	has(string(page), "Provisional: use 2 workers", "Lowest answer p99 with 2 workers: 20.0 ms", "Time and cost", "3.00")
	// Without prices the page says why nothing is priced.
	scalebench(0, "report", "grown", "-o", "unpriced.html")
}

// No code outside a kind's own files compares a kind's name: it asks what the kind declares.
func TestNoKindByName(t *testing.T) {
	names := `"(` + strings.Join(study.Kinds(), "|") + `)"`
	compares := regexp.MustCompile(`[kK]ind(\(\)|"\])?\)? *[=!]= *` + names + `|` + names + ` *[=!]= *[a-zA-Z.]*[kK]ind\b|case ` + names)
	for _, line := range []string{`if a.Kind == "serve" {`, `case "train":`, `p.Parameters["workload.kind"] != "preprocess"`} {
		if !compares.MatchString(line) {
			t.Errorf("%s is not found", line)
		}
	}
	for _, root := range []string{"../../cmd", "../../launcher", "../../metrics", "../../slurm"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				if compares.MatchString(line) {
					t.Errorf("%s:%d compares a kind's name; ask measure.Kind or the study's kind: %s", path, i+1, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
