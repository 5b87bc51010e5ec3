package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/scalebench/scalebench/metrics/measure"
)

// made is a value of a run, with the run.
type made struct {
	value float64 // +Inf for a missed target
	*Observation
}

// block identifies the runs of one repeat, one of each point.
type block struct {
	study  string
	repeat int
}

func (m made) block() block { return block{m.Study, m.Repeat} }

// orderNotKnown returns the warning about runs that were imported without their times. For tables,
// it names the option that can supply the times.
func orderNotKnown(runs []*Observation) string {
	doubt := "the order of imported runs is not known, so drift cannot be excluded"
	if slices.ContainsFunc(runs, func(o *Observation) bool { return orderUnknown(o) && o.Parameters["import.format"] == "csv" }) {
		doubt += "; import --map started=COLUMN says it"
	}
	return doubt
}

// orderUnknown reports whether the run was imported and its start time is unknown.
func orderUnknown(o *Observation) bool {
	return o.BeganUnix == 0 && o.Parameters["import.format"] != nil
}

// InUnknownOrder reports whether some runs were imported without their start times.
func InUnknownOrder(runs []Observation) bool {
	return slices.ContainsFunc(runs, func(o Observation) bool { return orderUnknown(&o) })
}

// mostPlaces is the largest position in an order of runs. A larger BeganUnix is a time since
// 1970.
const mostPlaces = 1e7

// duration returns how long the run took, in seconds; 0 if unknown.
func (o *Observation) duration() float64 {
	if o.BeganUnix <= mostPlaces && o.Parameters["import.format"] != nil { // positions in an order are not seconds
		return 0
	}
	if o.JobSeconds != nil {
		return *o.JobSeconds
	}
	seconds := 0.0
	for _, name := range []string{measure.InitSeconds, measure.TrainSeconds} {
		if x := o.Known(name); x != nil {
			seconds += *x
		}
	}
	return seconds
}

// drifts tests whether the throughput in a series depends on when or where the runs were made. In
// stable series, the share of false alarms is at most alpha. If runs have no throughput, it tests
// the time that most of them have. name is the tested measure.
func drifts(s *series, along axis, alpha float64) (found []Drift, name string) {
	name = tested(s.runs)
	var runs []TimedRun
	for _, o := range s.runs {
		x := o.Known(name)
		if x == nil || !isRate(*x) || o.BeganUnix == 0 {
			continue
		}
		runs = append(runs, TimedRun{Point: slices.Index(s.at, along.of(o)), Value: *x, Began: o.BeganUnix, Nodes: o.Hosts})
	}
	return FindDrifts(runs, alpha), name
}

// tested returns the name of the measure that is tested for drift: the throughput, or else the
// measure of time that most runs have.
func tested(runs []*Observation) string {
	names := []string{measure.Throughput, measure.TokensPerSecond, measure.TrainSeconds, measure.RunSeconds}
	for _, o := range runs {
		for _, t := range o.Targets() {
			if name := t.Time().Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	best, most := names[0], 0
	for _, name := range names {
		n := 0
		for _, o := range runs {
			if x := o.Known(name); x != nil && isRate(*x) {
				n++
			}
		}
		if name == measure.Throughput && n > 0 {
			return name
		}
		if n > most {
			best, most = name, n
		}
	}
	return best
}

// gravity returns the rank of a drift for sorting: drifts that shift medians come before those
// that only make runs less informative.
func gravity(f Drift) int {
	return slices.Index([]DriftLink{DriftTrend, DriftNode, DriftDay, DriftNeighbours}, f.Link)
}

// WorstDrift returns the most serious drift warning of the curves, and its curve; nil if there is
// none.
func WorstDrift(curves []Curve) (worst *Curve, warning string) {
	for i := range curves {
		c := &curves[i]
		if len(c.drifts) > 0 && (worst == nil || gravity(c.drifts[0]) < gravity(worst.drifts[0])) {
			worst, warning = c, c.DriftWarnings[0]
		}
	}
	return worst, warning
}

// driftWarnings returns a warning for each drift that was found in the tested measure.
func driftWarnings(found []Drift, name string) []string {
	title := name
	if m, err := measure.Find(name); err == nil {
		title = m.Title
	}
	rises := name == measure.Throughput || name == measure.TokensPerSecond // a higher value is faster
	var list []string
	for _, f := range found {
		switch f.Link {
		case DriftTrend:
			went := "rose"
			if f.Change < 0 {
				went = "fell"
			}
			list = append(list, fmt.Sprintf("drift: %s %s by %.1f %% from the first to the second half of the runs (p = %.2g), so medians depend on when runs were made", title, went, math.Abs(100*f.Change), f.P))
		case DriftNeighbours:
			list = append(list, fmt.Sprintf("drift: consecutive runs are alike (p = %.2g), so they are worth less than independent runs", f.P))
		case DriftDay:
			list = append(list, fmt.Sprintf("drift: %s depends on the day (p = %.2g), so runs of one day are worth less than independent runs", title, f.P))
		case DriftNode:
			speed := "faster"
			if (f.Change < 0) == rises {
				speed = "slower"
			}
			list = append(list, fmt.Sprintf("runs on %s are %.1f %% %s than others (p = %.2g); runs that share a node count as one in intervals", f.Node, math.Abs(100*f.Change), speed, f.P))
		}
	}
	return list
}

// withinRuns returns, for each run, its value in a divided by its value in b; nil if some run has
// only one of them.
func withinRuns(a, b []made) []made {
	if len(a) != len(b) || len(a) == 0 || a[0].Run == "" || !slices.ContainsFunc(b, func(m made) bool { return m.Run == a[0].Run }) {
		return nil
	}
	of := make(map[string]float64, len(b))
	for _, m := range b {
		of[m.Run] = m.value
	}
	list := make([]made, len(a))
	for i, m := range a {
		other, both := of[m.Run]
		if !both || !isRate(other) || !isRate(m.value) {
			return nil
		}
		list[i] = made{m.value / other, m.Observation}
	}
	return list
}

const (
	// apartAt is the p-value up to which the runs of two points count as made at different times.
	// unbalancedAt is the p-value above which they count as interleaved well enough on a machine
	// that changes over time.
	apartAt, unbalancedAt = 0.01, 0.1
	// disjoint is the smallest number of runs of two points together from which on they count as
	// made apart if all runs of one were made before all runs of the other. With four runs each,
	// that happens by chance in 3 % of cases. With fewer runs, a ratio has no interval anyway.
	disjoint = 8
)

// order returns whether the runs of two points were interleaved in time, or one point was
// measured after the other.
func order(a, b []made) Order {
	switch {
	case withinRuns(a, b) != nil:
		return OnePerRun
	case !dated(a) || !dated(b):
		return OrderUnknown
	case balance(a, b) <= apartAt:
		return MadeApart
	}
	return Interleaved
}

func dated(runs []made) bool {
	return !slices.ContainsFunc(runs, func(m made) bool { return m.BeganUnix == 0 })
}

// balance returns the p-value of the Mann–Whitney test that the start times of the two points
// have the same distribution. If it is small, drift cannot be distinguished from a difference
// between the points. Runs that overlap in time count as started together. It returns 1 if a time
// is unknown.
func balance(a, b []made) float64 {
	if !dated(a) || !dated(b) {
		return 1
	}
	durations := make([]float64, 0, len(a)+len(b))
	first := math.Inf(1)
	for _, runs := range [][]made{a, b} {
		for _, m := range runs {
			first = min(first, m.BeganUnix)
			durations = append(durations, m.duration())
		}
	}
	if len(durations) == 0 {
		return 1
	}
	slices.Sort(durations)
	typical := middle(durations)
	times := func(list []made) []float64 {
		xs := make([]float64, len(list))
		for i, m := range list {
			xs[i] = m.BeganUnix - first
			if typical > 0 {
				xs[i] = math.Floor(xs[i] / typical)
			}
		}
		return xs
	}
	x, y := times(a), times(b)
	if min(len(x), len(y)) >= 2 && len(x)+len(y) >= disjoint && (slices.Max(x) < slices.Min(y) || slices.Max(y) < slices.Min(x)) {
		return 0
	}
	test, err := stats.MannWhitneyUTest(x, y, stats.LocationDiffers)
	if err != nil { // all runs started at the same time
		return 1
	}
	return test.P
}

// groups returns the sorted medians of groups of runs. Two runs are in one group if they share a
// node, directly or through other runs. A run with unknown nodes is a group by itself.
func groups(runs []made) []float64 {
	leader := make([]int, len(runs))
	find := func(i int) int {
		for leader[i] != i {
			i = leader[i]
		}
		return i
	}
	first := map[string]int{} // index of the first run on each node
	for i, m := range runs {
		leader[i] = i
		for _, host := range m.Hosts {
			if j, known := first[host]; known {
				leader[find(i)] = find(j)
			} else {
				first[host] = i
			}
		}
	}
	of := map[int][]float64{}
	for i, m := range runs {
		of[find(i)] = append(of[find(i)], m.value)
	}
	var medians []float64
	for _, values := range of {
		slices.Sort(values)
		medians = append(medians, middle(values))
	}
	slices.Sort(medians)
	return medians
}
