package sensitivity

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func amounts(cores, memory float64) map[string]scaling.Value {
	return map[string]scaling.Value{coresKey: {Number: cores}, memoryKey: {Number: memory}}
}

// priced returns the answer for a series with two workers on a machine. The reference has 4 CPUs
// and 8 GiB per worker; 2 CPUs are enough, 1 is too little, and so is 2 GiB.
func priced() *Answer {
	ratio := func(low, high float64) *scaling.Estimate {
		return &scaling.Estimate{Value: (low + high) / 2, Interval: &scaling.Interval{Low: low, High: high}}
	}
	return &Answer{
		Parameters: map[string]any{"storage": "nvme"},
		Reference:  Allocation{At: amounts(4, 8*gib), Verdict: Enough},
		Value:      ratio(90, 110),
		Load:       Load{Machines: 1, Workers: 2, CPUs: 8, GPUs: 0, Bytes: 12 * gib},
		keys:       []string{coresKey, memoryKey},
		measured: []Allocation{
			{At: amounts(4, 8*gib), Verdict: Enough},
			{At: amounts(2, 8*gib), Verdict: Enough, Ratio: ratio(0.97, 1.01)},
			{At: amounts(2, 4*gib), Verdict: Enough, Ratio: ratio(0.96, 1.01)},
			{At: amounts(1, 8*gib), Verdict: TooLittle, Ratio: ratio(0.5, 0.6)},
			{At: amounts(4, 2*gib), Verdict: TooLittle, Ratio: ratio(0.5, 0.6)},
		},
	}
}

func TestMachines(t *testing.T) {
	list := []Machine{
		{Name: "large", VCPUs: 32, Bytes: 64 * gib, Hour: 4},
		{Name: "fits", VCPUs: 8, Bytes: 16 * gib, Hour: 2},
		{Name: "half", VCPUs: 4, Bytes: 8 * gib, Hour: 1.5},
		{Name: "one and a half", VCPUs: 3, Bytes: 16 * gib, Hour: 1},
		{Name: "short", VCPUs: 8, Bytes: 4 * gib, Hour: 1.25},
		{Name: "between", VCPUs: 4, Bytes: 6 * gib, Hour: 1.1}, // 3 GiB a worker, not measured
		{Name: "single", VCPUs: 1, Bytes: 16 * gib, Hour: 0.5},
		{Name: "disk", VCPUs: 8, Bytes: 16 * gib, Hour: 0.1, Only: map[string]any{"storage": "disk"}},
		{Name: "nvme", VCPUs: 8, Bytes: 16 * gib, Hour: 3, Only: map[string]any{"storage": "nvme"}},
		{Name: "odd", VCPUs: 8, Bytes: 16 * gib, Hour: 0.2, Only: map[string]any{"fabric": "ib"}},
	}
	want := map[string]struct {
		verdict Verdict
		of      map[string]scaling.Value
		why     string
	}{
		"large":          {Enough, amounts(4, 8*gib), ""},
		"fits":           {Enough, amounts(4, 8*gib), ""},
		"half":           {Enough, amounts(2, 4*gib), ""},
		"one and a half": {TooLittle, amounts(1, 8*gib), ""},
		"short":          {TooLittle, amounts(4, 2*gib), ""},
		"between":        {Undecided, amounts(2, 3*gib), ""},
		"single":         {TooLittle, nil, "it has less than one cpus_per_worker for each worker"},
		"disk":           {"", nil, "it is priced for storage=disk, and the runs had nvme"},
		"nvme":           {Enough, amounts(4, 8*gib), ""},
		"odd":            {"", nil, "it is priced for fabric=ib, and the runs had none"},
	}
	market := priced().Machines(list)
	var names []string
	for _, o := range market.Offers {
		names = append(names, o.Name)
		w := want[o.Name]
		if o.Verdict != w.verdict || o.Why != w.why || (o.Of == nil) != (w.of == nil) || o.Of != nil && !Same(o.Of.At, w.of) {
			t.Errorf("%s: %q of %+v, %q; want %+v", o.Name, o.Verdict, o.Of, o.Why, w)
		}
	}
	if by := []string{"disk", "odd", "single", "one and a half", "between", "short", "half", "fits", "nvme", "large"}; !slices.Equal(names, by) {
		t.Errorf("offers in the order %q, want %q", names, by)
	}
	if market.Smallest == nil || market.Smallest.Name != "half" || market.Cheapest == nil || market.Cheapest.Name != "half" {
		t.Errorf("smallest %+v, cheapest %+v; want half as both", market.Smallest, market.Cheapest)
	}
	// An undecided machine is of interest only if it is smaller or cheaper than these.
	if len(market.Next) != 1 || market.Next[0].Name != "between" {
		t.Errorf("next %+v, want between", market.Next)
	}
	dear := slices.Clone(list)
	dear[5].Hour, dear[5].VCPUs = 9, 5
	if next := priced().Machines(dear).Next; len(next) != 0 {
		t.Errorf("a dearer machine with more CPUs is next: %+v", next)
	}
	// The smallest machine is not the cheapest.
	dear = slices.Clone(list)
	dear[2].Hour = 2.5
	if m := priced().Machines(dear); m.Smallest.Name != "half" || m.Cheapest.Name != "fits" {
		t.Errorf("smallest %s, cheapest %s; want half and fits", m.Smallest.Name, m.Cheapest.Name)
	}
	// Without an interval nothing is decided.
	a := priced()
	a.Value = nil
	if o := a.Machines(list[:1]).Offers[0]; o.Verdict != Undecided || !Same(o.Of.At, amounts(4, 8*gib)) {
		t.Errorf("without an interval: %+v, want undecided with the reference's amounts", o)
	}
}

// For resources that were not varied, a machine must have the amount of the runs.
func TestMachineOfFixedAmounts(t *testing.T) {
	fixed := func(change func(*Load)) *Answer {
		a := priced()
		a.keys = []string{coresKey}
		delete(a.Reference.At, memoryKey)
		a.measured = []Allocation{{At: map[string]scaling.Value{coresKey: {Number: 4}}, Verdict: Enough}}
		change(&a.Load)
		return a
	}
	for _, c := range []struct {
		change func(*Load)
		m      Machine
		want   string
	}{
		{func(*Load) {}, Machine{VCPUs: 8, Bytes: 12 * gib}, ""},
		{func(*Load) {}, Machine{VCPUs: 8, Bytes: 12*gib - 1}, "it has less memory than the runs, which were not run with less"},
		{func(l *Load) { l.Bytes = math.NaN() }, Machine{VCPUs: 8, Bytes: 12 * gib}, "how much of it the runs used is not known: memory"},
		{func(l *Load) { l.GPUs = 2 }, Machine{VCPUs: 8, Bytes: 12 * gib, GPUs: 1}, "it has 1 GPU, and the runs used 2"},
		{func(l *Load) { l.GPUs = 2 }, Machine{VCPUs: 8, Bytes: 12 * gib, GPUs: 2}, ""},
	} {
		o := fixed(c.change).Machines([]Machine{c.m}).Offers[0]
		if o.Why != c.want || (o.Verdict == Enough) != (c.want == "") {
			t.Errorf("%+v: %q, %q; want %q", c.m, o.Verdict, o.Why, c.want)
		}
	}
	a := priced()
	a.Reference.At["epochs"] = scaling.Value{Number: 3}
	if o := a.Machines([]Machine{{VCPUs: 8, Bytes: 16 * gib}}).Offers[0]; !strings.Contains(o.Why, "does not say how much epochs it has") {
		t.Errorf("a factor that no machine has: %+v", o)
	}
}

// GPUs count first, then vCPUs, memory, the price and the name.
func TestSize(t *testing.T) {
	m := Machine{Name: "b", VCPUs: 8, Bytes: 16, GPUs: 1, Hour: 2}
	for _, larger := range []Machine{
		{Name: "a", VCPUs: 1, Bytes: 1, GPUs: 2, Hour: 1},
		{Name: "a", VCPUs: 9, Bytes: 1, GPUs: 1, Hour: 1},
		{Name: "a", VCPUs: 8, Bytes: 17, GPUs: 1, Hour: 1},
		{Name: "a", VCPUs: 8, Bytes: 16, GPUs: 1, Hour: 3},
		{Name: "c", VCPUs: 8, Bytes: 16, GPUs: 1, Hour: 2},
	} {
		if m.Size(larger) >= 0 || larger.Size(m) <= 0 {
			t.Errorf("%+v is not larger", larger)
		}
	}
}

// Four workers on two machines: two on each, with the CPUs, GPUs and memory of a machine.
func TestLoadOf(t *testing.T) {
	run := func(id string, parameters map[string]any, memory float64) *scaling.Observation {
		o := &scaling.Observation{Run: id, Workers: 4, Nodes: 2, Parameters: parameters, Values: map[string]float64{}}
		if memory > 0 {
			o.Values[measure.PeakMemory] = memory
		}
		return o
	}
	own := map[string]any{coresKey: int64(3), memoryKey: int64(5 * gib), "resources.device": "gpu"}
	of := func(list ...*scaling.Observation) Load {
		var runs []scaling.RunValues
		byID := map[string]*scaling.Observation{}
		for _, o := range list {
			runs, byID[o.Run] = append(runs, scaling.RunValues{ID: o.Run}), o
		}
		return loadOf(runs, byID)
	}
	if got, want := of(run("a", own, 0)), (Load{Machines: 2, Workers: 2, CPUs: 6, GPUs: 2, Bytes: 10 * gib}); got != want {
		t.Errorf("as asked for: %+v, want %+v", got, want)
	}
	// The maximum over the runs of each machine.
	if got := of(run("a", own, 6*gib), run("b", own, 8*gib), run("c", own, 4*gib)); got.Bytes != 4*gib {
		t.Errorf("as used: %g bytes, want %d", got.Bytes, 4*gib)
	}
	imported := map[string]any{"vcpus": int64(16), "gpus": int64(8)}
	if got := of(run("a", imported, 0)); got.CPUs != 8 || got.GPUs != 4 || !math.IsNaN(got.Bytes) {
		t.Errorf("of an import: %+v, want 8 CPUs, 4 GPUs, unknown memory", got)
	}
	if got := of(run("a", map[string]any{"cpus": int64(16)}, 0)); got.CPUs != 8 {
		t.Errorf("of an import: %+v, want 8 CPUs", got)
	}
	if got := of(run("a", map[string]any{"resources.device": "cpu"}, 0)); got.GPUs != 0 || !math.IsNaN(got.CPUs) {
		t.Errorf("on CPUs: %+v, want no GPUs, an unknown number of CPUs", got)
	}
}

// If a word may be better than the reference by more than the permitted loss, there is no answer. A
// word that is too little, an ordered amount, or a word that is surely not better does not matter.
func TestUndistinguished(t *testing.T) {
	word := func(s string) scaling.Value { return scaling.Value{Word: s} }
	up := func(high float64) *scaling.Estimate {
		return &scaling.Estimate{Value: 1, Interval: &scaling.Interval{Low: 0.9, High: high}}
	}
	for name, c := range map[string]struct {
		ordered bool
		level   Level
		refused bool
	}{
		"perhaps better":        {false, Level{At: word("b"), Ratio: up(1.06), Verdict: Undecided, Runs: 6}, true},
		"no better":             {false, Level{At: word("b"), Ratio: up(1.05), Verdict: Enough, Runs: 6}, false},
		"too little":            {false, Level{At: word("b"), Ratio: up(1.06), Verdict: TooLittle, Runs: 6}, false},
		"the reference":         {false, Level{At: word("a"), Ratio: up(1.06), Verdict: Enough, Runs: 6}, false},
		"an amount":             {true, Level{At: word("b"), Ratio: up(1.06), Verdict: Enough, Runs: 6}, false},
		"without an interval":   {false, Level{At: word("b"), Ratio: &scaling.Estimate{Value: 1}, Runs: 3}, true},
		"memory ran out in one": {false, Level{At: word("b")}, true},
	} {
		a := Answer{Epsilon: 0.05, Spec: &Allocation{}, Reference: Allocation{At: map[string]scaling.Value{"disk": word("a")}}, keys: []string{"disk"},
			Factors: []Factor{{Key: "disk", Reference: word("a"), Ordered: c.ordered, Levels: []Level{c.level}}}}
		a.undistinguished()
		if refused := a.Spec == nil && strings.Contains(a.Why, "whether disk=b is better than a") && len(a.Next) == 1 && a.Next[0].At["disk"] == word("b"); refused != c.refused {
			t.Errorf("%s: refused %v, want %v: %q, next %v", name, refused, c.refused, a.Why, a.Next)
		}
	}
}
