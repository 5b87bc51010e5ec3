package measure

import (
	"slices"
	"testing"
)

// Each question of a kind names a measure that its runs can have, in the right unit.
func TestKinds(t *testing.T) {
	var names []string
	for _, k := range kinds {
		if k.Name == "" || slices.Contains(names, k.Name) {
			t.Errorf("%q: want a name of its own", k.Name)
		}
		names = append(names, k.Name)
		for of, q := range map[string]struct{ name, unit string }{"advises": {k.Advises, ""}, "clock": {k.Clock, "s"}, "rate": {k.Rate, "requests/s"}} {
			if q.name == "" {
				continue
			}
			m, err := Find(q.name)
			if err != nil || !k.Has(q.name) || q.unit != "" && m.Unit != q.unit || of == "advises" && (m.Better == Neither || m.At != "") {
				t.Errorf("%s: %s by %s: want a measure of the kind, in %q", k.Name, of, q.name, q.unit)
			}
		}
		if KindOf(k.Name).Name != k.Name {
			t.Errorf("%s is not found", k.Name)
		}
	}
	for _, k := range kinds {
		if k.Exchanges != "" && !slices.Contains(names, k.Exchanges) {
			t.Errorf("%s: no kind is called %s", k.Name, k.Exchanges)
		}
	}
}

// Runs without a kind are trainings, an undeclared kind answers nothing, and runs with
// a throughput are analysed like trainings.
func TestKindOf(t *testing.T) {
	if k := KindOf(""); k.Name != "train" || !k.Trains || k.WorkerName() != "worker" {
		t.Errorf("%+v", k)
	}
	if k := KindOf("nothing"); k.Name != "nothing" || k.Trains || k.Measures != nil || k.Clock+k.Rate+k.Advises != "" {
		t.Errorf("%+v", k)
	}
	if KindOf("serve").WorkerName() != "replica" {
		t.Error("the workers of a service are its replicas")
	}
	train := KindOf("train")
	for name, want := range map[string]bool{"train": true, "preprocess": true, "serve": false, "collective": false} {
		if train.Like(KindOf(name)) != want {
			t.Errorf("asked like a training: %s, want %v", name, want)
		}
	}
	if KindOf("preprocess").Like(train) {
		t.Error("trainings are not asked like a preprocessing")
	}
}
