package fingerprint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

func TestOf(t *testing.T) {
	gpu := metrics.GPU{Name: "NVIDIA A100", Driver: "535.54", MIG: "1g.10gb", PowerLimitWatts: 399.98}
	eth := &metrics.Interface{Name: "ib0", SpeedBitsPer: 200e9}
	one := &metrics.Environment{CPUModel: "Xeon", GPUs: []metrics.GPU{gpu}, Interface: eth,
		Versions: map[string]string{"go": "go1.26", "torch": "2.1", "nccl": "2.18.5"}}
	other := &metrics.Environment{CPUModel: "EPYC", Interface: &metrics.Interface{Name: "ib0", SpeedBitsPer: 200e9},
		Versions: map[string]string{"torch": "2.1"}}
	own := &metrics.Environment{Files: map[string]string{"my_model.py": "0123456789abcdef"}}
	for _, test := range []struct {
		name string
		s    Subject
		want Print
	}{
		{"all", Subject{Environments: []*metrics.Environment{one}, Device: "gpu", Nodes: 2, DataSHA256: "0123456789abcdef"},
			Print{CPU: "Xeon", GPU: "NVIDIA A100", MIG: "1g.10gb", PowerCap: "400 W", Driver: "535.54", NCCL: "2.18.5",
				Interface: "ib0 200 Gbit/s", Data: "0123456789ab", "version.torch": "2.1"}},
		{"one node, no GPU in use", Subject{Environments: []*metrics.Environment{one}, Device: "cpu", Nodes: 1},
			Print{CPU: "Xeon", Interface: "", NCCL: "2.18.5", "version.torch": "2.1"}},
		{"two kinds of node and a rank that said nothing", Subject{Environments: []*metrics.Environment{one, nil, other}, Device: "cpu", Nodes: 2},
			Print{CPU: "EPYC + Xeon", NCCL: "2.18.5", Interface: "ib0 200 Gbit/s", "version.torch": "2.1"}},
		{"a file of the user's own", Subject{Environments: []*metrics.Environment{own, nil}, Nodes: 2}, Print{"file.my_model.py": "0123456789ab"}},
		{"what the site started it with", Subject{Environments: []*metrics.Environment{
			{Setting: &metrics.Setting{Python: "/p", Container: "apptainer i", Modules: "none", Setup: "sealed-1", Environment: "A=sealed-2"}}, {}}},
			Print{Python: "/p", Container: "apptainer i", Modules: "none", Setup: "sealed-1", Environment: "A=sealed-2"}},
		{"nothing recorded", Subject{Environments: []*metrics.Environment{nil}}, nil},
	} {
		if diff := cmp.Diff(test.want, Compute(test.s)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// "Not used" differs from every value, and is not listed.
func TestNotUsedIsAValue(t *testing.T) {
	with, without := Print{CPU: "Xeon", Modules: "gcc/13"}, Print{CPU: "Xeon", Modules: metrics.None}
	if d := Differ(without, with); len(d) != 1 || d[0].String() != "modules none → gcc/13" || Agree(with, without) {
		t.Errorf("%v", d)
	}
	if without.String() != "cpu Xeon" {
		t.Errorf("%s", without)
	}
}

// A run for which a fact does not apply agrees with runs of any value, but those differ from each other.
func TestNotApplicableMatchesAny(t *testing.T) {
	of := func(versions map[string]string) Print {
		return Compute(Subject{Environments: []*metrics.Environment{{Versions: versions}}, Nodes: 1})
	}
	none, one, two := of(map[string]string{"object_store": ""}), of(map[string]string{"object_store": "http://a"}), of(map[string]string{"object_store": "http://b"})
	if v, ok := none[VersionPrefix+"object_store"]; !ok || v != "" {
		t.Errorf("%q, %v; want the version recorded as empty", v, ok)
	}
	if !Agree(none, one) || !Agree(none, two) || Agree(one, two) {
		t.Errorf("none, %v and %v do not agree as they should", one, two)
	}
	if d := Differ(one, two); len(d) != 1 || d[0].String() != "object store http://a → http://b" {
		t.Errorf("%v", d)
	}
}

func TestUnknownIsNeitherEqualNorDifferent(t *testing.T) {
	known, other, unknown := Print{CPU: "Xeon", Driver: "1"}, Print{CPU: "EPYC", Driver: "1"}, Print{Driver: "1"}
	oneNode := Print{CPU: "Xeon", Driver: "1", Interface: ""}
	if Agree(known, other) || !Agree(known, unknown) || !Agree(unknown, other) || !Agree(oneNode, Print{Interface: "ib0"}) {
		t.Error("agreement is not as it is said to be")
	}
	mixed, partial := Vary([]Print{known, known, unknown})
	if mixed != nil || len(partial) != 1 || partial[0].String() != "cpu: Xeon (2 runs), not recorded (1 run)" {
		t.Errorf("mixed %v, partial %v", mixed, partial)
	}
	mixed, partial = Vary([]Print{known, other, unknown})
	if partial != nil || len(mixed) != 1 || mixed[0].String() != "cpu: EPYC (1 run), Xeon (1 run), not recorded (1 run)" {
		t.Errorf("mixed %v, partial %v", mixed, partial)
	}
	// What does not bear on a run is not missing.
	if mixed, partial = Vary([]Print{{Interface: ""}, {Interface: "ib0"}}); mixed != nil || partial != nil {
		t.Errorf("mixed %v, partial %v", mixed, partial)
	}
	if diff := cmp.Diff(Print{Driver: "1"}, Common([]Print{known, other, unknown, nil})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Difference{{CPU, "Xeon", "EPYC"}}, Differ(known, other)); diff != "" {
		t.Error(diff)
	}
}
