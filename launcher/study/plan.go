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

// A Plan lists every run that a study asks for, on one site.
type Plan struct {
	Study  string    `json:"study"`
	Points []Planned `json:"points"` // repeats of a point are adjacent
	// LeftOut is the number of combinations that the design layouts omits, because their
	// degrees of parallelism do not fit the number of workers.
	LeftOut int `json:"left_out,omitzero"`
	// Unfit are the worker counts of a range that cannot run, ascending.
	Unfit []Unfit `json:"unfit,omitempty"`
	// StudyFile and SiteFile are the absolute paths of the files that the plan was made
	// from. Relative paths in the copies of these files in the run folder start in the
	// folders of the originals. SiteFile is "" without a site file.
	StudyFile string `json:"study_file,omitempty"`
	SiteFile  string `json:"site_file,omitempty"`
	// Overridden is set if KEY=VALUE arguments affect the points.
	Overridden bool `json:"overridden,omitempty"`
}

// Planned is one planned run: its point and where it runs. The run's programs need only the
// Point; the other fields are for the scheduler.
type Planned struct {
	Point Point `json:"point"` // in its Command and Own, secrets are replaced by digests
	// Command and Own are the point's, but with plain secrets, which are needed to run it. They are
	// not recorded.
	Command   Command `json:"-"`
	Own       Own     `json:"-"`
	Partition string  `json:"partition"` // "": the cluster's default
	Exclusive bool    `json:"exclusive"`
	// Unconstrained is set if every resource has its first value, in a design that compares
	// the other values with the first ones.
	Unconstrained bool `json:"unconstrained,omitempty"`
	// Between is set if the worker count lies between two doublings of a range (1, 2, 4,
	// …). It is only measured if the best worker count turns out to be next to it.
	Between bool `json:"-"`
	// Curve is the number of the curve to which the point belongs: points with the same
	// number differ only in their worker counts.
	Curve int `json:"-"`
	// Added is set if the study file does not contain the run: a KEY=VALUE argument gave a
	// swept key another value, or asked for more repeats.
	Added bool `json:"added,omitempty"`
	// Files are the user's files that the run needs: a map from their names in the run
	// folder to their absolute paths.
	Files map[string]string `json:"files,omitempty"`
}

// UnmarshalJSON reads a plan, which may come from an untrusted source. It returns an error
// for more runs than a study may have, and for points that no study could have.
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

// planned is a list of runs that is decoded one element at a time, to limit its length.
// Otherwise 1 GB of {}, {}, … would become 200 GB of points.
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

// maxPoints is the maximum number of runs of a plan. Sweeps of several keys easily become
// huge by accident.
const maxPoints = 100_000

// Plan expands the study into all its runs, and assigns each to a partition of the site.
// Its error is a Problems value with everything that does not fit. site may be nil if its
// file could not be read; checks that need it are then skipped.
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

// expand implements Plan. known are the places of problems found earlier; expand omits
// problems that only follow from these.
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

// tooManyRuns returns the problem that a plan has more than maxPoints runs. It names the
// axes whose numbers of values are multiplied.
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

// walk calls visit for every combination of swept values that belongs to the study. axes
// are the axes whose values are still to be chosen; p has the values chosen so far.
func (x *expansion) walk(p *Point, axes []axis) {
	if len(axes) == 0 {
		x.visit(p)
		return
	}
	if axes[0].path == "workers" { // this is the last axis
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

// visit adds the runs of one combination to the plan, unless it is excluded or its layout
// does not fit.
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

// idleExclusions adds a problem for each [[exclude]] table that excludes nothing.
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

// expansion is the state of Plan.
type expansion struct {
	study    *Study
	site     *Site
	flaws    flaws // of the study
	defaults map[string]string
	variant  map[string]*Site  // by variant: the site with the changes that the variant makes
	texts    map[string]string // texts of the user's files that a command names, by path
	seen     map[string]bool   // IDs of the points so far
	said     map[string]bool   // problems reported so far
	used     map[string]bool   // keys that affect at least one point
	idle     map[string]idle   // keys that have no effect on at least one point
	problems Problems
	plan     *Plan
	misfits  misfits
	curve    int // as in Planned
	chosen   *design
	excluder *excluder
	excluded []bool // by index of the exclusion: whether it has excluded a point
}

// problem adds a problem of a point, unless it was added before or follows from an earlier
// one. from are keys that may cause it.
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

// point completes a point of the sweep and returns its planned runs, one per repeat.
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
		if (a.path == CPUsKey || a.path == MemoryKey) && s.MustEnforce(a.path) {
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

// complete fills in the values that a point's variant, kind of workload and framework
// determine, and adds problems about what they do not support. It returns false if the
// framework cannot run this kind of workload.
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

// framework returns the framework with this name.
func (x *expansion) framework(name string) Framework {
	for _, f := range x.study.frameworks {
		if f.Name == name {
			return f
		}
	}
	return Framework{Name: name}
}

// as returns the site with the changes that a variant makes; "" makes none.
func (x *expansion) as(variant string) *Site {
	if x.variant[variant] == nil {
		x.variant[variant] = x.site.As(variant)
	}
	return x.variant[variant]
}

// NodeHours returns the maximum node-hours of the run: its nodes times its time limit.
func (p Planned) NodeHours() float64 {
	nodes, _ := p.Point.Shape()
	return float64(nodes) * time.Duration(p.Point.Resources.Time).Hours()
}
