// Package fingerprint says which runs may be compared: a run's fingerprint is
// what it ran on and with, as far as that bears on its speed. What was asked
// for (model, batch, precision …) is no part of it: that separates series and
// points already.
//
// A fact that was not recorded is unknown: it neither equals another nor
// differs from it. Runs with unknown facts stay together with the others, and
// how many there are is said. Two runs differ only where both know a fact and
// the facts are not the same.
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

// Print is one run's fingerprint: field to value. A field that is not in it is
// unknown; one whose value is "" does not bear on the run, like the interface
// on a run within one node, and differs from nothing.
type Print map[string]string

// The fields of a Print. Versions of libraries are further ones, each by the
// library's name behind VersionPrefix.
const (
	CPU       = "cpu"       // model
	GPU       = "gpu"       // model
	MIG       = "mig"       // profile of a partitioned GPU, "1g.10gb"; "off"
	PowerCap  = "power_cap" // of a GPU, "400 W"
	Driver    = "driver"    // of the GPUs
	NCCL      = "nccl"      // version
	Interface = "interface" // that the collectives go over, with its speed: "ib0 200 Gbit/s"
	Data      = "data"      // SHA-256 of the training data, its first digits

	// What the site started the program with, as metrics.Setting has it.
	Python      = "python"
	Container   = "container"
	Modules     = "modules"
	Setup       = "setup"
	Environment = "environment"

	VersionPrefix = "version."

	// FilePrefix stands before the name of a file of the user's own: a model, a
	// data set, a program. The value is its SHA-256, the first digits.
	FilePrefix = "file."
)

// order is how fields are listed; versions follow.
var order = []string{CPU, GPU, MIG, PowerCap, Driver, NCCL, Interface, Data, Python, Container, Modules, Setup, Environment}

// Subject is what a fingerprint is taken of: the ranks of one run.
type Subject struct {
	Environments []*metrics.Environment // of the ranks; nil for one that recorded none
	Device       string                 // "cpu", "gpu"; "" when not known
	Nodes        int                    // that the ranks ran on; 0 when not known
	DataSHA256   string                 // "" when not known
}

// Of takes the fingerprint. Where ranks differ, the value names all that
// occur: a run over two kinds of node is of a kind of its own. It is nil when
// nothing was recorded.
func Of(s Subject) Print {
	p := Print{}
	collect := func(field string, of func(*metrics.Environment) []string) {
		seen := map[string]bool{}
		for _, e := range s.Environments {
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
			p[field] = strings.Join(slices.Sorted(maps.Keys(seen)), " + ")
		}
	}
	collect(CPU, func(e *metrics.Environment) []string { return []string{e.CPUModel} })
	if s.Device != "cpu" { // a GPU that is only there does not count
		gpus := func(field string, of func(metrics.GPU) string) {
			collect(field, func(e *metrics.Environment) []string {
				var list []string
				for _, g := range e.GPUs {
					list = append(list, of(g))
				}
				return list
			})
		}
		gpus(GPU, func(g metrics.GPU) string { return g.Name })
		gpus(MIG, func(g metrics.GPU) string { return g.MIG })
		gpus(PowerCap, func(g metrics.GPU) string {
			if g.PowerLimitWatts <= 0 {
				return ""
			}
			return fmt.Sprintf("%.0f W", math.Round(g.PowerLimitWatts))
		})
		gpus(Driver, func(g metrics.GPU) string { return g.Driver })
	}
	if s.Nodes == 1 {
		p[Interface] = ""
	} else {
		collect(Interface, func(e *metrics.Environment) []string {
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
	for field, of := range map[string]func(*metrics.Setting) string{
		Python:      func(s *metrics.Setting) string { return s.Python },
		Container:   func(s *metrics.Setting) string { return s.Container },
		Modules:     func(s *metrics.Setting) string { return s.Modules },
		Setup:       func(s *metrics.Setting) string { return s.Setup },
		Environment: func(s *metrics.Setting) string { return s.Environment },
	} {
		collect(field, func(e *metrics.Environment) []string {
			if e.Setting == nil {
				return nil
			}
			return []string{of(e.Setting)}
		})
	}
	libraries := map[string]bool{}
	for _, e := range s.Environments {
		if e != nil {
			for name := range e.Versions {
				libraries[name] = true
			}
		}
	}
	for name := range libraries {
		field := VersionPrefix + name
		switch name {
		case "go": // of the program beside the rank, or implied by the trainer's own version
			continue
		case NCCL:
			field = NCCL
		}
		collect(field, func(e *metrics.Environment) []string { return []string{e.Versions[name]} })
		if _, ok := p[field]; !ok {
			p[field] = "" // a rank says that there is none
		}
	}
	files := map[string]bool{}
	for _, e := range s.Environments {
		if e != nil {
			for name := range e.Files {
				files[name] = true
			}
		}
	}
	for name := range files {
		collect(FilePrefix+name, func(e *metrics.Environment) []string { return []string{digits(e.Files[name])} })
	}
	if s.DataSHA256 != "" {
		p[Data] = digits(s.DataSHA256)
	}
	if len(p) == 0 {
		return nil
	}
	return p
}

// digits are the first of a SHA-256, enough to tell files apart.
func digits(sha256 string) string { return sha256[:min(12, len(sha256))] }

// Difference is one field in which two prints differ. "" is unknown.
type Difference struct {
	Field, Was, Is string
}

// String is the difference for people: "driver 535.54 → 550.90".
func (d Difference) String() string {
	return fmt.Sprintf("%s %s → %s", Name(d.Field), cmp.Or(d.Was, "not recorded"), cmp.Or(d.Is, "not recorded"))
}

// Name is a field for people: "power cap", "torch", "my_model.py".
func Name(field string) string {
	if file, ok := strings.CutPrefix(field, FilePrefix); ok {
		return file
	}
	return strings.ReplaceAll(strings.TrimPrefix(field, VersionPrefix), "_", " ")
}

// Differ lists the facts that both know and that are not the same.
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

// Agree reports whether nothing that both know differs.
func Agree(a, b Print) bool {
	for field, v := range a {
		if w := b[field]; v != "" && w != "" && v != w {
			return false
		}
	}
	return true
}

// Varying is a field that is not the same for all of some runs.
type Varying struct {
	Field   string
	Values  map[string]int // known values and how many runs have each
	Unknown int            // runs that did not record it
}

// String is the field with its values: "driver: 535.54 (3 runs), 550.90 (2
// runs), not recorded (1 run)".
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

// Vary lists the fields that vary over the prints. Mixed are those with two or
// more known values: the prints are not one. Partial are those with a single
// known value that some runs did not record; they stay one, and it is said.
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

// Common are the facts that all prints that know them agree on; nil for none.
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

// Fields are the known fields of a print, as they are listed. What a run went
// without (no modules, no container) is known, and not worth a word.
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

// String is the print for people: "cpu AMD EPYC 7B13, torch 1.13.1"; "nothing
// recorded" for one without a known field.
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
