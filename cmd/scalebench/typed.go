package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
)

// asked is which study a command line means: a file or a name, with keys set in
// place of the file's, or a command that is the study.
type asked struct {
	study, site string
	overrides   []string
	typed       bool   // there is no file: the overrides say everything
	write       string // where it is kept as one; "": nowhere
}

// load reads the study that was asked for and plans it, for the nodes of an allocation if
// there is one.
func (s *session) load(ctx context.Context, a asked, nodes *launcher.Allocation) (*workspace.Work, error) {
	return s.workspace().Load(ctx, workspace.Request{Study: a.study, Site: a.site, Overrides: a.overrides, Typed: a.typed, Nodes: nodes,
		Keep: func(st *study.Study) error { return a.keep(s, st) }})
}

// studyOrCommand are the operands of the commands that take either.
const studyOrCommand = overriddenStudy + " | -- COMMAND..."

const typedHelp = "-- COMMAND measures a command without a study file. It starts COMMAND once per worker,\n" +
	"each with its RANK, unchanged and without a shell, for each number of --workers. With\n" +
	"command.start=once it starts one copy, which reads {workers} and starts the others. The\n" +
	"study made from it is printed and kept like any other; --write also writes its file."

// commandOptions are of a command that is measured without a study file.
type commandOptions struct {
	workers, name, write string
	repeats              int
}

func (o *commandOptions) flags() []cli.Flag {
	const category = "With -- COMMAND"
	return []cli.Flag{
		&cli.StringFlag{Name: "workers", Category: category, Destination: &o.workers, DefaultText: "1", Usage: "measure with `N,N,...` workers"},
		&cli.IntFlag{Name: "repeats", Category: category, Destination: &o.repeats, DefaultText: "1", Usage: "run each worker count `N` times"},
		&cli.StringFlag{Name: "name", Category: category, Destination: &o.name, DefaultText: "made from the command", Usage: "`NAME` of the study"},
		&cli.StringFlag{Name: "write", Category: category, Destination: &o.write, Usage: "write the study to `FILE`, and read it from there"},
	}
}

// asked is what the operands mean, with what the flags say of a command.
func (o *commandOptions) asked(site string, words []string) (asked, error) {
	i := slices.Index(words, "--")
	if i < 0 {
		var given []string
		for flag, is := range map[string]bool{"--workers": o.workers != "", "--repeats": o.repeats != 0, "--name": o.name != "", "--write": o.write != ""} {
			if is {
				given = append(given, flag)
			}
		}
		if given != nil {
			slices.Sort(given)
			verb := map[bool]string{true: "is", false: "are"}[len(given) == 1]
			return asked{}, &usageError{err: fmt.Errorf("%s %s for a command after --, not for a study", strings.Join(given, ", "), verb), hint: "Keys of a study go after its file: 'sweep.workers=[1,2]' repeats=3 name=NAME"}
		}
		return asked{study: words[0], site: site, overrides: words[1:]}, nil
	}
	overrides, command := words[:i], words[i+1:]
	switch {
	case len(command) == 0:
		return asked{}, usagef("no command after --; give one, like: -- python train.py --lr 0.1")
	case len(overrides) > 0 && !strings.Contains(overrides[0], "="):
		return asked{}, &usageError{err: fmt.Errorf("%q and a command after --; give one or the other", overrides[0]), hint: "The study file says what to run."}
	case len(command) == 1 && filepath.Ext(command[0]) == ".toml":
		return asked{}, &usageError{err: fmt.Errorf("%s is a study file, but -- is followed by a command", command[0]), hint: "Leave -- out."}
	}
	name := o.name
	if name == "" {
		name = nameOf(command)
	}
	workers, err := workerCounts(o.workers)
	if err != nil {
		return asked{}, err
	}
	a := asked{site: site, typed: true, write: o.write}
	set := func(key, value string) {
		short := key[strings.LastIndexByte(key, '.')+1:]
		if !slices.ContainsFunc(overrides, func(w string) bool { k, _, _ := strings.Cut(w, "="); return k == key || k == short }) {
			a.overrides = append(a.overrides, key+"="+value)
		}
	}
	// The last of a table is its first line.
	if o.repeats != 0 {
		set("study.repeats", strconv.Itoa(o.repeats))
	}
	set("study.name", study.Quote(name))
	set("command.extract", "["+study.Quote(framework.Recognised)+"]")
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = study.Quote(word)
	}
	set("command.run", "["+strings.Join(quoted, ", ")+"]")
	set("sweep.workers", workers)
	set("sweep.framework", `["command"]`)
	a.overrides = append(a.overrides, overrides...)
	here, err := os.Getwd()
	if err != nil {
		return asked{}, err
	}
	if a.study = filepath.Join(here, name+".toml"); a.write != "" {
		a.study = a.write
		return a, nil
	}
	if exists(a.study) {
		return asked{}, &usageError{err: fmt.Errorf("%s exists and would be taken for this study's file", a.study), hint: "`scalebench run " + name + ".toml` runs that one; --name gives this study another name."}
	}
	return a, nil
}

// workerCounts is "1,2,4" as a TOML list.
func workerCounts(text string) (string, error) {
	if text == "" {
		return "[1]", nil
	}
	counts := strings.Split(text, ",")
	for i, word := range counts {
		counts[i] = strings.TrimSpace(word)
		if n, err := strconv.Atoi(counts[i]); err != nil || n < 1 {
			return "", usagef("--workers %s: %q is not a number of workers; want a list, like 1,2,4", text, word)
		}
	}
	return "[" + strings.Join(counts, ", ") + "]", nil
}

var (
	interpreters = regexp.MustCompile(`^(python[0-9.]*|bash|sh|dash|zsh|perl|ruby|node|Rscript|julia|env|nice|time)$`)
	noName       = regexp.MustCompile(`[^A-Za-z0-9._]+`)
)

// longestName is how many bytes of a command its study's name has.
const longestName = 48

// nameOf is a study's name by its command: the program, or the script that an
// interpreter is given, and its arguments.
func nameOf(command []string) string {
	words := slices.Clone(command)
	words[0] = filepath.Base(words[0])
	if len(words) > 1 && interpreters.MatchString(words[0]) {
		words = words[1:]
		for len(words) > 1 && strings.HasPrefix(words[0], "-") { // the interpreter's own
			words = words[1:]
		}
		words[0] = filepath.Base(words[0])
	}
	words[0] = strings.TrimSuffix(words[0], filepath.Ext(words[0]))
	name := strings.Trim(noName.ReplaceAllString(strings.Join(words, "-"), "-"), "-._")
	if len(name) > longestName {
		name = strings.TrimRight(name[:longestName], "-._")
	}
	if name == "" {
		name = "command"
	}
	return name
}

// keep writes the study's file where one was asked for. What is there already is
// left alone, unless it is the same.
func (a asked) keep(s *session, st *study.Study) error {
	if a.write == "" {
		return nil
	}
	if filepath.Ext(a.write) != ".toml" {
		return usagef("--write %s: a study file ends in .toml", a.write)
	}
	text, err := os.ReadFile(a.write)
	switch {
	case err == nil && string(text) == string(st.Source()):
		return nil
	case err == nil:
		return &usageError{err: fmt.Errorf("--write %s: the file exists and is different", a.write), hint: "Name another file, or move that one away."}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return s.write(a.write, st.Source(), st.Mode())
}

// tellStudy says which keys are not as the file has them or, of a command, what
// study it makes.
func (s *session) tellStudy(a asked, w *workspace.Work) {
	if !a.typed {
		s.tellOverrides(w)
		return
	}
	where := "--write FILE would keep it as a file"
	if a.write != "" {
		where = "written to " + a.write
	}
	s.note("study %s (%s); its runs are in %s:\n  %s", w.Study.Name, where, w.Folder.Path(), strings.ReplaceAll(strings.TrimSpace(string(w.Study.Source())), "\n", "\n  "))
	several := func(p study.Planned) bool { return p.Point.Workers > 1 && p.Point.Command.Start == "rank" }
	if slices.ContainsFunc(w.Plan.Points, several) {
		s.note("it starts one copy of the command per worker, each with its own RANK; a command that starts its workers itself takes their number by {workers}, and command.start=once before --")
	}
}

// timing prints what the command of a study took, of the points of its plan.
func (s *session) timing(ctx context.Context, w *workspace.Work) error {
	points := map[string]bool{}
	for _, p := range w.Plan.Points {
		points[p.Point.ID] = true
	}
	shown := func(m measure.Measure) bool { return m.Name == measure.RunSeconds }
	a, err := s.reader().Curves(ctx, query.Question{Study: w.Study.Name, Points: points, Measure: measure.RunSeconds, Shown: shown})
	if err != nil {
		return err
	}
	beside := slices.DeleteFunc(measure.Of("train"), func(m measure.Measure) bool {
		return !slices.Contains([]string{measure.RunSeconds, measure.Throughput, measure.FinalAccuracy}, m.Name)
	})
	slices.SortStableFunc(beside, func(a, b measure.Measure) int {
		if a.Name == measure.RunSeconds {
			return -1
		}
		return 0
	})
	if err := s.printEither(tables.Timing(a.Curves), tables.Measures(a.Curves, beside)); err != nil {
		return err
	}
	s.warnOn(a, s.forPeople())
	s.note("`scalebench scaling %[1]s`, `plot run_seconds %[1]s -o FILE` and `report %[1]s` show more.", w.Study.Name)
	return a.BaseError
}
