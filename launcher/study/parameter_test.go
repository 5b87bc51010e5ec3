package study

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is a framework that starts a program and replaces placeholders with parameters.
var program = Framework{Name: "command", Command: true, Uses: func(p Point) (keys []string) {
	for _, name := range p.Own.Names() {
		if strings.Contains(strings.Join(p.Command.Run, " "), "{"+name+"}") {
			keys = append(keys, "parameters."+name)
		}
	}
	return keys
}}

func planOf(t *testing.T, source string) (*Plan, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "study.toml")
	return planIn(file, source)
}

func planIn(file, source string) (*Plan, error) {
	s, err := Parse(file, []byte(source), append(slices.Clone(frameworks), program))
	if err != nil {
		return nil, err
	}
	return s.Plan(DefaultSite())
}

const ownProgram = `[study]
name = "s"
[command]
run = "train --hidden {hidden} --rate {rate}"
[parameters]
hidden = 512
rate = 0.5
activation = "relu"
bias = true
[sweep]
framework = ["command"]
workers = [1]
`

// Parameters keep their types in the point and in point.json, and are stored by path. A
// point without parameters has no such key.
func TestParameters(t *testing.T) {
	p, err := planOf(t, ownProgram+"hidden = [256, 512]\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Points) != 2 || p.Points[0].Point.ID == p.Points[1].Point.ID {
		t.Fatalf("points %+v", p.Points)
	}
	for i, hidden := range []int64{256, 512} {
		point := p.Points[i].Point
		want := Own{"hidden": {hidden}, "rate": {0.5}, "activation": {"relu"}, "bias": {true}}
		text, err := json.Marshal(point)
		if err != nil {
			t.Fatal(err)
		}
		var back Point
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, back.Own); diff != "" {
			t.Error(diff)
		}
		got := point.Parameters()
		if got["parameters.hidden"] != hidden || got["parameters.rate"] != 0.5 || got["parameters.activation"] != "relu" || got["parameters.bias"] != true {
			t.Errorf("stored: %v", got)
		}
	}
	bare := plan(t, parse(t, minimal), DefaultSite()).Points[0].Point
	if text, _ := json.Marshal(bare); strings.Contains(string(text), "parameters") || strings.Contains(string(text), "variant") {
		t.Errorf("a point without parameters: %s", text)
	}
}

// Floats stay floats in JSON, integers next to floats become floats, and the value is part
// of the identity.
func TestParameterTypes(t *testing.T) {
	if text, _ := json.Marshal(Own{"a": {1.0}, "b": {1e30}, "c": {int64(1)}, "d": {"1"}}); string(text) != `{"a":1.0,"b":1e+30,"c":1,"d":"1"}` {
		t.Errorf("%s", text)
	}
	p, err := planOf(t, ownProgram+"rate = [0, 0.25, 1]\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, q := range p.Points {
		got = append(got, q.Point.Own["rate"].Value)
	}
	if diff := cmp.Diff([]any{0.0, 0.25, 1.0}, got); diff != "" {
		t.Error(diff)
	}
	one, err := planOf(t, ownProgram)
	two, err2 := planOf(t, strings.Replace(ownProgram, "bias = true", "bias = false", 1))
	if err != nil || err2 != nil || one.Points[0].Point.ID == two.Points[0].Point.ID {
		t.Errorf("%v, %v: a parameter is not part of the identity", err, err2)
	}
}

func TestParametersRefused(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"a list", "bias = true", "bias = [1]", "study.toml:9: parameters.bias: want a string, a number, true or false, got [1]"},
		{"infinite", "rate = 0.5", "rate = inf", "parameters.rate: want a finite number"},
		{"a name", "bias = true", "Bias = true", "parameters.Bias: cannot name a parameter"},
		{"a key there is", "bias = true", "batch = 64", "parameters.batch: workload.batch is a key of every study already; choose another name, like own_batch"},
		{"another type", "workers = [1]", "workers = [1]\nhidden = [256, \"wide\"]", "study.toml:13: sweep.hidden[1]: want a whole number, as hidden has elsewhere, got a string"},
		{"twice", "workers = [1]", "workers = [1]\nhidden = [1]\nparameters.hidden = [2]", "by another name; keep one"},
		{"misspelt", "workers = [1]", "workers = [1]\nhiden = [1]", "study.toml:13: sweep.hiden: cannot be swept; did you mean hidden?"},
		{"unheard", "workers = [1]", "workers = [1]\nactivation = [\"relu\", \"tanh\"]", "study.toml:13: sweep.activation: is swept, and nothing in [command] depends on it"},
		{"unheard data", "workers = [1]", "workers = [1]\ntrain_samples = [1, 2]", "sweep.train_samples: is swept, and nothing in [command] depends on it"},
		{"no program", "framework = [\"command\"]", "framework = [\"native\"]", "parameters.hidden: has no effect with framework = \"native\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := strings.Replace(ownProgram, c.from, c.to, 1)
			if c.name == "no program" {
				source = strings.Replace(source, "[command]\nrun = \"train --hidden {hidden} --rate {rate}\"", "[workload]\nmodel = \"cnn\"\nepochs = 1", 1)
			}
			_, err := planOf(t, source)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A parameter is used if the command, or a user's file that it names, mentions its
// environment variable.
func TestParametersByEnvironment(t *testing.T) {
	source := strings.Replace(ownProgram, "train --hidden {hidden} --rate {rate}", "sh train.sh", 1) + "hidden = [256, 512]\n"
	file := filepath.Join(t.TempDir(), "study.toml")
	for text, heard := range map[string]bool{"echo nothing": false, "train --hidden $SCALEBENCH_PARAM_HIDDEN": true} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "train.sh"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := planIn(file, source); (err == nil) != heard {
			t.Errorf("%q: %v", text, err)
		}
	}
	source = strings.Replace(source, "[parameters]", "environment = { ARGUMENTS = \"--width $SCALEBENCH_PARAM_HIDDEN\" }\n[parameters]", 1)
	if _, err := planIn(file, source); err != nil {
		t.Error(err)
	}
}

// Users' models and data accept parameters under the frameworks that start them.
func TestParametersOfOwnModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "study.toml")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "m.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := planIn(file, strings.Replace(minimal, `"cnn"`, `"m.py:build"`, 1)+"hidden = [1, 2]\n[parameters]\nhidden = 1\n")
	if err != nil || len(p.Points) != 6 {
		t.Fatal(p, err)
	}
}

// Every key of [data] can be swept. Folders become absolute in each point; the identity
// uses the name as written.
func TestDataIsSwept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "study.toml")
	at := func(name string) string { return filepath.Join(filepath.Dir(file), name) }
	source := strings.Replace(minimal, "[1, 2, 4]", "[1]", 1)
	type point struct {
		Kind, Path string
		Stage      bool
		Train      int
	}
	for _, c := range []struct {
		sweep string
		want  []point
	}{
		{"path = [\"a\", \"b\"]\nstage = [false, true]\n[data]\nkind = \"cifar10\"", []point{{"cifar10", at("a"), false, 0}, {"cifar10", at("a"), true, 0}, {"cifar10", at("b"), false, 0}, {"cifar10", at("b"), true, 0}}},
		{"data.kind = [\"cifar10\", \"synthetic\"]\n[data]\npath = \"a\"", []point{{"cifar10", at("a"), false, 0}, {"synthetic", at("a"), false, 0}}},
		{"data.train_samples = [10, 20]\ntest_samples = [5]\n[[exclude]]\ntrain_samples = 10", []point{{"cifar10", "", false, 20}}},
	} {
		p, err := planIn(file, source+c.sweep+"\n")
		if err != nil {
			t.Errorf("%s: %v", c.sweep, err)
			continue
		}
		var got []point
		seen := map[string]bool{}
		for _, q := range p.Points {
			d := q.Point.Data
			got = append(got, point{d.Kind, d.Path, d.Stage, d.TrainSamples})
			seen[q.Point.ID] = true
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(seen) != len(got) {
			t.Errorf("%s: %d identities\n%s", c.sweep, len(seen), diff)
		}
	}
	for sweep, want := range map[string]string{
		"stage = [true]": "sweep.stage: no folder to copy",
		"path = [\"a\", \"./a\"]\n[data]\nkind = \"cifar10\"": fmt.Sprintf("sweep.path[1]: is the path of [0], %s, by another name", at("a")),
		"kind = [\"synthetic\"]":                              "sweep.kind: cannot be swept",
		"data.kind = [\"imagenet\"]":                          "study.toml:9: sweep.data.kind[0]: \"imagenet\" is not known",
		"train_samples = [-1]":                                "sweep.train_samples[0]: want 0 to",
	} {
		if _, err := planIn(file, source+sweep+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", sweep, err, want)
		}
	}
	// The same folder gives the same point, swept or not.
	one, err := planIn(file, source+"path = [\"a\"]\n")
	two, err2 := planIn(file, source+"[data]\npath = \"a\"\n")
	if err != nil || err2 != nil || one.Points[0].Point.ID != two.Points[0].Point.ID {
		t.Errorf("%v, %v: %v, %v", err, err2, one, two)
	}
}

// A text that cannot be passed to a program is rejected before anything runs, for all ways of
// passing it.
func TestTextsThatCannotBePassed(t *testing.T) {
	const head = "[study]\nname = \"s\"\n[sweep]\nframework = [\"command\"]\nworkers = [1]\n"
	check := func(place, text string) error {
		parse := func(tail string) error { _, err := planOf(t, head+fmt.Sprintf(tail, text)); return err }
		switch place {
		case "parameters.p":
			return parse("[command]\nrun = [\"a\", \"{p}\"]\n[parameters]\np = \"%s\"\n")
		case "sweep.p":
			return parse("p = [\"\", \"%s\"]\n[command]\nrun = [\"a\", \"{p}\"]\n[parameters]\np = \"\"\n")
		case "command.run":
			return parse("[command]\nrun = [\"a\", \"%s\"]\n")
		case "command.environment":
			return parse("[command]\nrun = [\"a\"]\nenvironment = { P = \"%s\" }\n")
		}
		_, err := ParseSite("site.toml", fmt.Appendf(nil, map[string]string{
			"environment.P":            "[environment]\nP = \"%s\"\n",
			"variant[0].environment.P": "[[variant]]\nname = \"v\"\nenvironment = { P = \"%s\" }\n",
		}[place], text))
		return err
	}
	for _, place := range []string{"parameters.p", "sweep.p", "command.run", "command.environment", "environment.P", "variant[0].environment.P"} {
		if err := check(place, strings.Repeat("x", 64<<10)); err != nil {
			t.Errorf("%s of 64 KiB: %.300v", place, err)
		}
		for text, want := range map[string]string{strings.Repeat("x", 64<<10+1): "is 65537 bytes long", "a\\u0000b": "has a zero byte"} {
			if err := check(place, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), place) {
				t.Errorf("%s: %.300v; want that it %s", place, err, want)
			}
		}
	}
}
