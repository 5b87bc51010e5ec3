package measure

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	for _, name := range append(Names(), "to_0.75", "to_0", "to_1") {
		m, err := Find(name)
		if err != nil || m.Name != name || m.Title == "" {
			t.Errorf("%q: %+v, %v", name, m, err)
		}
	}
	for _, name := range []string{"", "speed", "to_", "to_2", "to_75", "to_-1", "to_NaN", "to_Inf", "throughput; DROP TABLE run", "nodes"} {
		if m, err := Find(name); err == nil {
			t.Errorf("%q is %+v", name, m)
		}
	}
}

// A doubled rate and a halved time are the same gain.
func TestGain(t *testing.T) {
	if g := (Measure{Better: Higher}).Gain(200, 100); g != 2 {
		t.Error(g)
	}
	if g := (Measure{Better: Lower}).Gain(50, 100); g != 2 {
		t.Error(g)
	}
}

// A name has one meaning in all kinds, and every measure that judges runs has a
// direction.
func TestDeclarations(t *testing.T) {
	seen := map[string]Measure{}
	for _, kind := range append(slices.Clone(kinds), Kind{Name: "every", Measures: Resources()}) {
		for _, m := range kind.Measures {
			if other, ok := seen[m.Name]; ok && other != m {
				t.Errorf("%s: %s is declared as something else, too", kind.Name, m.Name)
			}
			seen[m.Name] = m
			if m.Show == Percent && m.Unit != "" || m.Show == Seconds && m.Unit != "s" || m.Show == Size && m.Unit != "B" {
				t.Errorf("%s: %s is shown in another unit than its own", kind.Name, m.Name)
			}
			if m.Scales && (m.Better == Neither || m.Show == Percent || m.Show == Size) {
				t.Errorf("%s: %s has an efficiency", kind.Name, m.Name)
			}
			if !slices.IsSorted(m.At.Keys()) || m.Axis != "" && !m.At.Has(m.Axis) {
				t.Errorf("%s: %s is at %v, along %q", kind.Name, m.Name, m.At, m.Axis)
			}
			for _, other := range m.Siblings() {
				if other.Axis != m.Axis {
					t.Errorf("%s: %s and %s are at the same places and along different axes", kind.Name, m.Name, other.Name)
				}
			}
			for _, key := range m.At.Keys() { // a curve is also identified by the run's keys, so names must not collide
				if strings.Contains(key, ".") || slices.Contains([]string{"id", "study", "framework", "workers", "nodes", "workers_per_node", "repeat", "attempt", "seed"}, key) {
					t.Errorf("%s: %s: %s is a key of points", kind.Name, m.Name, key)
				}
			}
		}
	}
	if list := ForKind("train"); !slices.ContainsFunc(list, func(m Measure) bool { return m.Name == Throughput }) || ForKind("nothing") != nil {
		t.Error(list)
	}
}

// The program's target comes before accuracies, and has no number.
func TestGoals(t *testing.T) {
	i := slices.IndexFunc(ForKind("train"), func(m Measure) bool { return m.Name == ToTarget })
	own := ForKind("train")[i]
	list := []Measure{Accuracy(0.9).Time(), own, Accuracy(0.25).Time()}
	slices.SortFunc(list, ByGoal)
	var goals []string
	for _, m := range list {
		goals = append(goals, m.Goal())
	}
	if diff := cmp.Diff([]string{"target", "0.25", "0.9"}, goals); diff != "" {
		t.Error(diff)
	}
	if _, ok := TargetOf(ToTarget); ok || !own.Missable {
		t.Errorf("%+v is an accuracy's, or cannot be missed", own)
	}
}

// Rates over all resources and times of a fixed amount of work have an efficiency;
// values per answer, step, replica or rank, and costs, do not.
func TestScales(t *testing.T) {
	for name, want := range map[string]bool{
		Throughput: true, TrainSeconds: true, "to_0.75": true, StepP50: false, InitSeconds: false, Skew: false,
		RequestsPerSecond: true, RateWithinLimit: true, OutputThroughput: true, LatencyP95: false, TTFTP50: false, StartupSeconds: false,
		ModelP50: false, ReplicaSpread: false, ClientOverhead: false, Errors: false, BusBW: false, Time: false, JoulesPerSample: false,
	} {
		if m, err := Find(name); err != nil || m.Scales != want {
			t.Errorf("%s: %v, %v", name, m.Scales, err)
		}
	}
	for _, m := range PerMillion("EUR") {
		if m.Scales {
			t.Errorf("%s counts what it takes", m.Name)
		}
	}
}

// Shares of a device's peak are fractions and shown as percentages. Other figures may
// already be percentages and are shown unchanged.
func TestUtilisationInPerCent(t *testing.T) {
	for name, want := range map[string]string{"mfu_palm": "34.4 %", "hfu_torchtitan": "34.4 %", "reported_mfu": "34.4 %", "mfu": "0.344", "mfu_mean": "0.344", "palm": "0.344"} {
		if got := Reported(name, "", Neither).Text(0.344); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := Reported("mfu_palm", "%", Neither).Text(34.4); got != "34.4" {
		t.Error(got)
	}
}

// What is a share, a count, a loss or a cost is not faster when it is better.
func TestSpeeds(t *testing.T) {
	for name, want := range map[string]bool{Throughput: true, TrainSeconds: true, StepP99: true, "to_0.75": true, RequestsPerSecond: true, LatencyP95: true,
		BusBW: true, OutputPerUser: true, Goodput: true, StageCPU: true,
		Errors: false, Timeouts: false, Skew: false, DataWait: false, Compute: false, FinalAccuracy: false, NoiseScale: false, WindowCV: false,
		ReplicaSpread: false, ServerQueue: false, TimeCV: false, ConsumerLoss: false, ThreadsDelay: false, ClientRate: false} {
		if m, err := Find(name); err != nil || m.Speeds() != want {
			t.Errorf("%s: %v, %v", name, m.Speeds(), err)
		}
	}
	for _, c := range []struct {
		unit   string
		better Direction
		want   bool
	}{{"Mpoints/s", Higher, true}, {"s", Lower, true}, {"", Higher, true}, {"", Lower, false}, {"J", Lower, false}, {"B", Lower, false}, {"s", Neither, false}, {"tokens/s", Neither, true}} {
		if got := Reported("x", c.unit, c.better).Speeds(); got != c.want {
			t.Errorf("a figure in %q, better %v: %v", c.unit, c.better, got)
		}
	}
}
