package study

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const overridden = `# a study
[study]
name = "s" # its name

[workload]
model = "mlp"
epochs = 3
decay = "step"
decay_epochs = [
  1,
  2,
]

[data]
kind = "synthetic"

[sweep]
workers = [1, 2]
batch = [32, 64]
`

// The text looks as if a person had written it, and each line maps to its origin.
func TestOverrideText(t *testing.T) {
	for _, test := range []struct {
		name, source string
		words        []string
		want         string
		origin       []int
		list         []Override
	}{
		{"a value in place, the comment stays", "[study]\nname = \"s\"  # so\n", []string{"name=t"},
			"[study]\nname = \"t\"  # so\n", []int{1, 2, 3}, []Override{{"study.name", `"t"`, `"s"`}}},
		{"several lines become one", "[workload]\ndecay_epochs = [\n 1,\n 2,\n]\nmodel = \"mlp\"", []string{"decay_epochs=[3]"},
			"[workload]\ndecay_epochs = [3]\nmodel = \"mlp\"", []int{1, 2, 6}, []Override{{"workload.decay_epochs", "[3]", "[\n 1,\n 2,\n]"}}},
		{"a new key below its table", "[workload] # w\nmodel = \"mlp\"\n[data]\n", []string{"batch=64", "epochs=2"},
			"[workload] # w\nepochs = 2\nbatch = 64\nmodel = \"mlp\"\n[data]\n", []int{1, 0, 0, 2, 3, 4}, []Override{{"workload.batch", "64", ""}, {"workload.epochs", "2", ""}}},
		{"a new table at the end", "[workload]\nmodel = \"mlp\"", []string{"rate=5", "policy.retries.failed=1"},
			"[workload]\nmodel = \"mlp\"\n[policy]\nretries.failed = 1\nrate = 5\n", nil, []Override{{"policy.rate", "5", ""}, {"policy.retries.failed", "1", ""}}},
		{"a table above one that is there", "[policy.retries]\nlost = 2\n", []string{"rate=5", "policy.retries.failed=1"},
			"[policy.retries]\nfailed = 1\nlost = 2\n[policy]\nrate = 5\n", []int{1, 0, 2, 0, 0, 3}, []Override{{"policy.rate", "5", ""}, {"policy.retries.failed", "1", ""}}},
		{"within braces", "workload = { model = \"mlp\" }\ndata = { }\n", []string{"batch=64", "data.kind=synthetic"},
			"workload = { batch = 64, model = \"mlp\" }\ndata = { kind = \"synthetic\" }\n", []int{1, 2, 3}, []Override{{"workload.batch", "64", ""}, {"data.kind", `"synthetic"`, ""}}},
		{"dotted keys before any table", "workload.model = \"mlp\"\n[data]\n", []string{"batch=64"},
			"workload.batch = 64\nworkload.model = \"mlp\"\n[data]\n", []int{0, 1, 2, 3}, []Override{{"workload.batch", "64", ""}}},
		{"what is set is no longer swept", "[workload]\n[sweep]\nbatch = [32, 64]\nworkers = [1]\n", []string{"batch=64"},
			"[workload]\nbatch = 64\n[sweep]\n\nworkers = [1]\n", []int{1, 0, 2, 3, 4, 5}, []Override{{"workload.batch", "64", "sweep.batch = [32, 64]"}}},
		{"a key may be set and swept", "[workload]\nbatch = 32 # b\n[sweep]\n", []string{"sweep.batch=[32,64]"},
			"[workload]\nbatch = 32 # b\n[sweep]\nbatch = [32,64]\n", []int{1, 2, 3, 0, 4}, []Override{{"sweep.batch", "[32,64]", ""}}},
		{"a list sweeps", "[workload]\nbatch = 32\n[sweep]\n", []string{"batch=[32,64]"},
			"[workload]\nbatch = 32\n[sweep]\nbatch = [32,64]\n", []int{1, 2, 3, 0, 4}, []Override{{"sweep.batch", "[32,64]", ""}}},
		{"a list sweeps a parameter", "[parameters]\nhidden = 32\n[sweep]\n", []string{"hidden=[32,64]"},
			"[parameters]\nhidden = 32\n[sweep]\nhidden = [32,64]\n", []int{1, 2, 3, 0, 4}, []Override{{"sweep.hidden", "[32,64]", ""}}},
		{"under the name in the file", "[sweep]\nparameters.hidden = [1]\nworkload.batch = [1]\n", []string{"hidden=[32,64]", "batch=[2]"},
			"[sweep]\nparameters.hidden = [32,64]\nworkload.batch = [2]\n", []int{1, 2, 3, 4}, []Override{{"sweep.parameters.hidden", "[32,64]", "[1]"}, {"sweep.workload.batch", "[2]", "[1]"}}},
		{"a parameter that only [sweep] has", "[sweep]\nhidden = [1]\n", []string{"hidden=[32,64]"},
			"[sweep]\nhidden = [32,64]\n", []int{1, 2, 3}, []Override{{"sweep.hidden", "[32,64]", "[1]"}}},
		{"a list that is one value", "[workload]\n", []string{"targets=[0.5]"},
			"[workload]\ntargets = [0.5]\n", []int{1, 0, 2}, []Override{{"workload.targets", "[0.5]", ""}}},
		{"a sweep by its other name", "[sweep]\nworkload.batch = [1]\n", []string{"sweep.batch=8"},
			"[sweep]\nbatch = [8]\n\n", []int{1, 0, 2, 3}, []Override{{"sweep.batch", "[8]", "sweep.workload.batch = [1]"}}},
		{"one value of a sweep", "[sweep]\nworkers = [1, 2]\n", []string{"workers=4", "framework=native"},
			"[sweep]\nframework = [\"native\"]\nworkers = [4]\n", []int{1, 0, 2, 3}, []Override{{"sweep.workers", "[4]", "[1, 2]"}, {"sweep.framework", `["native"]`, ""}}},
		{"own parameters, declared and swept", "[parameters]\nhidden = 1\n[sweep]\nhidden = [1, 2]\n", []string{"hidden=7"},
			"[parameters]\nhidden = 7\n[sweep]\n\n", []int{1, 2, 3, 4, 5}, []Override{{"parameters.hidden", "7", "1"}}},
		{"a declared one may be swept", "[parameters]\nhidden = 1\n", []string{"sweep.hidden=[1,2]"},
			"[parameters]\nhidden = 1\n[sweep]\nhidden = [1,2]\n", []int{1, 2, 0, 0, 3}, []Override{{"sweep.hidden", "[1,2]", ""}}},
		{"words are strings", "", []string{"time=2h", "site=a b\"c\\", "cpu_bind=", "until=\"x\""},
			"[resources]\ncpu_bind = \"\"\ntime = \"2h\"\n[study]\nsite = \"a b\\\"c\\\\\"\n[workload]\nuntil = \"x\"\n", nil,
			[]Override{{"resources.time", `"2h"`, ""}, {"study.site", `"a b\"c\\"`, ""}, {"resources.cpu_bind", `""`, ""}, {"workload.until", `"x"`, ""}}},
		{"of another kind", "[workload]\nkind = 'collective'\n", []string{"min_bytes=8"},
			"[workload]\nmin_bytes = 8\nkind = 'collective'\n", nil, []Override{{"workload.min_bytes", "8", ""}}},
		{"line ends of Windows, a byte order mark", "\ufeff[workload]\r\nbatch = 8\r\n", []string{"batch=9"},
			"[workload]\r\nbatch = 9\r\n", []int{1, 2, 3}, []Override{{"workload.batch", "9", "8"}}},
	} {
		text, origin, list, problems := override([]byte(test.source), test.words)
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.name, problems)
		}
		if diff := cmp.Diff(test.want, string(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if test.origin != nil {
			if diff := cmp.Diff(test.origin, origin); diff != "" {
				t.Errorf("%s: lines (-want +got):\n%s", test.name, diff)
			}
		}
		if diff := cmp.Diff(test.list, list); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestOverrideRefused(t *testing.T) {
	for word, want := range map[string]string{
		"batch":                    `"batch" has no value`,
		"=4":                       `"" is not the name of a key`,
		"a b=4":                    `"a b" is not the name of a key`,
		"bacth=4":                  "the command line: bacth: unknown key; did you mean workload.batch?",
		"xyzzy=4":                  "the command line: xyzzy: unknown key; give the path of a key of the study file",
		`partition="gpu"`:          "the command line: partition: unknown key; partition is set by [[partitions]] of the site file",
		"account=x":                "the command line: account: unknown key; account is a key of the site file",
		"constraint=a100":          "constraint: unknown key; constraint is an option of sbatch: write it under [options] of the site file",
		"ntasks_per_node=4":        "unknown key; ntasks-per-node is set by resources.workers_per_node of the study",
		"kind=train":               "may be workload.kind or data.kind; write which",
		"workload=4":               "is a table; name a key of it, like workload.kind",
		"exclude.workers=4":        "tables of a list cannot be named",
		"worklod.batch=4":          "unknown key; did you mean workload?",
		"workload.bacth=4":         "the command line: workload.bacth: unknown key; did you mean batch?",
		"batch=x":                  "the command line: workload.batch: want a whole number, got a string",
		"batch=0":                  "the command line: workload.batch: want 1 to 16777216, got 0",
		"workers=[1,0]":            "the command line: sweep.workers[1]: want 1 to 1048576, got 0",
		"batch=[1":                 "batch: [1 is not a TOML value",
		"batch=\"x":                "batch: \"x is not a TOML value",
		"batch=1\nepochs=2":        "batch: the value has characters that cannot be written on one line",
		"batch=1 # x":              "batch: # starts a comment in TOML",
		"batch=\xff":               "batch: the value has characters that cannot be written on one line",
		"workload.model.x=1":       "workload.model is not a table in the file",
		"workload.epochs.x=1":      "workload.epochs is not a table in the file",
		"batch=1 sweep.batch=2":    "set twice, as batch and sweep.batch; keep one",
		"batch=1 workload.batch=1": "set twice, as batch and workload.batch; keep one",
		"model={}":                 "the command line: workload.model: want a string, got a table",
	} {
		words := []string{word}
		if strings.Count(word, "=") == 2 && !strings.Contains(word, "\n") {
			words = strings.Fields(word)
		}
		_, err := Parse("s.toml", []byte(overridden), frameworks, words...)
		var problems Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", word, err, want)
		}
	}
}

// Mistakes in the file are reported with the file's line numbers, even if lines were added
// above.
func TestOverrideLines(t *testing.T) {
	_, err := Parse("s.toml", []byte("[study]\n[workload]\nmodel = \"mlp\"\nepochs = -1\n[data]\nkind = \"nothing\"\n[sweep]\nworkers = [1]\n"), frameworks, "name=s", "batch=4", "time=2h", "decay_epochs=[2,1]")
	want := "the command line: workload.decay_epochs: want epochs from 1 in rising order, got 1 after 2\n" +
		"s.toml:4: workload.epochs: want 0 to 1048576, got -1\n" +
		"s.toml:6: data.kind: \"nothing\" is not known"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v\nwant\n%s", err, want)
	}
}

// A point is the same whether a key is set in the file or on the command line.
func TestOverrideIdentity(t *testing.T) {
	plan := func(source string, words ...string) *Plan {
		s, err := Parse("s.toml", []byte(source), frameworks, words...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse("s.toml", s.Source(), frameworks); err != nil || again.Name != s.Name {
			t.Errorf("the frozen text: %v", err)
		}
		return p
	}
	written := strings.NewReplacer("epochs = 3", "epochs = 7\nbatch = 16", "batch = [32, 64]\n", "", "[1, 2]", "[1, 4]").Replace(overridden)
	if diff := cmp.Diff(plan(written), plan(overridden, "batch=16", "workload.epochs=7", "sweep.workers=[1,4]")); diff != "" {
		t.Error(diff)
	}
}

// FuzzOverride: for any file and word, an override is an error or gives TOML that has the
// value. It never panics.
func FuzzOverride(f *testing.F) {
	for _, word := range []string{"batch=64", "sweep.batch=[1]", "time=2h", "policy.retries.failed=1", "workload.model=\"a\"", "hidden=1"} {
		f.Add(overridden, word)
		f.Add("workload = { model = \"mlp\" }\nsweep.workers = [1]\n", word)
	}
	f.Fuzz(func(t *testing.T, source, word string) {
		if _, err := newDecoder("f", []byte(source)); err != nil {
			return
		}
		text, _, list, _ := override([]byte(source), []string{word})
		d, err := newDecoder("f", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, o := range list {
			if !d.has(o.Path) {
				t.Errorf("%s is not in\n%s", o.Path, text)
			}
		}
	})
}
