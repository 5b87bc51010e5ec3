// Package fingerprint decides which runs may be compared. A run's fingerprint is the
// hardware and software that it ran on, as far as they affect speed. Requested
// parameters (model, batch, precision …) are not included: they separate series and
// points already.
//
// A fact that was not recorded is unknown: it neither equals nor differs from another.
// Two runs differ only if both know a fact and its values differ. Runs with unknown
// facts stay with the others, and their number is reported.
package fingerprint

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"github.com/scalebench/scalebench/metrics"
)

// A Print is one run's fingerprint: field to value. A missing field is unknown. The
// value "" means that the field does not affect the run, such as the network interface
// of a run on one node; it differs from nothing.
type Print map[string]string

// The fields of a Print. Library versions are further fields: VersionPrefix followed
// by the library's name.
const (
	CPU       = "cpu"       // CPU model
	GPU       = "gpu"       // GPU model
	MIG       = "mig"       // profile of a partitioned GPU ("1g.10gb"), or "off"
	PowerCap  = "power_cap" // per GPU: "400 W"
	Driver    = "driver"    // GPU driver version
	NCCL      = "nccl"      // version
	Interface = "interface" // interface and speed used by collectives: "ib0 200 Gbit/s"
	Data      = "data"      // first digits of the training data's SHA-256

	// The environment in which the site started the program; see metrics.Setting.
	Python      = "python"
	Container   = "container"
	Modules     = "modules"
	Setup       = "setup"
	Environment = "environment"

	VersionPrefix = "version."

	// FilePrefix precedes the name of a user's file: a model, a data set, a program.
	// The value is the first digits of its SHA-256.
	FilePrefix = "file."
)

// order is the display order of fields; versions follow.
var order = []string{CPU, GPU, MIG, PowerCap, Driver, NCCL, Interface, Data, Python, Container, Modules, Setup, Environment}

// A Subject is the input of a fingerprint: the ranks of one run.
type Subject struct {
	Environments []*metrics.Environment // one per rank; nil if a rank recorded none
	Device       string                 // "cpu", "gpu"; "" if unknown
	Nodes        int                    // number of nodes used; 0 if unknown
	DataSHA256   string                 // "" if unknown
}

// Compute returns the fingerprint, or nil if nothing was recorded. If ranks differ, the
// value lists all that occur: a run on two kinds of node differs from runs on either
// kind.
func Compute(s Subject) Print {
	c := collector{s, Print{}}
	c.collect(CPU, func(e *metrics.Environment) []string { return []string{e.CPUModel} })
	if s.Device != "cpu" { // a GPU that the run does not use does not count
		c.gpus()
	}
	c.network()
	c.setting()
	c.libraries()
	c.files()
	if s.DataSHA256 != "" {
		c.print[Data] = digits(s.DataSHA256)
	}
	if len(c.print) == 0 {
		return nil
	}
	return c.print
}

// A collector fills a fingerprint in.
type collector struct {
	subject Subject
	print   Print
}

// collect joins the known values of a field over the ranks.
func (c collector) collect(field string, of func(*metrics.Environment) []string) {
	seen := map[string]bool{}
	for _, e := range c.subject.Environments {
		if e == nil {
			continue
		}
		for _, v := range of(e) {
			if v != "" {
				seen[v] = true
			}
		}
	}
	if len(seen) > 0 {
		c.print[field] = strings.Join(slices.Sorted(maps.Keys(seen)), " + ")
	}
}

// gpus collects what is known of the GPUs and their driver.
func (c collector) gpus() {
	for field, of := range map[string]func(metrics.GPU) string{
		GPU: func(g metrics.GPU) string { return g.Name },
		MIG: func(g metrics.GPU) string { return g.MIG },
		PowerCap: func(g metrics.GPU) string {
			if g.PowerLimitWatts <= 0 {
				return ""
			}
			return fmt.Sprintf("%.0f W", math.Round(g.PowerLimitWatts))
		},
		Driver: func(g metrics.GPU) string { return g.Driver },
	} {
		c.collect(field, func(e *metrics.Environment) []string {
			var list []string
			for _, g := range e.GPUs {
				list = append(list, of(g))
			}
			return list
		})
	}
}

// network collects the interface of the collectives. A run within one node uses none.
func (c collector) network() {
	if c.subject.Nodes == 1 {
		c.print[Interface] = ""
		return
	}
	c.collect(Interface, func(e *metrics.Environment) []string {
		if e.Interface == nil {
			return nil
		}
		name := e.Interface.Name
		if bits := e.Interface.SpeedBitsPer; name != "" && bits > 0 {
			name += fmt.Sprintf(" %g Gbit/s", float64(bits)/1e9)
		}
		return []string{name}
	})
}

// setting collects what the site started the program with.
func (c collector) setting() {
	for field, of := range map[string]func(*metrics.Setting) string{
		Python:      func(s *metrics.Setting) string { return s.Python },
		Container:   func(s *metrics.Setting) string { return s.Container },
		Modules:     func(s *metrics.Setting) string { return s.Modules },
		Setup:       func(s *metrics.Setting) string { return s.Setup },
		Environment: func(s *metrics.Setting) string { return s.Environment },
	} {
		c.collect(field, func(e *metrics.Environment) []string {
			if e.Setting == nil {
				return nil
			}
			return []string{of(e.Setting)}
		})
	}
}

// libraries collects the versions of libraries. One that a rank says it does not have
// differs from no other.
func (c collector) libraries() {
	for name := range c.named(func(e *metrics.Environment) map[string]string { return e.Versions }) {
		field := VersionPrefix + name
		switch name {
		case "go": // the Go of the program that started the rank, or implied by the trainer's version
			continue
		case NCCL:
			field = NCCL
		}
		c.collect(field, func(e *metrics.Environment) []string { return []string{e.Versions[name]} })
		if _, ok := c.print[field]; !ok {
			c.print[field] = ""
		}
	}
}

// files collects the digests of the user's own files.
func (c collector) files() {
	for name := range c.named(func(e *metrics.Environment) map[string]string { return e.Files }) {
		c.collect(FilePrefix+name, func(e *metrics.Environment) []string { return []string{digits(e.Files[name])} })
	}
}

// named returns the names that occur in a map of any rank.
func (c collector) named(in func(*metrics.Environment) map[string]string) map[string]bool {
	names := map[string]bool{}
	for _, e := range c.subject.Environments {
		if e == nil {
			continue
		}
		for name := range in(e) {
			names[name] = true
		}
	}
	return names
}

// digits returns the first digits of a SHA-256, enough to distinguish files.
func digits(sha256 string) string { return sha256[:min(12, len(sha256))] }

// A Difference is a field in which two prints differ. "" means unknown.
type Difference struct {
	Field, Was, Is string
}

// String returns the difference as text: "driver 535.54 → 550.90".
func (d Difference) String() string {
	return fmt.Sprintf("%s %s → %s", Name(d.Field), cmp.Or(d.Was, "not recorded"), cmp.Or(d.Is, "not recorded"))
}

// Name returns a field's display name: "power cap", "torch", "my_model.py".
func Name(field string) string {
	if file, ok := strings.CutPrefix(field, FilePrefix); ok {
		return file
	}
	return strings.ReplaceAll(strings.TrimPrefix(field, VersionPrefix), "_", " ")
}

// Differ returns the fields that both prints know and whose values differ.
func Differ(was, is Print) []Difference {
	var list []Difference
	for field, a := range was {
		if b := is[field]; a != "" && b != "" && a != b {
			list = append(list, Difference{field, a, b})
		}
	}
	slices.SortFunc(list, func(a, b Difference) int { return compareFields(a.Field, b.Field) })
	return list
}

// Agree reports whether all fields known to both prints are equal.
func Agree(a, b Print) bool {
	for field, v := range a {
		if w := b[field]; v != "" && w != "" && v != w {
			return false
		}
	}
	return true
}

// A Varying is a field that differs between runs.
type Varying struct {
	Field   string
	Values  map[string]int // known values and the number of runs with each
	Unknown int            // runs that did not record it
}

// String returns the field with its values: "driver: 535.54 (3 runs), 550.90 (2 runs),
// not recorded (1 run)".
func (v Varying) String() string {
	parts := make([]string, 0, len(v.Values)+1)
	for _, value := range slices.SortedFunc(maps.Keys(v.Values), natural.Compare) {
		parts = append(parts, value+" ("+runs(v.Values[value])+")")
	}
	if v.Unknown > 0 {
		parts = append(parts, "not recorded ("+runs(v.Unknown)+")")
	}
	return Name(v.Field) + ": " + strings.Join(parts, ", ")
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// Vary returns the fields that vary over the prints. mixed have two or more known
// values, so the prints must not be pooled. partial have one known value that some
// runs did not record; these prints can be pooled, with a note.
func Vary(prints []Print) (mixed, partial []Varying) {
	fields := map[string]bool{}
	for _, p := range prints {
		for field, v := range p {
			if v != "" {
				fields[field] = true
			}
		}
	}
	for _, field := range slices.SortedFunc(maps.Keys(fields), compareFields) {
		v := Varying{Field: field, Values: map[string]int{}}
		for _, p := range prints {
			switch value, known := p[field]; {
			case !known:
				v.Unknown++
			case value != "":
				v.Values[value]++
			}
		}
		switch {
		case len(v.Values) > 1:
			mixed = append(mixed, v)
		case v.Unknown > 0:
			partial = append(partial, v)
		}
	}
	return mixed, partial
}

// Common returns the fields on which all prints that know them agree; nil if there are
// none.
func Common(prints []Print) Print {
	common := Print{}
	for _, p := range prints {
		for field, v := range p {
			if v != "" {
				common[field] = v
			}
		}
	}
	mixed, _ := Vary(prints)
	for _, v := range mixed {
		delete(common, v.Field)
	}
	if len(common) == 0 {
		return nil
	}
	return common
}

func compareFields(a, b string) int {
	place := func(f string) int {
		if i := slices.Index(order, f); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// Fields returns the known fields of a print in display order. It leaves out what a
// run did not use (modules, a container).
func (p Print) Fields() []string {
	var list []string
	for field, v := range p {
		if v != "" && v != metrics.None {
			list = append(list, field)
		}
	}
	slices.SortFunc(list, compareFields)
	return list
}

// String returns the print as text: "cpu AMD EPYC 7B13, torch 1.13.1"; "nothing
// recorded" if no field is known.
func (p Print) String() string {
	var parts []string
	for _, field := range p.Fields() {
		parts = append(parts, Name(field)+" "+p[field])
	}
	if parts == nil {
		return "nothing recorded"
	}
	return strings.Join(parts, ", ")
}
