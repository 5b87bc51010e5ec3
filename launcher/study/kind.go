package study

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// A kind is a kind of workload: its keys, their defaults and what they may be, and what
// the rest of a study asks about it. A new kind is one file like train.go, whose keys have
// the method kind, and one line in Workload; the program that runs it is a command of
// scalebench-worker with the kind's name.
type kind struct {
	keys     string // field of Workload that holds them; kinds fills it in
	defaults Workload
	rules    map[string]rule // by TOML path
	// follows names, by TOML path, the keys that a problem told of that path can
	// follow from; plausible stand in for values that cannot be used, where the
	// default would lead to problems of its own.
	follows   map[string][]string
	plausible map[string]any
	// brought are the keys that a program of [command] need not be told.
	brought []string
	trains  bool     // it has steps, epochs and a batch
	loaded  bool     // our load generator starts the framework's program, and sends it requests
	onGPUs  bool     // our own worker computes it on GPUs
	bounds  []string // its keys, by TOML path, that bound what a run does: lower, it is shorter
	// expand fills in what follows from the keys of a point and says, by TOML
	// path, what does not fit together.
	expand func(*Point) map[string]string
	// frameworks can run it; nil: every one that is no model server.
	frameworks []string
	servers    bool     // model servers can run it, too
	workers    string   // what its workers are called in [sweep], beside "workers"; "": nothing else
	data       bool     // it works on what [data] names
	files      []string // its keys that name files, relative to the study file, by TOML path
	objects    []string // those of files that may name objects of a store instead
	// locate makes absolute what else of a point names a file in a folder, the
	// study's; nil: nothing does.
	locate func(p *Point, folder string)
	// beside are the ranks that a run has beside the workers, and the nodes for
	// them; nil: none.
	beside func(*Point) (ranks, nodes int)
}

// declared is a field of Workload: the keys of a kind.
type declared interface{ kind() kind }

// kinds returns the kinds by their names: those that the fields of Workload declare.
var kinds = sync.OnceValue(func() map[string]kind {
	list := map[string]kind{}
	workload := reflect.ValueOf(Workload{})
	for i := range workload.NumField() {
		if keys, ok := workload.Field(i).Interface().(declared); ok {
			k := keys.kind()
			k.keys = workload.Type().Field(i).Name
			list[k.defaults.Kind] = k
		}
	}
	return list
})

// kindOf returns the kind of the workload; the zero kind where it has none.
func (w Workload) kindOf() kind { return kinds()[w.Kind] }

const defaultKind = "train"

// Kinds are the names of the kinds of workload.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds())) }

// fields are the keys of [workload], by their place in Workload.
func (k kind) fields() fieldSet {
	workload := reflect.TypeFor[Workload]()
	own, _ := workload.FieldByName(k.keys)
	name, _ := workload.FieldByName("Kind")
	set := fieldSet{keys: []string{"kind"}, byKey: map[string]reflect.StructField{"kind": name}}
	for key, f := range fieldsOf(own.Type).all() {
		f.Index = slices.Concat(own.Index, f.Index)
		set.keys = append(set.keys, key)
		set.byKey[key] = f
	}
	return set
}

// elsewhere are the keys of the other kinds, which may be meant where a file's
// own kind is not known.
func (k kind) elsewhere(d *decoder) []string {
	var keys []string
	if d.flaws.in("workload.kind") {
		for _, other := range kinds() {
			keys = append(keys, other.fields().keys...)
		}
	}
	return keys
}

// MarshalJSON writes the keys of the workload's kind and no others.
func (w Workload) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(w.Kind)
	if err != nil {
		return nil, err
	}
	text := append([]byte(`{"kind":`), name...)
	if k, ok := kinds()[w.Kind]; ok {
		own, err := json.Marshal(reflect.ValueOf(w).FieldByName(k.keys).Interface())
		if err != nil {
			return nil, err
		}
		return append(append(text, ','), own[1:]...), nil
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads them back.
func (w *Workload) UnmarshalJSON(text []byte) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	w.Kind = head.Kind
	k, ok := kinds()[w.Kind]
	switch {
	case w.Kind == "":
		return nil // a point that says nothing of it, as MarshalJSON writes one
	case !ok:
		return fmt.Errorf("workload.kind: %s", oneOf(w.Kind, Kinds()))
	}
	return json.Unmarshal(text, reflect.ValueOf(w).Elem().FieldByName(k.keys).Addr().Interface())
}

// Trains reports whether the workload has steps, epochs and a batch.
func (w Workload) Trains() bool { return w.kindOf().trains }

// UnderLoad reports whether the run is our load generator's, which starts the framework's
// program as a replica of a service and sends it requests.
func (w Workload) UnderLoad() bool { return w.kindOf().loaded }

// OnGPUs reports whether our own worker computes the workload on GPUs.
func (w Workload) OnGPUs() bool { return w.kindOf().onGPUs }

// runBy reports whether a framework can run the kind.
func (k kind) runBy(f Framework) bool {
	if f.Server {
		return k.servers
	}
	return k.frameworks == nil || slices.Contains(k.frameworks, f.Name)
}

// notRunBy says that a framework cannot run the kind, and which of all can.
func (k kind) notRunBy(f Framework, all []Framework) string {
	var valid []string
	for _, other := range all {
		if k.runBy(other) {
			valid = append(valid, other.Name)
		}
	}
	return fmt.Sprintf("%q does not run this kind of workload; valid for it: %s", f.Name, strings.Join(quoted(valid), ", "))
}
