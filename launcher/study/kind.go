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
// everything else that differs between kinds. A new kind needs one file like train.go,
// which defines a type for its keys with a method kind, and one field in Workload.
// `scalebench-worker KIND` runs it.
type kind struct {
	keys     string // field of Workload that holds the kind's keys; set by kinds
	defaults Workload
	rules    map[string]rule // rules for the values, by TOML path
	// follows lists, for a TOML path, other keys that may cause a problem at that path.
	// plausible has values with which the checks continue if a value cannot be used and its
	// default would cause further problems.
	follows   map[string][]string
	plausible map[string]any
	// brought are keys that a user's program ([command]) may determine itself.
	brought []string
	trains  bool     // has steps, epochs and a batch
	loaded  bool     // scalebench's load generator starts the framework's program and sends it requests
	onGPUs  bool     // scalebench-worker itself computes the workload on GPUs
	bounds  []string // TOML paths of keys whose reduction makes a run shorter
	// expand fills in the values that follow from a point's keys. It returns messages about
	// inconsistent keys, by TOML path.
	expand func(*Point) map[string]string
	// frameworks are the names of the frameworks that can run the kind; nil: all except
	// model servers.
	frameworks []string
	servers    bool   // model servers can run the kind, too
	workers    string // another name for the workers in [sweep], such as "replicas"; "": only "workers"
	// alone reports whether a workload has one worker unless [sweep] lists counts; nil: never.
	alone   func(Workload) bool
	data    bool     // the kind uses the [data] table
	files   []string // TOML paths of keys that name files, relative to the study file
	objects []string // keys of files that may also name objects in an object store
	// locate makes the other file names of a point absolute; relative ones start in the study's
	// folder. nil: the point has none.
	locate func(p *Point, folder string)
	// The function beside returns the number of non-worker ranks of a run, and the number of extra
	// nodes for them; nil: the kind has no such ranks.
	beside func(*Point) (ranks, nodes int)
}

// declared is a field of Workload that holds the keys of a kind.
type declared interface{ kind() kind }

// kinds returns all kinds of workload by name: one for each field of Workload that has
// keys.
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

// kindOf returns the workload's kind; the zero kind if its name is unknown.
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

// elsewhere returns the keys of the other kinds if the file's kind is unknown, since the
// file may be meant for one of these.
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
		return nil // MarshalJSON writes a point without a kind like this
	case !ok:
		return fmt.Errorf("workload.kind: %s", oneOf(w.Kind, Kinds()))
	}
	return json.Unmarshal(text, reflect.ValueOf(w).Elem().FieldByName(k.keys).Addr().Interface())
}

// Trains reports whether the workload has steps, epochs and a batch.
func (w Workload) Trains() bool { return w.kindOf().trains }

// UnderLoad reports whether the workload is a service under load: scalebench's load
// generator starts the framework's program as replicas and sends them requests.
func (w Workload) UnderLoad() bool { return w.kindOf().loaded }

// OnGPUs reports whether scalebench-worker itself, and not a framework's program, can
// compute the workload on GPUs.
func (w Workload) OnGPUs() bool { return w.kindOf().onGPUs }

// runBy reports whether the framework f can run this kind of workload.
func (k kind) runBy(f Framework) bool {
	if f.Server {
		return k.servers
	}
	return k.frameworks == nil || slices.Contains(k.frameworks, f.Name)
}

// notRunBy returns the message that the framework f cannot run this kind of workload, and
// which of all frameworks can.
func (k kind) notRunBy(f Framework, all []Framework) string {
	var valid []string
	for _, other := range all {
		if k.runBy(other) {
			valid = append(valid, other.Name)
		}
	}
	return fmt.Sprintf("%q does not run this kind of workload; valid for it: %s", f.Name, strings.Join(quoted(valid), ", "))
}
