package study

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/redact"
)

// Plan is every run that a study asks for, once, on one site.
type Plan struct {
	Study  string    `json:"study"`
	Points []Planned `json:"points"` // repeats stand next to each other
	// Where the study and its site file were read, absolute, once the plan is
	// frozen: what is relative in their frozen copies is meant from there. "" of
	// the site: there was none.
	StudyFile string `json:"study_file,omitempty"`
	SiteFile  string `json:"site_file,omitempty"`
}

// Planned is a point together with where it goes. What a program needs is in
// the Point; the rest is the scheduler's.
type Planned struct {
	Point Point `json:"point"` // its Command is sealed
	// Command is the command as it is to be run, secrets and all; it goes into
	// no record.
	Command   Command `json:"-"`
	Partition string  `json:"partition"` // "": the cluster's default
	Exclusive bool    `json:"exclusive"`
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
		return errors.New("points is no list")
	}
	for d.More() {
		if len(*list) == maxPoints {
			return fmt.Errorf("more than %d runs", maxPoints)
		}
		var p Planned
		if err := d.Decode(&p); err != nil {
			return err
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
	plan, problems := s.expand(site, nil)
	if err := problems.orNil(); err != nil {
		return nil, err
	}
	return plan, nil
}

// expand is Plan; of a study with flaws it only looks for problems that do not
// follow from those.
func (s *Study) expand(site *Site, known flaws) (*Plan, Problems) {
	runs, factors := float64(s.Repeats), []string{}
	for _, a := range s.axes {
		runs *= float64(len(a.values))
		if len(a.values) > 1 {
			factors = append(factors, fmt.Sprintf("%s: %d", a.key, len(a.values)))
		}
	}
	if runs > maxPoints {
		if s.Repeats > 1 {
			factors = append(factors, fmt.Sprintf("repeats: %d", s.Repeats))
		}
		return nil, Problems{{File: s.File, Line: s.lines.of("sweep"), Path: "sweep",
			Message: fmt.Sprintf("%.0f runs (%s), and a study may have up to %d; sweep fewer values, or divide it into several studies", runs, strings.Join(factors, " × "), maxPoints)}}
	}
	x := expansion{study: s, site: site, base: s.smallestWorld(), flaws: known, variant: map[string]*Site{}, texts: map[string]string{}, seen: map[string]bool{}, said: map[string]bool{}}
	x.defaults = keyTexts(&Point{Workload: kinds[s.Workload.Kind].defaults, Data: defaultData, Command: defaultCommand, Resources: defaultResources})
	x.defaults["workload.kind"] = strconv.Quote(defaultKind)
	if site != unread {
		x.variants()
	}
	plan := &Plan{Study: s.Name, Points: make([]Planned, 0, int(runs))}
	p := Point{Study: s.Name, Workload: s.Workload, Data: s.Data, Own: s.Own, Command: s.Command, Resources: s.Resources}
	used, leaves := make([]bool, len(s.exclusions)), newExcluder(s.exclusions, s.axes)
	var walk func(axes []axis)
	walk = func(axes []axis) {
		if len(axes) > 0 {
			for _, v := range axes[0].values {
				axes[0].field.set(&p, v)
				walk(axes[1:])
			}
			return
		}
		if i, left := leaves.out(&p); left {
			used[i] = true
			return
		}
		plan.Points = append(plan.Points, x.point(p)...)
	}
	walk(s.axes)
	for i, e := range s.exclusions {
		if !used[i] {
			var axes []string
			for _, a := range s.axes {
				if e.values[a.path] != nil {
					axes = append(axes, a.path, "sweep."+a.key)
				}
			}
			x.problem(e.path, "leaves out no point of the sweep", axes...)
		}
	}
	if len(plan.Points) == 0 && len(x.problems) == 0 {
		x.problem("exclude", "leaves no point at all", "sweep")
	}
	return plan, x.problems
}

// smallestWorld is the smallest worker count of the sweep, whose points the
// others are divided by.
func (s *Study) smallestWorld() int {
	smallest := maxWorkers + 1
	for _, a := range s.axes {
		if a.path == "workers" {
			for _, v := range a.values {
				smallest = min(smallest, int(v.Int()))
			}
		}
	}
	return smallest
}

// expansion is the state of one Plan.
type expansion struct {
	study    *Study
	site     *Site
	base     int
	flaws    flaws // of the study
	defaults map[string]string
	variant  map[string]*Site  // the site as each variant has it
	texts    map[string]string // of the user's files that a command names, by path
	seen     map[string]bool   // identities
	said     map[string]bool   // problems, once each
	problems Problems
}

// problem reports something wrong with a point, once; from are the keys of the
// study that it may follow from.
func (x *expansion) problem(path, message string, from ...string) {
	key := path + "\x00" + message
	if x.said[key] || x.flaws.explain(kinds[x.study.Workload.Kind], path, from) {
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
	f := x.framework(p.Framework)
	if !f.Command {
		p.Command = Command{}
	}
	if v := x.site.variant(p.Variant); v != nil {
		p.Resources.Device = cmp.Or(v.Device, p.Resources.Device)
		p.Resources.CPUsPerWorker = cmp.Or(v.CPUsPerWorker, p.Resources.CPUsPerWorker)
	}
	k := kinds[p.Workload.Kind]
	if wrong := k.runBy(p.Framework); wrong != "" {
		x.problem("framework", wrong)
		return nil
	}
	for path, wrong := range k.expand(&p) {
		if !f.Command || !slices.Contains(k.brought, path) {
			x.problem(path, wrong)
		}
	}
	if f.Command && f.Uses != nil {
		p.Command.Uses = f.Uses(p)
		slices.Sort(p.Command.Uses)
		p.Command.Uses = slices.Compact(p.Command.Uses)
	}
	if f.Check != nil {
		for path, wrong := range f.Check(p) {
			x.problem(path, wrong)
		}
	}
	for _, a := range x.unheard(f, p) {
		x.problem(a.path, fmt.Sprintf("is swept, and nothing in [command] depends on it with framework = %q: every value would run the same%s", p.Framework, a.remedy()))
	}
	if !f.Command {
		x.untaken(p)
	}
	files, wrong := s.ownFiles(&p)
	for path, wrong := range wrong {
		x.problem(path, wrong)
	}
	if p.Data.Stage && p.Data.Path == "" {
		x.problem("data.stage", fmt.Sprintf("there is no folder to copy to the nodes: data.path is empty (data.kind is %q)", p.Data.Kind))
	}
	command := p.Command
	p.Command = command.Sealed(s.Key)
	p.ID = x.identity(&p)
	if x.seen[p.ID] {
		x.problem("sweep", "two of its points are the same, "+p.ID, "sweep", "workload")
		return nil
	}
	x.seen[p.ID] = true
	if p.Data.Path != "" {
		p.Data.Path = s.folders[p.Data.Path]
	}
	partition, ok := x.place(&p)
	if !ok {
		return nil
	}
	exclusive := p.Workers == x.base
	if p.Resources.Exclusive != nil {
		exclusive = *p.Resources.Exclusive
	}
	planned := make([]Planned, s.Repeats)
	for r := range planned {
		p.Repeat, p.Seed = r+1, s.Seed+int64(r)
		planned[r] = Planned{Point: p, Command: command, Partition: partition, Exclusive: exclusive, Files: files}
	}
	return planned
}

// framework is what is known of the framework of a point.
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

// place finds the first partition that the point fits into and spreads its
// workers over nodes, the same number on each.
func (x *expansion) place(p *Point) (partition string, ok bool) {
	site := x.as(p.Variant)
	if len(site.Partitions) == 0 {
		return "", x.spread(p, Partition{}) == ""
	}
	var why []string
	for _, candidate := range site.Partitions {
		trial := *p
		if wrong := x.fits(&trial, candidate); wrong != "" {
			why = append(why, candidate.Name+": "+wrong)
			continue
		}
		*p = trial
		return candidate.Name, true
	}
	of := ""
	if x.site.File != "" {
		of = " of " + x.site.File
	}
	x.problem("workers", fmt.Sprintf("%d workers fit no partition%s (%s)", p.Workers, of, strings.Join(why, "; ")))
	return "", false
}

// fits says why the point cannot run in the partition, "" when it can.
func (x *expansion) fits(p *Point, q Partition) string {
	switch {
	case p.Workers < q.MinWorkers:
		return fmt.Sprintf("min_workers is %d", q.MinWorkers)
	case q.MaxWorkers > 0 && p.Workers > q.MaxWorkers:
		return fmt.Sprintf("max_workers is %d", q.MaxWorkers)
	case p.Resources.Device == "gpu" && q.GPUsPerNode == 0:
		return "gpus_per_node is not set and device is \"gpu\""
	case q.MaxTime > 0 && p.Resources.Time > q.MaxTime:
		return fmt.Sprintf("max_time is %v and resources.time %v", q.MaxTime, p.Resources.Time)
	}
	if wrong := x.spread(p, q); wrong != "" {
		return wrong
	}
	switch {
	case q.MaxNodes > 0 && p.Nodes > q.MaxNodes:
		return fmt.Sprintf("max_nodes is %d and it takes %d", q.MaxNodes, p.Nodes)
	case p.Resources.Device == "gpu" && p.WorkersPerNode > q.GPUsPerNode:
		return fmt.Sprintf("%d workers a node and %d GPUs", p.WorkersPerNode, q.GPUsPerNode)
	case q.CPUsPerNode > 0 && p.WorkersPerNode*p.Resources.CPUsPerWorker > q.CPUsPerNode:
		return fmt.Sprintf("%d workers a node with %d CPUs each, and it has %d", p.WorkersPerNode, p.Resources.CPUsPerWorker, q.CPUsPerNode)
	case q.MemoryPerNode > 0 && Bytes(p.WorkersPerNode)*p.Resources.Memory > q.MemoryPerNode:
		return fmt.Sprintf("%d workers a node with %v each, and it has %v", p.WorkersPerNode, p.Resources.Memory, q.MemoryPerNode)
	}
	return ""
}

// spread sets Nodes and WorkersPerNode. Workers that do not divide into nodes
// are a problem of the study, not of the partition alone: half-filled nodes
// would make a curve's points incomparable.
func (x *expansion) spread(p *Point, q Partition) string {
	room := p.Resources.WorkersPerNode
	if room == 0 {
		switch {
		case p.Resources.Device == "gpu" && q.GPUsPerNode > 0:
			room = q.GPUsPerNode
		case q.CPUsPerNode > 0:
			room = max(1, q.CPUsPerNode/p.Resources.CPUsPerWorker)
		default:
			room = p.Workers
		}
	}
	p.WorkersPerNode = min(p.Workers, room)
	if p.Workers%p.WorkersPerNode != 0 {
		wrong := fmt.Sprintf("%d workers do not divide into nodes of %d", p.Workers, p.WorkersPerNode)
		x.problem("workers", wrong+"; valid are multiples of it, or set resources.workers_per_node to a divisor")
		return wrong
	}
	p.Nodes = p.Workers / p.WorkersPerNode
	return ""
}

// notIdentity are the keys that bound a run without changing what it measures,
// so that raising a time limit does not throw away what is there. In a sweep
// they count.
var notIdentity = []string{"resources.time", "resources.memory", "resources.exclusive"}

// Targets is the key of the accuracies whose time is asked for. It is a question
// to a run that has its evaluations, whenever it is asked: a study that adds a
// target keeps its results.
const Targets = "workload.targets"

// readings are the keys of what a command's output is read as. [[extract]] is one
// more, and no key of a point.
var readings = []string{"command.extract", "command.log", "command.columns"}

// asksOnly reports whether the key is a question asked of the run afterwards:
// the targets are, unless they end the run or its command is told of them, and
// what its output is read as.
func (p *Point) asksOnly(path string) bool {
	return slices.Contains(readings, path) || path == Targets && p.Workload.Trains() && p.Workload.Train.Until != "targets" && !slices.Contains(p.Command.Uses, path)
}

// identity is the point's name: a readable start and a hash of the keys that
// differ from their defaults. Of secrets it is the digests that count: from a
// hash of their values, which everybody sees, who knows the other keys could
// tell whether a guess is right.
func (x *expansion) identity(p *Point) string {
	var lines []string
	for path, text := range keyTexts(p) {
		skip := (slices.Contains(notIdentity, path) || p.asksOnly(path)) && !slices.ContainsFunc(x.study.axes, func(a axis) bool { return a.path == path })
		if text != x.defaults[path] && !skip {
			lines = append(lines, path+"="+text)
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return fmt.Sprintf("%s-w%d-%s", p.Framework, p.Workers, hex.EncodeToString(sum[:5]))
}

// keyTexts are the point's keys and their values as JSON.
func keyTexts(p *Point) map[string]string {
	fields := p.fields()
	texts := make(map[string]string, len(fields))
	for _, f := range fields {
		if !p.has(f) {
			continue
		}
		text, err := json.Marshal(f.in(p).Interface())
		if err != nil {
			// NaN and infinities are refused before a point is made.
			panic(fmt.Sprintf("study: %s cannot be written: %v", f.path, err))
		}
		texts[f.path] = string(text)
	}
	return texts
}

// Parameters are all keys of the point by TOML path, as the store keeps them:
// string, int64, float64, bool, or []any of these; a key without a value is
// left out, and so is one that the run's program was never told. Secrets that
// the point still has are hidden.
func (p *Point) Parameters() map[string]any {
	fields := p.fields()
	m := make(map[string]any, len(fields))
	hidden := *p
	hidden.Command = p.Command.Sealed(nil)
	texts := keyTexts(&hidden)
	for _, f := range fields {
		text, ok := texts[f.path]
		if !ok || !p.reaches(f) {
			continue
		}
		var v any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err == nil && v != nil {
			m[f.path] = plain(v)
		}
	}
	return m
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		x, _ := v.Float64() // it was marshalled from a float64
		return x
	case string:
		return redact.Text(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

// NodeHours is the most node-hours that the run can take: its nodes for its
// whole time limit.
func (p Planned) NodeHours() float64 {
	return float64(p.Point.Nodes) * time.Duration(p.Point.Resources.Time).Hours()
}
