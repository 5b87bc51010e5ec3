// Package compare compares runs: two sets of them point by point (contrast.go), and
// the runs of one point over time (change.go). It is pure.
package compare

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// This file compares two sets of runs point by point: a change with what
// was before it, one cluster with another.
//
// A point of one set stands against the point of the other that was asked for
// alike, but for those parameters by which the sets differ as wholes. One set
// may so be a baseline, each point of which stands against several. The unit
// of replication is the run; without runs enough for a test there is no
// verdict.

// Verdict is how the second set's runs of a point are to the first's.
type Verdict string

// Same means that no difference was found at the level asked: the interval of
// the ratio says how large one could have gone unseen.
const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	Same         Verdict = "same"
	Different    Verdict = "different"    // in a measure of which nobody says which way it is better
	Insufficient Verdict = "insufficient" // too few runs to tell, or not to be compared; Why says it
)

// Pair is one point of both sets.
type Pair struct {
	Series  string
	Axis    string            // along which the measure is: workers, or a coordinate
	At      scaling.Value     // place on it
	Workers int               // 0 where the point's runs differ
	A, B    *scaling.Estimate // medians over the runs; nil where too many miss the target
	NA, NB  int               // runs that have the measure
	// Ratio is B over A, as in scaling.Ratio, with its interval; nil where either is
	// missing. The sets may be of different times, which Comparison.OtherDays says. Loss
	// is how much worse B is, as a fraction of A, negative when it is better; nil too for
	// a measure that does not judge.
	Ratio *scaling.Estimate
	Loss  *float64
	// P is of the two-sided Mann–Whitney test of this point alone; nil with too few
	// runs. Verdict is of all points together.
	P       *float64
	Verdict Verdict
	Why     string // of Insufficient
}

// Comparison is the comparison of two sets.
type Comparison struct {
	Pairs []Pair
	// Differ are the parameters, then the facts that runs ran on, by which the
	// sets differ as wholes: "framework: native, pytorch-ddp".
	Differ []string
	// OnlyA and OnlyB are points that only one set has: "native, 4 workers".
	OnlyA, OnlyB []string
	// OtherDays says that the sets were measured on different days, or that their days
	// are unknown; "" if they share one.
	OtherDays string
	// Again are the studies, A's first, whose runs to make again, in turns, so that
	// both sets have the same days; nil where they share days, or where that would
	// not make the sets again: a set of several studies, two of one study that asks
	// for the same in both, and processes on machines that differ.
	Again []string
}

// Options say how sets are compared.
type Options struct {
	// Mix pools runs of a point that ran on different things, and compares different
	// programs. Without it such points are not judged.
	Mix bool
	// Confidence is the level asked of intervals, and 1 less it the level at
	// which a difference is one; 0 is 0.95.
	Confidence float64
}

// errNothingInCommon is for sets without a point in common.
var errNothingInCommon = errors.New("the two sets of runs have no point in common")

// key is a point as it is found in the other set.
type key struct {
	identity string
	at       scaling.Value
}

// place is a point in one set.
type place struct {
	key
	series  string
	axis    string
	workers int
	runs    []*scaling.Observation
	summary *scaling.Summary
	made    []*scaling.Observation // the runs that have the measure
	values  []float64              // of those that have the measure; +Inf is a target that was missed
	nodes   [][]string             // that each of these ran on; nil where that is not known
}

// Runs compares b's runs with a's in one measure.
func Runs(a, b []scaling.Observation, f measure.Measure, o Options) (*Comparison, error) {
	if o.Confidence == 0 {
		o.Confidence = 0.95
	}
	in := map[string]bool{}
	for _, v := range a {
		in[v.Run] = true
	}
	both := 0
	for _, v := range b {
		if in[v.Run] {
			both++
		}
	}
	if both > 0 {
		return nil, fmt.Errorf("%s in both sets; choose sets that do not overlap", number.Count(both, "run"))
	}
	curvesA, err := curves(a, f)
	if err != nil {
		return nil, err
	}
	curvesB, err := curves(b, f)
	if err != nil {
		return nil, err
	}
	apart, named, words := differ(curvesA, curvesB)
	ground := groundDiffers(a, b)
	r := &Comparison{Differ: append(words, ground...), OtherDays: otherDays(a, b)}
	switch unknown := whenUnknown(a, b); {
	case unknown != "":
		r.OtherDays = unknown
	case r.OtherDays != "":
		r.Again = again(a, b, len(words) > 0, len(ground) > 0)
	}
	placesA, placesB := places(curvesA, a, apart, f), places(curvesB, b, apart, f)
	for i, list := range [][]place{placesA, placesB} {
		if len(list) == 0 {
			return nil, fmt.Errorf("%w: no run of %s recorded %s", errNothingInCommon, [2]string{"A", "B"}[i], f.Name)
		}
	}
	programs := ""
	if !o.Mix {
		programs = otherPrograms(a, b)
	}
	matter := nodesMatter(slices.Concat(placesA, placesB)...)
	common := 0 // that are judged together
	for _, p := range placesA {
		for _, q := range placesB {
			if q.key == p.key && len(p.values) > 0 && len(q.values) > 0 {
				common++
			}
		}
	}
	for _, p := range placesA {
		found := false
		for _, q := range placesB {
			if q.key != p.key {
				continue
			}
			point, err := judge(p, q, f, o, common, nodes{matter, otherMachines(a, b)})
			if err != nil {
				return nil, err
			}
			if programs != "" {
				point.Verdict, point.Why, point.Ratio, point.Loss, point.P = Insufficient, programs, nil, nil, nil
			}
			if named { // by what sets it apart
				point.Series = q.series
			}
			found, r.Pairs = true, append(r.Pairs, point)
		}
		if !found {
			r.OnlyA = append(r.OnlyA, p.String())
		}
	}
	for _, p := range placesB {
		if !slices.ContainsFunc(placesA, func(q place) bool { return q.key == p.key }) {
			r.OnlyB = append(r.OnlyB, p.String())
		}
	}
	if len(r.Pairs) == 0 {
		return nil, fmt.Errorf("%w: A has %s; B has %s", errNothingInCommon, few(r.OnlyA), few(r.OnlyB))
	}
	holm(r.Pairs, 1-o.Confidence)
	return r, nil
}

func (p place) String() string {
	return p.series + ", " + scaling.Places(p.axis, p.at)
}

func few(list []string) string {
	if len(list) > 3 {
		return strings.Join(list[:3], "; ") + fmt.Sprintf(" and %d more", len(list)-3)
	}
	return strings.Join(list, "; ")
}

// curves are the runs by series and worker count. What they ran on is looked at
// point by point, and nothing is divided by a base.
func curves(list []scaling.Observation, f measure.Measure) ([]scaling.Curve, error) {
	c, err := scaling.Analyse(list, scaling.Options{Mix: true, Measure: f})
	var noBase *scaling.NoBaseError
	if err != nil && !errors.As(err, &noBase) {
		return nil, err
	}
	return c, nil
}

// differ are the parameters that have one value in one set and only others in
// the other, by name and in words. Of several in b its points are to be named.
func differ(a, b []scaling.Curve) (apart map[string]bool, named bool, words []string) {
	values := func(list []scaling.Curve, key string) []string {
		var seen []string
		for _, c := range list {
			if v := value(c, key); !slices.Contains(seen, v) {
				seen = append(seen, v)
			}
		}
		return seen
	}
	keys := map[string]bool{"framework": true}
	for _, c := range slices.Concat(a, b) {
		for k := range c.Parameters {
			keys[k] = true
		}
	}
	apart = map[string]bool{}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		x, y := values(a, k), values(b, k)
		alone := len(x) == 1 && !slices.Contains(y, x[0]) || len(y) == 1 && !slices.Contains(x, y[0])
		if alone {
			apart[k], named = true, named || len(y) > 1
			words = append(words, fmt.Sprintf("%s: %s, %s", k, strings.Join(x, " or "), strings.Join(y, " or ")))
		}
	}
	return apart, named, words
}

// value is a parameter of a curve as text, "unset" for none.
func value(c scaling.Curve, key string) string {
	if key == "framework" {
		return c.Framework
	}
	v, ok := c.Parameters[key]
	if !ok {
		return "unset"
	}
	return fmt.Sprint(v)
}

// groundDiffers are the facts on which each set agrees and the sets do not.
func groundDiffers(a, b []scaling.Observation) []string {
	var words []string
	for _, d := range fingerprint.Differ(fingerprint.Common(fingerprints(a)), fingerprint.Common(fingerprints(b))) {
		words = append(words, fmt.Sprintf("%s: %s, %s", fingerprint.Name(d.Field), d.Was, d.Is))
	}
	return words
}

func fingerprints(list []scaling.Observation) []fingerprint.Print {
	p := make([]fingerprint.Print, len(list))
	for i, o := range list {
		p[i] = o.Fingerprint
	}
	return p
}

// places are the points of a set, identified by all parameters but those apart.
func places(list []scaling.Curve, runs []scaling.Observation, apart map[string]bool, f measure.Measure) []place {
	of := map[string]*scaling.Observation{}
	for i := range runs {
		of[runs[i].Run] = &runs[i]
	}
	var places []place
	for _, c := range list {
		var identity strings.Builder
		for _, k := range append([]string{"framework"}, slices.Sorted(maps.Keys(c.Parameters))...) {
			if !apart[k] {
				fmt.Fprintf(&identity, "%s=%q ", k, value(c, k))
			}
		}
		for _, p := range c.Points {
			at := place{key: key{identity.String(), p.At}, series: c.Series, axis: c.Axis, workers: p.Workers, summary: p.Of(f.Name)}
			for _, r := range p.Runs {
				at.runs = append(at.runs, of[r.ID])
				if x, has := r.Values[f.Name]; has && !math.IsNaN(x) {
					at.made, at.values, at.nodes = append(at.made, of[r.ID]), append(at.values, x), append(at.nodes, of[r.ID].Hosts)
				}
			}
			places = append(places, at)
		}
	}
	return places
}
