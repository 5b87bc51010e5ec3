package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Command holds the options for measuring a command that is given on the command line
// instead of in a study file.
type Command struct {
	Workers string // worker counts, N,N,...; "" for 1
	Name    string // of the study; "" for a name made from the command
	Write   string // study file to write; "" for none
	Repeats int    // 0 for 1
}

// Request returns the request for the study that the operands describe: STUDY
// [KEY=VALUE...], or [KEY=VALUE...] -- COMMAND.
func (o *Command) Request(site string, words []string) (Request, error) {
	i := slices.Index(words, "--")
	if i < 0 {
		if err := o.unused(); err != nil {
			return Request{}, err
		}
		return Request{Study: words[0], Site: site, Overrides: words[1:]}, nil
	}
	overrides, command := words[:i], words[i+1:]
	switch {
	case len(command) == 0:
		return Request{}, Errorf("no command after --; give one, like: -- python train.py --lr 0.1")
	case len(overrides) > 0 && !strings.Contains(overrides[0], "="):
		return Request{}, &Error{Err: fmt.Errorf("%q and a command after --; give one or the other", overrides[0]), Hint: "The study file says what to run."}
	case len(command) == 1 && filepath.Ext(command[0]) == ".toml":
		return Request{}, &Error{Err: fmt.Errorf("%s is a study file, but -- is followed by a command", command[0]), Hint: "Leave -- out."}
	}
	name := o.Name
	if name == "" {
		name = nameOf(command)
	}
	workers, err := workerCounts(o.Workers)
	if err != nil {
		return Request{}, err
	}
	r := Request{Site: site, Typed: true, Write: o.Write}
	set := func(key, value string) {
		short := key[strings.LastIndexByte(key, '.')+1:]
		if !slices.ContainsFunc(overrides, func(w string) bool { k, _, _ := strings.Cut(w, "="); return k == key || k == short }) {
			r.Overrides = append(r.Overrides, key+"="+value)
		}
	}
	// set inserts each key at the start of its TOML table, so the key set last is on
	// the table's first line.
	if o.Repeats != 0 {
		set("study.repeats", strconv.Itoa(o.Repeats))
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
	r.Overrides = append(r.Overrides, overrides...)
	if r.Study = r.Write; r.Write != "" {
		return r, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return Request{}, err
	}
	if r.Study = filepath.Join(here, name+".toml"); Exists(r.Study) {
		return Request{}, &Error{Err: fmt.Errorf("%s exists and would be taken for this study's file", r.Study), Hint: "`scalebench run " + name + ".toml` runs that one; --name gives this study another name."}
	}
	return r, nil
}

// unused returns an error if an option is set that needs a command (words after --): it
// is called if none exists.
func (o *Command) unused() error {
	var given []string
	for _, option := range []struct {
		flag string
		set  bool
	}{{"--name", o.Name != ""}, {"--repeats", o.Repeats != 0}, {"--workers", o.Workers != ""}, {"--write", o.Write != ""}} {
		if option.set {
			given = append(given, option.flag)
		}
	}
	if given == nil {
		return nil
	}
	verb := map[bool]string{true: "is", false: "are"}[len(given) == 1]
	return &Error{Err: fmt.Errorf("%s %s for a command after --, not for a study", strings.Join(given, ", "), verb), Hint: "Keys of a study go after its file: 'sweep.workers=[1,2]' repeats=3 name=NAME"}
}

// workerCounts converts worker counts to TOML: a list such as "1,2,4" to an array, and
// a range such as "1..64" to a string.
func workerCounts(text string) (string, error) {
	if text == "" {
		return "[1]", nil
	}
	if strings.Contains(text, "..") {
		return strconv.Quote(text), nil // package study checks the range
	}
	counts := strings.Split(text, ",")
	for i, word := range counts {
		counts[i] = strings.TrimSpace(word)
		if n, err := strconv.Atoi(counts[i]); err != nil || n < 1 {
			return "", Errorf("--workers %s: %q is not a number of workers; want a list, like 1,2,4, or a range, like 1..64", text, word)
		}
	}
	return "[" + strings.Join(counts, ", ") + "]", nil
}

var (
	interpreters = regexp.MustCompile(`^(python[0-9.]*|bash|sh|dash|zsh|perl|ruby|node|Rscript|julia|env|nice|time)$`)
	notInName    = regexp.MustCompile(`[^A-Za-z0-9._]+`)
)

// nameOf returns the name for a command's study. It consists of the program, or the
// script if the program is an interpreter, and the arguments.
func nameOf(command []string) string {
	const longest = 48 // bytes
	words := slices.Clone(command)
	words[0] = filepath.Base(words[0])
	if len(words) > 1 && interpreters.MatchString(words[0]) {
		words = words[1:]
		for len(words) > 1 && strings.HasPrefix(words[0], "-") { // an option of the interpreter
			words = words[1:]
		}
		words[0] = filepath.Base(words[0])
	}
	words[0] = strings.TrimSuffix(words[0], filepath.Ext(words[0]))
	name := strings.Trim(notInName.ReplaceAllString(strings.Join(words, "-"), "-"), "-._")
	if len(name) > longest {
		name = strings.TrimRight(name[:longest], "-._")
	}
	if name == "" {
		name = "command"
	}
	return name
}

// write writes a command's study to the file that --write names. If that file exists
// with other contents, write returns an error and does not change it.
func (w *Workspace) write(path string, st *study.Study) (err error) {
	if filepath.Ext(path) != ".toml" {
		return Errorf("--write %s: a study file ends in .toml", path)
	}
	text, err := os.ReadFile(path)
	switch {
	case err == nil && string(text) == string(st.Source()):
		return nil
	case err == nil:
		return &Error{Err: fmt.Errorf("--write %s: the file exists and is different", path), Hint: "Name another file, or move that one away."}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	w.Whole(func() { err = sharedfs.Write(path, st.Source(), st.Mode()) })
	return err
}
