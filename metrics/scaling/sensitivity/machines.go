package sensitivity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Machine is a machine of a price list.
type Machine struct {
	Name  string
	VCPUs float64
	Bytes float64 // memory
	GPUs  float64
	Hour  float64 // hourly price
	// Only lists parameters, by TOML path, that runs must have to count for this machine:
	// its storage, its kind of GPU.
	Only map[string]any
}

// Size compares two machines by size: GPUs first, then vCPUs, memory, and price.
func (m Machine) Size(other Machine) int {
	return cmp.Or(cmp.Compare(m.GPUs, other.GPUs), cmp.Compare(m.VCPUs, other.VCPUs), cmp.Compare(m.Bytes, other.Bytes), cmp.Compare(m.Hour, other.Hour), strings.Compare(m.Name, other.Name))
}

// A Load holds the resources that the runs of a series used per machine. NaN: unknown.
type Load struct {
	Machines int
	Workers  float64
	CPUs     float64
	GPUs     float64
	// Bytes is the peak memory of their processes without page cache, or, if not sampled,
	// what they requested.
	Bytes float64
}

// loadOf returns the load of the runs of a point.
func loadOf(list []scaling.RunValues, runs map[string]*scaling.Observation) Load {
	l := Load{Machines: 1, Workers: 1, CPUs: math.NaN(), GPUs: math.NaN(), Bytes: math.NaN()}
	number := func(o *scaling.Observation, key string) float64 {
		if v, ok := o.Parameters[key]; ok && scaling.ValueOf(v).Numeric() {
			return scaling.ValueOf(v).Number
		}
		return math.NaN()
	}
	peak := 0.0
	for _, r := range list {
		o := runs[r.ID]
		l.Machines = max(l.Machines, o.Nodes)
		l.Workers = math.Ceil(float64(max(1, o.Workers)) / float64(max(1, o.Nodes)))
		l.CPUs = l.Workers * number(o, coresKey)
		for _, label := range []string{"vcpus", "cpus"} {
			if n := number(o, label); !math.IsNaN(n) {
				l.CPUs = n / float64(max(1, o.Nodes))
			}
		}
		switch o.Parameters["resources.device"] {
		case "gpu":
			l.GPUs = l.Workers
		case "cpu":
			l.GPUs = 0
		}
		if n := number(o, "gpus"); !math.IsNaN(n) {
			l.GPUs = n / float64(max(1, o.Nodes))
		}
		if v, ok := o.Value(measure.PeakMemory); ok {
			peak = max(peak, v/float64(max(1, o.Nodes)))
		}
		if n := l.Workers * number(o, memoryKey); n > 0 {
			l.Bytes = n
		}
	}
	if peak > 0 {
		l.Bytes = peak
	}
	return l
}

// An Offer is the verdict on one machine of the list.
type Offer struct {
	Machine
	Verdict Verdict // "" if the runs do not tell
	// Of is the combination that the verdict is about: the fastest sufficient one that fits into the
	// machine, or an insufficient one although the machine has no more. For an undecided machine,
	// it is the combination that a worker would get there, to be measured.
	Of  *Allocation
	Why string // why the runs do not tell
}

// A Market is a price list with a verdict on each machine.
type Market struct {
	Offers   []Offer // sorted by price
	Smallest *Offer  // the smallest sufficient machine, see Machine.Size; nil for none
	Cheapest *Offer  // the cheapest sufficient machine; nil for none
	// Next lists undecided machines that would be smaller or cheaper than these, or all if
	// none suffices, cheapest first.
	Next []Offer
}

// The usual factors.
const (
	coresKey  = "resources.cpus_per_worker"
	memoryKey = "resources.memory"
)

// quantities maps factors to what a machine has of them, and whether they are per worker or
// for all workers on the machine.
var quantities = map[string]struct {
	of   func(Machine) float64
	each bool
}{
	coresKey:  {func(m Machine) float64 { return m.VCPUs }, true},
	memoryKey: {func(m Machine) float64 { return m.Bytes }, true},
	// Names that imports use for a machine's quantities.
	"vcpus": {func(m Machine) float64 { return m.VCPUs }, false},
	"cpus":  {func(m Machine) float64 { return m.VCPUs }, false},
	"gpus":  {func(m Machine) float64 { return m.GPUs }, false},
	"gib":   {func(m Machine) float64 { return m.Bytes / (1 << 30) }, false},
}

// Machines judges a price list by the answer. A machine suffices if a sufficient
// combination fits into it. It is insufficient if it has no more of anything than an
// insufficient combination. More than the reference had is assumed to have no effect.
func (a *Answer) Machines(list []Machine) Market {
	var market Market
	for _, m := range slices.SortedStableFunc(slices.Values(list), func(x, y Machine) int { return cmp.Or(cmp.Compare(x.Hour, y.Hour), x.Size(y)) }) {
		market.Offers = append(market.Offers, a.offer(m))
	}
	better := func(o, than *Offer, by func(x, y Machine) int) bool {
		return than == nil || by(o.Machine, than.Machine) < 0
	}
	price := func(x, y Machine) int { return cmp.Compare(x.Hour, y.Hour) }
	for i := range market.Offers {
		if o := &market.Offers[i]; o.Verdict == Enough {
			if better(o, market.Smallest, Machine.Size) {
				market.Smallest = o
			}
			if better(o, market.Cheapest, price) {
				market.Cheapest = o
			}
		}
	}
	for _, o := range market.Offers {
		if o.Verdict == Undecided && (better(&o, market.Cheapest, price) || better(&o, market.Smallest, Machine.Size)) {
			market.Next = append(market.Next, o)
		}
	}
	return market
}

func (a *Answer) offer(m Machine) Offer {
	o := Offer{Machine: m}
	at := maps.Clone(a.Reference.At) // amounts per worker on that machine, at most the reference's
	words := map[string]bool{}       // words that the machine determines
	for _, key := range slices.Sorted(maps.Keys(m.Only)) {
		want := scaling.ValueOf(m.Only[key])
		if _, factor := at[key]; factor {
			at[key], words[key] = want, true
		} else if had, ok := a.Parameters[key]; !ok || scaling.ValueOf(had) != want {
			o.Why = fmt.Sprintf("it is priced for %s=%s, and the runs had %s", last(key), want, saidOr(had, "none"))
			return o
		}
	}
	// What was not varied must be equal to what the runs had.
	for _, fixed := range []struct {
		key, name string
		needs     float64
		has       float64
	}{
		{coresKey, "CPUs", a.Load.CPUs, m.VCPUs},
		{memoryKey, "memory", a.Load.Bytes, m.Bytes},
		{"", "GPUs", a.Load.GPUs, m.GPUs},
	} {
		switch {
		case a.varies(fixed.key, fixed.name):
		case math.IsNaN(fixed.needs):
			o.Why = "how much of it the runs used is not known: " + fixed.name
			return o
		case fixed.needs > fixed.has && fixed.key == "":
			o.Why = fmt.Sprintf("it has %s, and the runs used %g", number.Count(int(fixed.has), "GPU"), fixed.needs)
			return o
		case fixed.needs > fixed.has:
			o.Why = "it has less " + fixed.name + " than the runs, which were not run with less"
			return o
		}
	}
	for key, v := range at {
		if !v.Numeric() || words[key] {
			continue
		}
		q, known := quantities[key]
		if !known {
			o.Why = "the price list does not say how much " + last(key) + " it has"
			return o
		}
		amount := q.of(m)
		if q.each {
			amount = math.Floor(amount / a.Load.Workers)
		}
		if amount < size(key, v) {
			at[key] = scaling.Value{Number: amount}
		}
		if amount < 1 {
			o.Verdict, o.Why = TooLittle, "it has less than one "+last(key)+" for each worker"
			return o
		}
	}
	a.judgeMachine(&o, at)
	return o
}

// judgeMachine sets the verdict on a machine: it compares the resources that a worker would
// get there (at) with the measured combinations.
func (a *Answer) judgeMachine(o *Offer, at map[string]scaling.Value) {
	if _, _, ok := a.Value.Ends(); !ok {
		o.Verdict, o.Of = Undecided, &Allocation{At: at}
		return
	}
	covers := func(x, y map[string]scaling.Value) bool { return Same(x, y) || dominates(x, y, a.keys) }
	var exact *Allocation
	for i := range a.measured {
		m := &a.measured[i]
		if Same(m.At, at) {
			exact = m
		}
		switch {
		case m.Verdict == TooLittle && covers(m.At, at):
			o.Verdict, o.Of = TooLittle, m
			return
		case m.Verdict == Enough && covers(at, m.At) && (o.Of == nil || faster(m, o.Of)):
			o.Verdict, o.Of = Enough, m
		}
	}
	if o.Verdict == "" {
		o.Verdict, o.Of = Undecided, &Allocation{At: at}
		if exact != nil {
			o.Of = exact
		}
	}
}

// faster compares the lower ends of the intervals; nothing is surely faster than the
// reference.
func faster(x, y *Allocation) bool {
	low := func(a *Allocation) float64 {
		if a.Ratio == nil {
			return 1
		}
		low, _, _ := a.Ratio.Ends()
		return low
	}
	return low(x) > low(y)
}

// varies reports whether one of the factors is the resource key, or has another key for the
// same resource. name is the name of that resource.
func (a *Answer) varies(key, name string) bool {
	for _, k := range a.keys {
		switch {
		case k == key:
			return true
		case name == "CPUs" && (k == "vcpus" || k == "cpus"), name == "memory" && k == "gib", name == "GPUs" && k == "gpus":
			return true
		}
	}
	return false
}

func last(key string) string { return key[strings.LastIndex(key, ".")+1:] }

func saidOr(v any, none string) string {
	if v == nil {
		return none
	}
	return scaling.ValueOf(v).String()
}

// Common returns the smallest and the cheapest machines that suffice for all of several
// needs; nil for none. A machine must be in all price lists at the same price.
func Common(markets []Market) (smallest, cheapest *Machine) {
	if len(markets) == 0 {
		return nil, nil
	}
	for i := range markets[0].Offers {
		m := &markets[0].Offers[i].Machine
		every := true
		for _, market := range markets {
			every = every && market.holds(m)
		}
		if !every {
			continue
		}
		if smallest == nil || m.Size(*smallest) < 0 {
			smallest = m
		}
		if cheapest == nil || m.Hour < cheapest.Hour {
			cheapest = m
		}
	}
	return smallest, cheapest
}

// holds reports whether the market has this exact machine and it suffices.
func (market *Market) holds(m *Machine) bool {
	for _, o := range market.Offers {
		if o.Verdict == Enough && o.Machine.Size(*m) == 0 && maps.Equal(o.Only, m.Only) {
			return true
		}
	}
	return false
}
