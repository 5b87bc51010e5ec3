package study

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Plan is every run that a study asks for, once, on one site.
type Plan struct {
	Study  string    `json:"study"`
	Points []Planned `json:"points"` // repeats stand next to each other
	// LeftOut are the combinations that the design leaves out, since their degrees do
	// not fit their workers.
	LeftOut int `json:"left_out,omitzero"`
	// Unfit are the counts of a range of workers that cannot run, ascending.
	Unfit []Unfit `json:"unfit,omitempty"`
	// Where the study and its site file were read, absolute, once the plan is
	// frozen: what is relative in their frozen copies is meant from there. "" of
	// the site: there was none.
	StudyFile string `json:"study_file,omitempty"`
	SiteFile  string `json:"site_file,omitempty"`
	// Overridden: keys from the command line define the points, not the file alone.
	Overridden bool `json:"overridden,omitempty"`
}

// Planned is a point together with where it goes. What a program needs is in
// the Point; the rest is the scheduler's.
type Planned struct {
	Point Point `json:"point"` // its Command and parameters are sealed
	// Command and Own are those that are run, with their secrets; no record has
	// them.
	Command   Command `json:"-"`
	Own       Own     `json:"-"`
	Partition string  `json:"partition"` // "": the cluster's default
	Exclusive bool    `json:"exclusive"`
	// Unconstrained: every resource has its first value, in a design that compares the
	// others with it.
	Unconstrained bool `json:"unconstrained,omitempty"`
	// Between: the worker count lies between two doublings of a range. It is measured only
	// if the answer is next to it.
	Between bool `json:"-"`
	// Curve numbers the combinations of all keys other than workers: points with the same
	// number differ only in their workers.
	Curve int `json:"-"`
	// Added: the run is not in the study's file; keys from the command line gave an axis
	// of the file another value, or asked for more repeats.
	Added bool `json:"added,omitempty"`
	// Files of the user's own that the run needs: the name that each gets in
	// the run folder, and its absolute path.
	Files map[string]string `json:"files,omitempty"`
}

// UnmarshalJSON reads a plan that may be anybody's: of no more runs than a
// study may have, and with every point as a study could have asked for it.
func (p *Plan) UnmarshalJSON(text []byte) error {
	type plain Plan // without this method
	var read struct {
		*plain
		Points planned `json:"points"`
	}
	read.plain = (*plain)(p)
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	p.Points = read.Points
	return nil
}

// planned are read one after the other: 1 GB of {}, {}, … would be 200 GB of
// points.
type planned []Planned

func (list *planned) UnmarshalJSON(text []byte) error {
	*list = nil
	d := json.NewDecoder(bytes.NewReader(text))
	switch start, err := d.Token(); {
	case err != nil:
		return err
	case start == nil: // null
		return nil
	case start != json.Delim('['):
		return errors.New("points is not a list")
	}
	for d.More() {
		if len(*list) == maxPoints {
			return fmt.Errorf("more than %d runs", maxPoints)
		}
		var p Planned
		if err := d.Decode(&p); err != nil {
			return fmt.Errorf("points[%d]: %w", len(*list), err)
		}
		if err := p.Point.Check(); err != nil {
			return fmt.Errorf("points[%d]: %w", len(*list), err)
		}
		*list = append(*list, p)
	}
	return nil
}

// maxPoints bounds a plan: a grid grows fast by accident.
const maxPoints = 100_000

// Plan expands the study's sweep over the site's partitions. The error is
// Problems with everything that does not fit. A nil site is one that could not
// be read: what depends on it is then left out.
func (s *Study) Plan(site *Site) (*Plan, error) {
	if site == nil {
		site = unread
	}
	fits, unfit := s.fitting(site, nil)
	plan, problems := fits.expand(site, nil)
	if err := problems.orNil(); err != nil {
		return nil, err
	}
	plan.Unfit = unfit
	return plan, nil
}

// Runs returns the number of runs of each point.
func (s *Study) Runs() int { return s.Repeats - s.First + 1 }

// expand is Plan; of a study with flaws it only looks for problems that do not
// follow from those.
func (s *Study) expand(site *Site, known flaws) (*Plan, Problems) {
	runs := float64(s.Runs()) * s.combinations()
	if runs > maxPoints {
		return nil, Problems{s.tooManyRuns(runs)}
	}
	x := expansion{study: s, site: site, flaws: known, variant: map[string]*Site{}, texts: map[string]string{}, seen: map[string]bool{}, said: map[string]bool{},
		used: map[string]bool{}, idle: map[string]idle{}, chosen: newDesign(s), excluded: make([]bool, len(s.exclusions)), excluder: newExcluder(s.exclusions, s.axes),
		plan: &Plan{Study: s.Name, Points: make([]Planned, 0, int(runs))}}
	x.defaults = keyTexts(&Point{Workload: kinds()[s.Workload.Kind].defaults, Data: defaultData, Command: defaultCommand, Resources: defaultResources})
	x.defaults["workload.kind"] = strconv.Quote(defaultKind)
	if site != unread {
		x.variants()
	}
	x.walk(&Point{Study: s.Name, Workload: s.Workload, Data: s.Data, Own: s.Own, Command: s.Command, Resources: s.Resources}, s.axes)
	x.misfits.report(&x)
	x.unused()
	x.idleExclusions()
	if len(x.plan.Points) == 0 && len(x.problems) == 0 {
		if x.plan.LeftOut > 0 {
			x.problem("workers", "the degrees of no combination fit its workers", degreeKeys...)
		} else {
			x.problem("exclude", "excludes every point", "sweep")
		}
	}
	return x.plan, x.problems
}

// tooManyRuns reports a plan of more than maxPoints runs, with the axes that multiply them.
func (s *Study) tooManyRuns(runs float64) Problem {
	var factors []string
	for _, a := range s.axes {
		if len(a.values) > 1 {
			factors = append(factors, fmt.Sprintf("%s: %d", a.key, len(a.values)))
		}
	}
	if s.Runs() > 1 {
		factors = append(factors, fmt.Sprintf("repeats: %d", s.Runs()))
	}
	return Problem{File: s.File, Line: s.lines.of("sweep"), Path: "sweep",
		Message: fmt.Sprintf("%.0f runs (%s), and a study may have up to %d; sweep fewer values, or divide it into several studies", runs, strings.Join(factors, " × "), maxPoints)}
}

// walk visits every combination of the axes' values that the design chooses; p has those
// of the axes before.
func (x *expansion) walk(p *Point, axes []axis) {
	if len(axes) == 0 {
		x.visit(p)
		return
	}
	if axes[0].path == "workers" { // the last axis
		x.curve++
	}
	for i, v := range axes[0].values {
		axes[0].field.set(p, v)
		if x.chosen.enter(axes[0], i) {
			x.walk(p, axes[1:])
		}
		x.chosen.leave(axes[0], i)
	}
}

// visit plans one combination, unless it is excluded or its layout does not fit.
func (x *expansion) visit(p *Point) {
	if !x.chosen.has(p) {
		return
	}
	if i, left := x.excluder.out(p); left {
		x.excluded[i] = true
		return
	}
	x.misfits.all++
	if why := p.misfit(); why != "" && x.framework(p.Framework).Command {
		if x.study.design == layouts {
			x.plan.LeftOut++
		} else {
			x.misfits.why = append(x.misfits.why, why)
		}
		return
	}
	for _, planned := range x.point(*p) {
		planned.Unconstrained = x.chosen.unconstrained()
		planned.Curve, planned.Between = x.curve, x.study.counts.isBetween(p.Workers)
		x.plan.Points = append(x.plan.Points, planned)
	}
}

// idleExclusions reports exclusions that exclude nothing.
func (x *expansion) idleExclusions() {
	for i, e := range x.study.exclusions {
		if x.excluded[i] {
			continue
		}
		var axes []string
		for _, a := range x.study.axes {
			if e.values[a.path] != nil {
				axes = append(axes, a.path, "sweep."+a.key)
			}
		}
		x.problem(e.path, "excludes no point of the sweep", axes...)
	}
}

// expansion is the state of one Plan.
type expansion struct {
	study    *Study
	site     *Site
	flaws    flaws // of the study
	defaults map[string]string
	variant  map[string]*Site  // the site as each variant has it
	texts    map[string]string // of the user's files that a command names, by path
	seen     map[string]bool   // identities
	said     map[string]bool   // problems, once each
	used     map[string]bool   // keys that mean something to a point
	idle     map[string]idle   // keys that mean nothing to one
	problems Problems
	plan     *Plan
	misfits  misfits
	curve    int // as in Planned
	chosen   *design
	excluder *excluder
	excluded []bool // exclusions that exclude a point, by index
}

// problem reports something wrong with a point, once; from are the keys of the
// study that it may follow from.
func (x *expansion) problem(path, message string, from ...string) {
	key := path + "\x00" + message
	if x.said[key] || x.flaws.explain(kinds()[x.study.Workload.Kind], path, from) {
		return
	}
	x.said[key] = true
	for _, a := range x.study.axes {
		if a.path == path {
			path = "sweep." + a.key
		}
	}
	x.problems = append(x.problems, Problem{File: x.study.File, Line: x.study.lines.of(path), Path: path, Message: message})
}

// point completes one point of the sweep and repeats it.
func (x *expansion) point(p Point) []Planned {
	s := x.study
	k, ok := x.complete(&p)
	if !ok {
		return nil
	}
	files, wrong := s.ownFiles(&p)
	for path, wrong := range wrong {
		x.problem(path, wrong)
	}
	if p.Data.Stage && p.Data.Path == "" {
		x.problem("data.stage", fmt.Sprintf("no folder to copy to the nodes: data.path is empty (data.kind is %q)", p.Data.Kind))
	}
	command, own := p.Command, p.Own
	p.Own = own.Sealed(s.Key)
	p.Command = command.identified(s.Key)
	p.ID = x.identity(&p)
	p.Command = command.Sealed(s.Key)
	if x.seen[p.ID] {
		x.problem("sweep", "two of its points are the same, "+p.ID, "sweep", "workload")
		return nil
	}
	x.seen[p.ID] = true
	p.Data.Path = s.paths[p.Data.Path]
	for _, key := range k.files {
		v := keyOf(p.Workload.Kind, key).in(&p)
		v.SetString(s.paths[v.String()])
	}
	if k.locate != nil {
		k.locate(&p, s.Command.Folder)
	}
	partition, ok := x.place(&p)
	if !ok {
		return nil
	}
	exclusive := true
	if p.Resources.Exclusive != nil {
		exclusive = *p.Resources.Exclusive
	}
	for _, a := range s.axes {
		if (a.path == CPUsKey || a.path == MemoryKey) && s.Holds(a.path) {
			p.Enforced = append(p.Enforced, a.path)
		}
	}
	p.ComparesLayouts = s.comparesLayouts()
	planned := make([]Planned, s.Runs())
	for i := range planned {
		r := s.First - 1 + i
		p.Repeat, p.Seed = r+1, s.Seed+int64(r)
		planned[i] = Planned{Point: p, Command: command, Own: own, Partition: partition, Exclusive: exclusive, Files: files}
	}
	return planned
}

// complete fills in what a point's variant, kind of workload and framework decide, and
// reports what they cannot do. It reports false if the framework does not run this kind.
func (x *expansion) complete(p *Point) (kind, bool) {
	f := x.framework(p.Framework)
	if !f.Command {
		p.Command = Command{}
	}
	if v := x.site.variant(p.Variant); v != nil {
		p.Resources.Device = cmp.Or(v.Device, p.Resources.Device)
		p.Resources.CPUsPerWorker = cmp.Or(v.CPUsPerWorker, p.Resources.CPUsPerWorker)
	}
	k := kinds()[p.Workload.Kind]
	if !k.runBy(f) {
		x.problem("framework", k.notRunBy(f, x.study.frameworks))
		return k, false
	}
	for path, wrong := range k.expand(p) {
		if !f.Command || !slices.Contains(k.brought, path) {
			x.problem(path, wrong)
		}
	}
	if f.Command && f.Uses != nil {
		p.Command.Uses = f.Uses(*p)
		slices.Sort(p.Command.Uses)
		p.Command.Uses = slices.Compact(p.Command.Uses)
	}
	if f.Check != nil {
		for path, wrong := range f.Check(*p) {
			x.problem(path, wrong)
		}
	}
	for _, a := range x.unheard(f, *p) {
		x.problem(a.path, fmt.Sprintf("is swept, and nothing in [command] depends on it with framework = %q: every value would run the same%s", p.Framework, a.remedy()))
	}
	if !f.Command {
		x.untaken(*p)
	}
	x.ignored(f, p)
	return k, true
}

// framework returns the description of a point's framework.
func (x *expansion) framework(name string) Framework {
	for _, f := range x.study.frameworks {
		if f.Name == name {
			return f
		}
	}
	return Framework{Name: name}
}

// as is the site as a variant has it.
func (x *expansion) as(variant string) *Site {
	if x.variant[variant] == nil {
		x.variant[variant] = x.site.As(variant)
	}
	return x.variant[variant]
}

// NodeHours is the most node-hours that the run can take: the nodes of its job for
// its whole time limit.
func (p Planned) NodeHours() float64 {
	nodes, _ := p.Point.Shape()
	return float64(nodes) * time.Duration(p.Point.Resources.Time).Hours()
}
