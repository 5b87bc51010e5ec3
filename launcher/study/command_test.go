package study

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withCommand adds a framework that starts the program of [command] and passes the batch on
// if the command line contains "{batch}".
var withCommand = append(frameworks[:len(frameworks):len(frameworks)], Framework{Name: "command", Command: true,
	Uses: func(p Point) []string {
		if strings.Contains(strings.Join(p.Command.Run, " "), "{batch}") {
			return []string{"workload.batch"}
		}
		return nil
	},
	Placeholder: func(path string, _ Point) string { return map[string]string{"workload.batch": "{batch}"}[path] }})

const commanded = `
[study]
name = "s"
[command]
run = "train --batch {batch}"
[sweep]
framework = ["command"]
workers = [1]
`

func planCommand(t *testing.T, source string) (*Plan, error) {
	t.Helper()
	s, err := Parse("dir/study.toml", []byte(source), withCommand)
	if err != nil {
		return nil, err
	}
	return s.Plan(DefaultSite())
}

// A command needs no model and no length; its folder is the study file's.
func TestCommandPlan(t *testing.T) {
	p, err := planCommand(t, commanded)
	if err != nil {
		t.Fatal(err)
	}
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c := p.Points[0].Point.Command
	want := Command{Run: CommandLine{"train", "--batch", "{batch}"}, Start: "rank", PrintedBy: "first", Uses: []string{"workload.batch"}, Folder: filepath.Join(working, "dir")}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// A study with [command] and no framework has the same points as one that names the framework.
func TestCommandIsTheDefault(t *testing.T) {
	named, err := planCommand(t, commanded)
	if err != nil {
		t.Fatal(err)
	}
	unnamed, err := planCommand(t, strings.Replace(commanded, "framework = [\"command\"]\n", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(named.Points[0].Point, unnamed.Points[0].Point); len(unnamed.Points) != len(named.Points) || d != "" {
		t.Errorf("%d points, want %d; the first (-named +unnamed):\n%s", len(unnamed.Points), len(named.Points), d)
	}
}

// [command] affects only the runs that start it. Those of other frameworks keep their
// identity and their records.
func TestCommandIsOnlyItsOwn(t *testing.T) {
	both := strings.NewReplacer(`["command"]`, `["native", "command"]`, "[command]", "[workload]\nmodel = \"cnn\"\nepochs = 1\n[command]").Replace(commanded)
	p, err := planCommand(t, both)
	if err != nil {
		t.Fatal(err)
	}
	native, own := p.Points[0].Point, p.Points[1].Point
	if alone := plan(t, parse(t, minimal), DefaultSite()).Points[0].Point; native.ID != alone.ID {
		t.Errorf("the native point is %s, and %s without [command]", native.ID, alone.ID)
	}
	if _, ok := native.Parameters()["command.run"]; ok {
		t.Error("the command is recorded with a native run")
	}
	if diff := cmp.Diff([]any{"train", "--batch", "{batch}"}, own.Parameters()["command.run"]); diff != "" {
		t.Error(diff)
	}
	other, err := planCommand(t, strings.Replace(commanded, "train --batch", "train --fast --batch", 1))
	if err != nil {
		t.Fatal(err)
	}
	recorded := own.Parameters()
	if _, ok := recorded["workload.momentum"]; ok || recorded["workload.batch"] != int64(128) || recorded["workload.kind"] != "train" {
		t.Errorf("recorded %v; the command is told of the batch alone", recorded)
	}
	plain, err := planCommand(t, commanded)
	if err != nil {
		t.Fatal(err)
	}
	reading := strings.Replace(commanded, "[sweep]", "extract = [\"horovod\"]\nlog = \"*.csv\"\ncolumns = { accuracy = \"acc\" }\n[sweep]", 1) + "[[extract]]\nname = \"x\"\npattern = \"(?P<value>x)\"\n"
	if other, err := planCommand(t, reading); err != nil || other.Points[0].Point.ID != plain.Points[0].Point.ID || len(other.Points[0].Point.Command.Patterns) != 1 {
		t.Errorf("what is read of the output is a part of the identity, %v", err)
	}
	if same, err := planCommand(t, strings.Replace(commanded, "[sweep]", "start = \"rank\"\n[sweep]", 1)); err != nil || same.Points[0].Point.ID != plain.Points[0].Point.ID || same.Points[0].Point.ID == other.Points[0].Point.ID {
		t.Errorf("a default written out changes the identity, or two command lines have one, %v", err)
	}
}

// A command survives point.json.
func TestCommandJSON(t *testing.T) {
	p := Point{Command: Command{Run: CommandLine{"a b", ""}, Start: "node", Directory: "{output}", Environment: Variables{"B": "x=y", "A": ""}, Folder: "/s"}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Point
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(p.Command, back.Command) {
		t.Errorf("%+v, %v", back.Command, err)
	}
	if want := `"environment":["A=","B=x=y"]`; !strings.Contains(string(text), want) {
		t.Errorf("%s has no %s", text, want)
	}
	if text, err := json.Marshal(Point{}); err != nil || strings.Contains(string(text), "command") {
		t.Errorf("a point without a command says %s, %v", text, err)
	}
}

func TestCommandProblems(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"shell":             {strings.Replace(commanded, "train --batch {batch}", "train | tee log", 1), `dir/study.toml:5: command.run: "train | tee log" has a "|", and no shell reads it`},
		"a number":          {strings.Replace(commanded, `"train --batch {batch}"`, `["train", 7]`, 1), `dir/study.toml:5: command.run: argument [1] is not a string but 7`},
		"no list":           {strings.Replace(commanded, `"train --batch {batch}"`, `7`, 1), `dir/study.toml:5: command.run: want a list of strings`},
		"start":             {strings.Replace(commanded, "[sweep]", "start = \"job\"\n[sweep]", 1), `dir/study.toml:6: command.start: "job" is not known; valid: "rank", "node", "once"`},
		"unknown key":       {strings.Replace(commanded, "[sweep]", "shell = true\n[sweep]", 1), `dir/study.toml:6: command.shell: unknown key; valid here: run, start, directory, environment, extract, log, columns`},
		"variable":          {strings.Replace(commanded, "[sweep]", "environment = { \"A B\" = \"\" }\n[sweep]", 1), `dir/study.toml:6: command.environment: "A B" cannot name an environment variable`},
		"nobody":            {strings.Replace(minimal, "workers", "framework = [\"native\"]\nworkers", 1) + "[command]\nrun = \"x\"\n", `dir/study.toml:10: command: is set, but sweep.framework does not include "command"`},
		"a model is needed": {strings.Replace(commanded, `["command"]`, `["native", "command"]`, 1), "dir/study.toml: workload.epochs: the training has no end; set epochs, max_steps or max_minutes (the first one reached ends it)\ndir/study.toml: workload.model: missing"},
		"swept in vain":     {commanded + "momentum = [0.1, 0.2]\n", `dir/study.toml:9: sweep.momentum: is swept, and nothing in [command] depends on it`},
		"no group":          {commanded + "[[extract]]\nname = \"throughput\"\npattern = \"rate (.*)\"\n", `dir/study.toml:11: extract[0].pattern: has no group named value`},
		"no expression":     {commanded + "[[extract]]\nname = \"throughput\"\npattern = \"(\"\n", `dir/study.toml:11: extract[0].pattern: is not a Go regular expression`},
		"a reduction":       {commanded + "[[extract]]\nname = \"throughput\"\npattern = \"(?P<value>x)\"\nreduce = \"mode\"\n", `dir/study.toml:12: extract[0].reduce: "mode" is not known; valid: "", "last", "mean"`},
		"figure twice":      {commanded + strings.Repeat("[[extract]]\nname = \"x\"\npattern = \"(?P<value>x)\"\n", 2), `dir/study.toml:13: extract[1].name: "x" is also the name of an earlier [[extract]]`},
		"nobody's pattern":  {minimal + "[[extract]]\nname = \"x\"\npattern = \"(?P<value>x)\"\n", `dir/study.toml:9: extract: is set, but sweep.framework does not include "command"`},
		"swept":             {commanded + "run = [\"a\", \"b\"]\n", `dir/study.toml:9: sweep.run: cannot be swept`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := planCommand(t, c.source)
			var problems Problems
			if !errors.As(err, &problems) || len(problems) != 1+strings.Count(c.want, "\n") || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	if _, err := planCommand(t, commanded+"batch = [1, 2]\n"); err != nil {
		t.Errorf("a swept key that the command line uses: %v", err)
	}
}
