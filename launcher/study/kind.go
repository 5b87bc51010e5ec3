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

// A kind describes a kind of workload: its keys, their defaults and valid values, and
// everything else that differs between kinds. A new kind is one file like train.go, whose
// keys have the method kind, and one line in Workload. The program that runs it is the
// scalebench-worker command with the kind's name.
type kind struct {
	keys     string // field of Workload that holds them; set by kinds
	defaults Workload
	rules    map[string]rule // by TOML path
	// follows lists, by TOML path, the keys that may cause a problem at that path.
	// plausible holds replacements for unusable values if the default would cause further
	// problems.
	follows   map[string][]string
	plausible map[string]any
	// brought are keys that a program of [command] may handle itself.
	brought []string
	trains  bool     // has steps, epochs and a batch
	loaded  bool     // our load generator starts the framework's program and sends it requests
	onGPUs  bool     // our own worker computes it on GPUs
	bounds  []string // TOML paths of keys whose reduction makes a run shorter
	// expand fills in what follows from a point's keys, and reports inconsistencies by TOML
	// path.
	expand func(*Point) map[string]string
	// frameworks can run it; nil: all that are not model servers.
	frameworks []string
	servers    bool     // model servers can run it, too
	workers    string   // another name for its workers in [sweep]; "": only "workers"
	data       bool     // it uses the data of [data]
	files      []string // TOML paths of keys that name files, relative to the study file
	objects    []string // those among files that may also name objects in a store
	// locate makes other file names of a point absolute; folder is the study's. nil: there
	// are none.
	locate func(p *Point, folder string)
	// beside returns the number of non-worker ranks of a run, and of nodes for them; nil:
	// none.
	beside func(*Point) (ranks, nodes int)
}

// declared is a field of Workload that holds the keys of a kind.
type declared interface{ kind() kind }

// kinds returns the kinds that the fields of Workload declare, by name.
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

// kindOf returns the kind of the workload, the zero kind if it is unknown.
func (w Workload) kindOf() kind { return kinds()[w.Kind] }

const defaultKind = "train"

// Kinds returns the names of the kinds of workload.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds())) }

// fields returns the keys of [workload], with their fields in Workload.
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

// elsewhere returns the keys of other kinds, which may be intended if the file's kind is
// unknown.
func (k kind) elsewhere(d *decoder) []string {
	var keys []string
	if d.flaws.in("workload.kind") {
		for _, other := range kinds() {
			keys = append(keys, other.fields().keys...)
		}
	}
	return keys
}

// MarshalJSON writes only the keys of the workload's kind.
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

// UnmarshalJSON reads the output of MarshalJSON.
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
		return nil // a point without a kind, as MarshalJSON writes it
	case !ok:
		return fmt.Errorf("workload.kind: %s", oneOf(w.Kind, Kinds()))
	}
	return json.Unmarshal(text, reflect.ValueOf(w).Elem().FieldByName(k.keys).Addr().Interface())
}

// Trains reports whether the workload has steps, epochs and a batch.
func (w Workload) Trains() bool { return w.kindOf().trains }

// UnderLoad reports whether our load generator runs the workload: it starts the framework's
// program as replicas of a service and sends them requests.
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

// notRunBy says that a framework cannot run the kind, and which can.
func (k kind) notRunBy(f Framework, all []Framework) string {
	var valid []string
	for _, other := range all {
		if k.runBy(other) {
			valid = append(valid, other.Name)
		}
	}
	return fmt.Sprintf("%q does not run this kind of workload; valid for it: %s", f.Name, strings.Join(quoted(valid), ", "))
}
