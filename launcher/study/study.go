// Package study reads what a user asks for: the study file, which says what to
// measure, and the site file, which says how one cluster wants it. Both are
// TOML over defaults. It expands them to a Plan of Points and knows nothing of
// how a point is run.
//
// A file is refused with all its problems at once, each with file, line, TOML
// path, what was wrong and what is valid. A default is never changed once
// released: a point's identity is a hash of the keys that differ from their
// defaults, so that an old study still finds its results.
package study

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Framework is what this package is told of a framework: its name, and which
// points it can run.
type Framework struct {
	Name string
	// Check says, by TOML path, what in the point this framework cannot do.
	Check func(Point) map[string]string
	// Command: it starts the program of [command], which brings its own model
	// and its own end.
	Command bool
	// Server: it serves models, and does nothing else.
	Server bool
	// Uses names the keys whose values reach the program, by TOML path; nil:
	// all of them do.
	Uses func(Point) []string
	// Placeholder is the word of a command that stands for a key, by the key's TOML
	// path in a point; "" where there is none.
	Placeholder func(path string, p Point) string
}

func (f Framework) placeholder(path string, p *Point) string {
	if f.Placeholder == nil {
		return ""
	}
	return f.Placeholder(path, *p)
}

// Study is a study file, decoded and checked.
type Study struct {
	File      string // as given to Load
	Name      string
	Repeats   int    // number of the last
	First     int    // and of the first one that is planned
	Seed      int64  // repeat r runs with Seed + r - 1
	Site      string // path of the site file, "" for none
	Share     string // with whom the runs are shared: ShareGroup, or "" for what the umask lets read
	Workload  Workload
	Data      Data
	Own       Own // [parameters]
	Command   Command
	Resources Resources
	Policy    Policy
	Telemetry Telemetry

	// UntilDecided: Repeats is the most, and runs are made until the study's question is decided.
	UntilDecided bool
	MaxNodeHours float64   // that such a study may take; 0: no limit
	StopBy       time.Time // and when it begins no more runs; zero: no limit

	// Overrides are the keys that the command line has set instead of the file.
	Overrides []Override

	// Key makes the digests that replace secrets; set it before Plan if there are
	// any (Secret).
	Key redact.Key

	source     []byte // the file's text
	mode       fs.FileMode
	paths      map[string]string // of data.path and the like, as written, which is the identity's, to absolute
	axes       []axis
	counts     *workerRange // of workers, whose counts are chosen; nil if they are listed
	exclusions []exclusion
	design     string      // "", or one of designs
	inclusions []exclusion // what oneFactor has besides
	frameworks []Framework
	lines      lines
}

// ShareGroup is the value of study.share with which the group of the runs folder may
// read the runs, and no other user, for any umask of the user.
const ShareGroup = "group"

// Umask is the umask with which everything of the study's runs is written; ok is false
// where it is the user's own.
func (s *Study) Umask() (umask int, ok bool) { return 0o027, s.Share == ShareGroup }

// header is the [study] table.
type header struct {
	Name    string  `toml:"name"`
	Repeats repeats `toml:"repeats"`
	First   int     `toml:"first_repeat"`
	Seed    int64   `toml:"seed"`
	Site    string  `toml:"site"`
	Share   string  `toml:"share"`

	// Of a study that is measured until its question is decided.
	MaxRepeats   int     `toml:"max_repeats"`
	MaxNodeHours float64 `toml:"max_node_hours"`
	StopBy       string  `toml:"stop_by"`
}

// tables are the top-level keys of a study file.
var tables = []string{"study", "workload", "data", "parameters", "command", "extract", "sweep", "exclude", "include", "resources", "policy", "telemetry"}

// homes are the tables to which the keys of a study file belong, by key; a key of
// several has the first one.
func homes() map[string]string {
	paths := map[string]string{"framework": "sweep.framework", "workers": "sweep.workers"}
	for _, t := range []struct {
		name string
		keys fieldSet
	}{
		{"resources", fieldsOf(reflect.TypeFor[Resources]())}, {"workload", kinds()[defaultKind].fields()}, {"data", fieldsOf(reflect.TypeFor[Data]())},
		{"command", fieldsOf(reflect.TypeFor[Command]())}, {"policy", fieldsOf(reflect.TypeFor[Policy]())}, {"telemetry", fieldsOf(reflect.TypeFor[Telemetry]())}, {"study", fieldsOf(reflect.TypeFor[header]())},
	} {
		for _, key := range t.keys.keys {
			if paths[key] == "" {
				paths[key] = t.name + "." + key
			}
		}
	}
	return paths
}

// namePattern matches valid study names: a name becomes a folder's name
// and a part of job names.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Load reads a study file, with the keys that the words KEY=VALUE set in place of
// it. The error is Problems, or that the file cannot be read. With Problems the study is nil or, where the file could be read as TOML,
// holds no more than what else it names, so that those files can be checked too.
func Load(path string, frameworks []Framework, overrides ...string) (*Study, error) {
	source, mode, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the study: %w", err)
	}
	s, err := Parse(path, source, frameworks, overrides...)
	if s != nil {
		s.mode = mode
	}
	return s, err
}

// read is a file's text, cut off just behind what may be parsed, and its
// permissions.
func read(path string) ([]byte, fs.FileMode, error) {
	open := sharedfs.Open
	if strings.HasPrefix(path, "/dev/fd/") || path == "/dev/stdin" { // --site <(…); others' FIFOs are not waited for
		open = os.Open
	}
	f, err := open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	return text, info.Mode().Perm(), err
}

// Parse is Load of a file's content. Relative paths in it are taken from the
// folder of path.
func Parse(path string, source []byte, frameworks []Framework, overrides ...string) (*Study, error) {
	d, err := newDecoder(path, source)
	if err != nil {
		return nil, err
	}
	var overridden []Override
	if len(overrides) > 0 {
		text, origin, list, problems := override(source, overrides)
		if d, err = newDecoder(path, text); err != nil {
			return nil, err
		}
		d.lines.trace(origin, list)
		d.problems, source, overridden = problems, text, list
	}
	d.homes = homes()
	for _, key := range d.inOrder("", d.top) {
		if !slices.Contains(tables, key) {
			d.unknown("", key, unknownKey, tables, d.top.has, unreadable)
		}
	}

	head := header{Repeats: 1, First: 1, Seed: 1, MaxRepeats: MaxRepeats}
	d.into("study", d.sub(d.top, "study"), &head)
	s := &Study{File: path, source: source, Overrides: overridden, Name: head.Name, First: head.First, Seed: head.Seed,
		Data: defaultData, Command: defaultCommand, Resources: defaultResources, Policy: defaultPolicy, Telemetry: defaultTelemetry, frameworks: frameworks}
	switch {
	case s.Name == "":
		d.rule("study.name", "missing; give the study a name, like \"resnet44-cifar10\"")
	case !namePattern.MatchString(s.Name):
		d.rule("study.name", fmt.Sprintf("%q cannot name a folder; use up to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit", s.Name))
	}
	d.until(s, &head)
	switch {
	case s.First < 1:
		d.rule("study.first_repeat", fmt.Sprintf("want 1 or more, got %d", s.First))
	case s.Repeats >= 1 && s.First > s.Repeats:
		d.conflict("study.first_repeat", fmt.Sprintf("%d is more than study.repeats, %d, which is the last one", s.First, s.Repeats), "study.repeats")
	}
	s.Site = d.path("study.site", head.Site)
	s.Share = head.Share
	d.rule("study.share", among("", ShareGroup)(head.Share))

	workload := d.sub(d.top, "workload")
	kind := d.workloadKind(workload)
	s.Workload = kind.defaults
	fields := kind.fields()
	fields.elsewhere = kind.elsewhere(d)
	d.fields("workload", workload, fields, reflect.ValueOf(&s.Workload).Elem())
	s.Workload.Kind = kind.defaults.Kind
	data := d.sub(d.top, "data")
	d.into("data", data, &s.Data)
	s.paths = map[string]string{s.Data.Path: d.path("data.path", s.Data.Path)}
	for _, key := range kind.files {
		name := keyOf(s.Workload.Kind, key).in(&Point{Workload: s.Workload}).String()
		s.paths[name] = d.located(kind, key, key, name)
	}
	if !kind.data {
		if data != nil {
			d.conflict("data", fmt.Sprintf("kind = %q uses no data; leave the table out", s.Workload.Kind), "workload.kind")
		}
		s.Data = Data{}
	}
	s.Own = d.parameters(kind)
	d.into("command", d.sub(d.top, "command"), &s.Command)
	s.Command.Folder = d.path("command", ".")
	s.Command.Patterns = d.extract()
	d.into("resources", d.sub(d.top, "resources"), &s.Resources)
	d.into("policy", d.sub(d.top, "policy"), &s.Policy)
	d.checkPolicy(s.Policy)
	d.into("telemetry", d.sub(d.top, "telemetry"), &s.Telemetry)
	d.checkTelemetry(s.Telemetry)
	s.axes = d.sweep(d.sub(d.top, "sweep"), kind, s)
	s.exclusions = d.exclusions("exclude", s.axes)
	s.inclusions = d.included(s.axes, s.design)
	d.alike(s.axes, s.design)
	d.fits(s.axes, s.design)

	d.commandFits(s)
	d.checkValues(kind, s)
	s.lines = d.lines
	if len(d.problems) > 0 {
		d.points(kind, *s)
		return &Study{File: path, Site: s.Site}, d.problems.orNil()
	}
	return s, nil
}

// Problem is one with a value in the study's file that only somebody else can
// see, like a folder that is missing.
func (s *Study) Problem(path, message string) Problem {
	return Problem{File: s.File, Line: s.lines.of(path), Path: path, Message: message}
}

// Source is the file's text, as it was read.
func (s *Study) Source() []byte { return s.source }

// Mode returns the permissions that a copy of the file may have at most: the
// file's own, and only the owner's if it holds secrets or came from elsewhere.
func (s *Study) Mode() fs.FileMode {
	if s.Secret() || redact.Text(string(s.source)) != string(s.source) {
		return sharedfs.ModePrivate
	}
	return s.mode&sharedfs.ModeOpen | sharedfs.ModePrivate
}

// workloadKind finds the rules of the workload's kind; with an unknown one the
// rest of the file is still checked, by the kind that was probably meant.
func (d *decoder) workloadKind(workload table) kind {
	name := defaultKind
	if p, ok := workload["kind"]; ok && !d.value("workload.kind", p, &name) {
		d.anyKind = true
		return kinds()[defaultKind]
	}
	k, ok := kinds()[name]
	if !ok {
		d.problem("workload.kind", oneOf(name, Kinds()))
		near := NearWords(name, Kinds())
		if d.anyKind = len(near) == 0; d.anyKind {
			return kinds()[defaultKind]
		}
		return kinds()[near[0]]
	}
	return k
}

// path makes a path in the file absolute, since jobs run elsewhere: variables
// and a leading ~/ are expanded, a relative one is taken from the file's
// folder. "" stays "".
func (d *decoder) path(key, path string) string {
	if path == "" {
		return ""
	}
	path = os.Expand(path, func(name string) string {
		value, ok := os.LookupEnv(name)
		if !ok {
			d.problem(key, fmt.Sprintf("the environment variable %s is not set", name))
		}
		return value
	})
	if strings.HasPrefix(path, objectScheme) {
		d.problem(key, "object storage cannot be used here; name a folder or file (s3://BUCKET/PREFIX is for workload.source and workload.target of kind = \"preprocess\", without variables in it)")
		return path
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			d.problem(key, "~ cannot be expanded: "+err.Error())
			return path
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.file), path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		d.problem(key, err.Error())
	}
	return abs
}
