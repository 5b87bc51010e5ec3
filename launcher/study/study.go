// Package study reads the study file, which says what to measure, and the site file, which
// describes a cluster. Both are TOML files; keys that are not set have defaults. The
// package expands them into a Plan, a list of Points to run. It does not know how to run a
// point.
//
// All problems of a file are reported together, each with file, line, TOML path, what is
// wrong and what is valid. The default of a key never changes after a release. A point's
// identity is a hash of the keys that differ from their defaults, so old studies would
// otherwise lose their results.
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

// A Framework describes a framework to this package: its name, and the points that it can
// run.
type Framework struct {
	Name string
	// Check returns messages about keys of the point that this framework does not support,
	// by TOML path.
	Check func(Point) map[string]string
	// Command is set if the framework starts the user's program ([command]), which
	// determines the model and the length of the run itself.
	Command bool
	// Server is set if the framework only serves models.
	Server bool
	// Uses returns the TOML paths of the keys whose values reach the program; if Uses is
	// nil, all do.
	Uses func(Point) []string
	// Placeholder returns the placeholder, such as {batch}, that a command may contain for
	// the key with this TOML path; "": none.
	Placeholder func(path string, p Point) string
}

func (f Framework) placeholder(path string, p *Point) string {
	if f.Placeholder == nil {
		return ""
	}
	return f.Placeholder(path, *p)
}

// A Study is a decoded and checked study file.
type Study struct {
	File      string // path as given to Load
	Name      string
	Repeats   int    // number of the last repeat
	First     int    // number of the first planned repeat
	Seed      int64  // repeat r uses Seed + r - 1
	Site      string // path of the site file, "" for none
	Share     string // who may read the runs: ShareGroup, or "" to follow the umask
	Workload  Workload
	Data      Data
	Own       Own // [parameters]
	Command   Command
	Resources Resources
	Policy    Policy
	Telemetry Telemetry
	Notify    Notify

	// UntilDecided is set if the study is measured until its question has an answer.
	// Repeats is then the maximum.
	UntilDecided bool
	MaxNodeHours float64   // limit for such a study; 0: no limit
	StopBy       time.Time // time after which such a study starts no more runs; zero: no limit

	// Overrides are the keys that KEY=VALUE arguments set.
	Overrides []Override

	// Key is the key for the digests that replace secrets. If Secret reports that there are
	// any, set it before calling Plan.
	Key redact.Key

	source     []byte // the file's text
	mode       fs.FileMode
	paths      map[string]string // absolute paths of data.path and similar keys, by the path as written in the file, which a point's identity uses
	axes       []axis
	counts     *workerRange // range of worker counts; nil if the study lists them
	exclusions []exclusion
	design     string      // "" or one of designs
	inclusions []exclusion // combinations to measure in addition to those of oneFactor
	frameworks []Framework
	lines      lines
}

// ShareGroup is the value of study.share with which the group of the runs folder can read
// the runs and other users cannot. The user's umask does not matter.
const ShareGroup = "group"

// Umask returns the umask with which the files of the study's runs are created; ok is false
// if the user's own umask applies.
func (s *Study) Umask() (umask int, ok bool) { return 0o027, s.Share == ShareGroup }

// header is the [study] table.
type header struct {
	Name    string  `toml:"name"`
	Repeats repeats `toml:"repeats"`
	First   int     `toml:"first_repeat"`
	Seed    int64   `toml:"seed"`
	Site    string  `toml:"site"`
	Share   string  `toml:"share"`

	// The following keys are for studies with repeats = "until-decided".
	MaxRepeats   int     `toml:"max_repeats"`
	MaxNodeHours float64 `toml:"max_node_hours"`
	StopBy       string  `toml:"stop_by"`
}

// tables are the top-level keys of a study file.
var tables = []string{"study", "workload", "data", "parameters", "command", "extract", "sweep", "exclude", "include", "resources", "policy", "telemetry", "notify"}

// homes returns the full path of each key of a study file, by the last part of the path. If
// several tables have the key, it is the path in the first of them.
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

// namePattern matches valid study names. A name becomes a folder and part of job names.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Load reads a study file, applies KEY=VALUE overrides, and checks the study. Its error is
// a Problems value with all mistakes, or says that the file cannot be read. With Problems,
// the study is nil or, if the file is valid TOML, has only the names of further files, so
// that the caller can check these, too.
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

// read returns a file's text and its permissions. It reads only a little more than the size
// limit, so that the caller notices a file that is too large.
func read(path string) ([]byte, fs.FileMode, error) {
	open := sharedfs.Open
	if strings.HasPrefix(path, "/dev/fd/") || path == "/dev/stdin" { // allows --site <(…); other FIFOs are refused
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

// Parse is like Load, for the content of a file. Relative paths in it start in the folder
// of path.
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
	d.into("notify", d.sub(d.top, "notify"), &s.Notify)
	s.Notify = d.notify(s.Notify)
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

// Problem returns a Problem about the value at a TOML path in the study file. It is for
// checks in other packages, such as whether a folder exists.
func (s *Study) Problem(path, message string) Problem {
	return Problem{File: s.File, Line: s.lines.of(path), Path: path, Message: message}
}

// Source returns the file's text as read.
func (s *Study) Source() []byte { return s.source }

// Mode returns the most permissive file mode that a copy of the file may have. It is the
// file's own mode, or only the owner's part of it if the file contains secrets or its text
// was not read from a file.
func (s *Study) Mode() fs.FileMode {
	if s.Secret() || redact.Text(string(s.source)) != string(s.source) {
		return sharedfs.ModePrivate
	}
	return s.mode&sharedfs.ModeOpen | sharedfs.ModePrivate
}

// workloadKind returns the workload's kind. If the file names an unknown kind, it returns
// the most similar one, with which the rest of the file is checked.
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

// path returns a path of the file as an absolute path, because jobs run in other folders.
// It expands variables and a leading ~/. Relative paths start in the file's folder. For ""
// it returns "".
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
