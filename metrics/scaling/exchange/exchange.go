// Package exchange turns runs of a benchmark of collectives into curves over
// message sizes, and into a prediction of what the same collectives take of a
// training's step. It is pure.
//
// The unit of replication is the run, as in package scaling: the iterations
// within one share everything that varies between runs, so that an interval is
// over runs, and there is none where they are few.
//
// Times are in seconds, sizes in bytes, bandwidths in bytes/s.
package exchange

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Run is what one run measured of collectives.
type Run struct {
	scaling.Observation
	Measurements []collective.Measurement
	Links        []collective.Link
}

// Backend is what carried the run's collectives: "tcp", "nccl"; "" where it was
// not recorded, as for an imported log.
func (r Run) Backend() string {
	name, _ := r.Parameters["workload.backend"].(string)
	return name
}

// Curve is one operation against the size of the message, over the runs of one
// placement: so many workers on so many nodes.
type Curve struct {
	Series  string // what tells its runs from others; "" where nothing does
	Op      string // "" where a log does not say
	InPlace bool
	Workers int
	Nodes   int
	Runs    int
	Sizes   []Size // by rising size
	// Alpha and Beta are the latency and the bandwidth of a long message, medians
	// over runs; nil where no run has them.
	Alpha, Beta *scaling.Estimate
	// Low and High are how far the fits are off at their worst size, model over
	// measured − 1, over all runs.
	Low, High float64
}

// Size is one size of a Curve.
type Size struct {
	Bytes float64
	BusBW *scaling.Estimate // median over runs; nil where none has it
	Each  []float64         // those of the runs, ascending
}

// Curves groups runs by series, operation, place and placement. series says what
// tells a run from others beside those, as "tcp"; nil: nothing does.
func Curves(runs []Run, series func(Run) string) []Curve {
	type key struct {
		series, op     string
		inPlace        bool
		workers, nodes int
	}
	of := map[key][]Run{}
	for _, r := range runs {
		k := key{workers: r.Workers, nodes: r.Nodes}
		if series != nil {
			k.series = series(r)
		}
		seen := map[key]bool{}
		for _, m := range r.Measurements {
			k.op, k.inPlace = m.Op, m.InPlace
			if !seen[k] {
				seen[k] = true
				of[k] = append(of[k], r)
			}
		}
	}
	var list []Curve
	for k, runs := range of {
		c := Curve{Series: k.series, Op: k.op, InPlace: k.inPlace, Workers: k.workers, Nodes: k.nodes, Runs: len(runs)}
		c.sizes(runs)
		c.links(runs)
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Curve) int {
		return cmp.Or(cmp.Compare(a.Series, b.Series), collective.CompareOps(a.Op, b.Op), compareBool(a.InPlace, b.InPlace),
			cmp.Compare(a.Workers, b.Workers), cmp.Compare(a.Nodes, b.Nodes))
	})
	return list
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// sizes are the medians over runs at each size.
func (c *Curve) sizes(runs []Run) {
	of := map[float64][]collective.Measurement{}
	for _, r := range runs {
		for _, m := range r.Measurements {
			if m.Op == c.Op && m.InPlace == c.InPlace {
				of[m.Bytes] = append(of[m.Bytes], m)
			}
		}
	}
	for bytes, list := range of {
		s := Size{Bytes: bytes}
		s.BusBW, s.Each = estimate(list, func(m collective.Measurement) *float64 { return m.BusBW })
		c.Sizes = append(c.Sizes, s)
	}
	slices.SortFunc(c.Sizes, func(a, b Size) int { return cmp.Compare(a.Bytes, b.Bytes) })
}

// links are the medians over runs of the fits.
func (c *Curve) links(runs []Run) {
	var list []collective.Link
	for _, r := range runs {
		if l := r.link(c.Op, c.InPlace); l != nil {
			list = append(list, *l)
			c.Low, c.High = min(c.Low, l.Low), max(c.High, l.High)
		}
	}
	c.Alpha, _ = estimate(list, func(l collective.Link) *float64 { return &l.Alpha })
	c.Beta, _ = estimate(list, func(l collective.Link) *float64 { return &l.Beta })
}

// link is the run's fit of an operation; nil where it has none.
func (r *Run) link(op string, inPlace bool) *collective.Link {
	i := slices.IndexFunc(r.Links, func(l collective.Link) bool { return l.Op == op && l.InPlace == inPlace })
	if i < 0 {
		return nil
	}
	return &r.Links[i]
}

// estimate is the median of a value over runs, and the values; nil where no run
// has it.
func estimate[T any](list []T, of func(T) *float64) (*scaling.Estimate, []float64) {
	var xs []float64
	for _, v := range list {
		if x := of(v); x != nil {
			xs = append(xs, *x)
		}
	}
	slices.Sort(xs)
	e, err := scaling.Median(xs, 0)
	if err != nil { // no value, or one that is no number
		return nil, nil
	}
	return &e, xs
}
