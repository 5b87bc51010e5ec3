// Package compare compares runs: two sets of runs point by point (contrast.go), and
// the runs of one point over time (change.go). It has no side effects.
package compare

import (
	"cmp"
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

// This file compares two sets of runs point by point: before and after a change, or
// one cluster with another.
//
// Each point is compared with the point of the other set that has the same parameters. Parameters
// that distinguish the two sets as a whole are ignored. So one point of a baseline may be compared
// with several points. The unit of replication is the run; if there are too few runs for a test,
// the verdict is Insufficient.

// A Verdict says how the second set's runs of a point compare with the first's.
type Verdict string

// Same means that no difference was found at the requested level; the ratio's interval
// shows how large a difference could have been missed.
const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	Same         Verdict = "same"
	Different    Verdict = "different"    // for measures without a better direction
	Insufficient Verdict = "insufficient" // too few runs, or not comparable; see Why
)

// A Pair is one point in both sets.
type Pair struct {
	Series  string
	Axis    string            // coordinate along which the measure varies, such as workers
	At      scaling.Value     // position on the axis
	Workers int               // 0 if the runs have different worker counts
	A, B    *scaling.Estimate // medians over the runs; nil if too many miss the target
	NA, NB  int               // runs that have the measure
	// Ratio is the median of B divided by that of A, with an interval as in scaling.Ratio; nil if
	// either is missing. The sets may be from different days; see Comparison.OtherDays. Loss says
	// how much worse B is, as a fraction of A, negative if better. It is nil if Ratio is, or if the
	// measure has no better direction.
	Ratio *scaling.Estimate
	Loss  *float64
	// P is the p-value of the two-sided Mann–Whitney test of this point; nil with too
	// few runs. Verdict considers all points together.
	P       *float64
	Verdict Verdict
	Why     string // reason for Insufficient
	FewRuns bool   // Insufficient only because there are too few runs for a test
	Equal   bool   // all runs of A, or all of B, have the same value
	// Origin says which runs of A and of B were compared.
	Origin [2]Origin
}

// An Origin names the series and the IDs of the points that one side of a Pair comes from.
type Origin struct {
	Series string
	Points []string
}

// A Comparison is the result of comparing two sets.
type Comparison struct {
	Pairs []Pair
	// Differ lists the parameters, then the fingerprint fields, that distinguish the sets as a
	// whole: "framework: native, pytorch-ddp".
	Differ []string
	// OnlyA and OnlyB list points that are in one set only: "native, 4 workers".
	OnlyA, OnlyB []string
	// OtherDays says that the sets were measured on different days, or that their days
	// are unknown; "" if they share one.
	OtherDays string
	// Again lists the studies, A's first, to run again in turns, so that both sets are from the
	// same days. It is nil if the sets already share a day, or if running the studies again would
	// not recreate the sets. That is so if a set has several studies, if one study requests the
	// same for both sets, or if local processes ran on different machines.
	Again []string
}

// Options configure a comparison.
type Options struct {
	// Mix pools the runs of a point even if their fingerprints differ, and compares different
	// programs. Without it the verdict on such points is Insufficient.
	Mix bool
	// Confidence is the level of intervals; 1 minus it is the significance level of
	// differences. 0 means 0.95.
	Confidence float64
}

// errNothingInCommon is returned for sets without a common point.
var errNothingInCommon = errors.New("the two sets of runs have no point in common")

// A key identifies a point in both sets.
type key struct {
	identity string
	at       scaling.Value
}

// A place is a point of one set with its runs.
type place struct {
	key
	series  string
	axis    string
	workers int
	runs    []*scaling.Observation
	summary *scaling.Summary
	made    []*scaling.Observation // runs that have the measure
	values  []float64              // values of these runs; +Inf: missed target
	nodes   [][]string             // nodes of each of these runs; nil if unknown
}

// Runs compares the runs in b with those in a by one measure.
func Runs(a, b []scaling.Observation, f measure.Measure, o Options) (*Comparison, error) {
	o.Confidence = cmp.Or(o.Confidence, 0.95)
	if both := common(a, b); both > 0 {
		return nil, fmt.Errorf("%s in both sets; choose sets that do not overlap", number.Count(both, "run"))
	}
	// Fingerprints are compared later, point by point.
	pooled := scaling.Options{Mix: true, Measure: f}
	curvesA, err := scaling.Unbased(a, pooled)
	if err != nil {
		return nil, err
	}
	curvesB, err := scaling.Unbased(b, pooled)
	if err != nil {
		return nil, err
	}
	apart, named, words := differ(curvesA, curvesB)
	r := newComparison(a, b, words)
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
	about := nodes{nodesMatter(slices.Concat(placesA, placesB)...), otherMachines(a, b)}
	pairs, onlyA, onlyB := match(placesA, placesB)
	r.OnlyA, r.OnlyB = texts(onlyA), texts(onlyB)
	together := 0 // number of points that are tested together
	for _, p := range pairs {
		if len(p[0].values) > 0 && len(p[1].values) > 0 {
			together++
		}
	}
	for _, p := range pairs {
		point, err := judge(p[0], p[1], f, o, together, about)
		if err != nil {
			return nil, err
		}
		if programs != "" {
			point.Verdict, point.Why, point.Ratio, point.Loss, point.P = Insufficient, programs, nil, nil, nil
		}
		if named { // name the point by its series in b
			point.Series = p[1].series
		}
		r.Pairs = append(r.Pairs, point)
	}
	if len(r.Pairs) == 0 {
		return nil, fmt.Errorf("%w: A has %s; B has %s", errNothingInCommon, few(r.OnlyA), few(r.OnlyB))
	}
	holm(r.Pairs, 1-o.Confidence)
	return r, nil
}

// common counts the runs that are in both sets.
func common(a, b []scaling.Observation) (both int) {
	in := map[string]bool{}
	for _, v := range a {
		in[v.Run] = true
	}
	for _, v := range b {
		if in[v.Run] {
			both++
		}
	}
	return both
}

// newComparison returns a Comparison without points. parameters lists the requested parameters that
// distinguish the sets.
func newComparison(a, b []scaling.Observation, parameters []string) *Comparison {
	ground := groundDiffers(a, b)
	r := &Comparison{Differ: append(parameters, ground...), OtherDays: whenUnknown(a, b)}
	if r.OtherDays != "" {
		return r
	}
	if r.OtherDays = otherDays(a, b); r.OtherDays != "" {
		r.Again = again(a, b, len(parameters) > 0, len(ground) > 0)
	}
	return r
}

// match pairs the points of two sets, in the order of a. It also returns the points that are in
// only one set.
func match(a, b []place) (pairs [][2]place, onlyA, onlyB []place) {
	for _, p := range a {
		found := len(pairs)
		for _, q := range b {
			if q.key == p.key {
				pairs = append(pairs, [2]place{p, q})
			}
		}
		if len(pairs) == found {
			onlyA = append(onlyA, p)
		}
	}
	for _, q := range b {
		if !slices.ContainsFunc(a, func(p place) bool { return q.key == p.key }) {
			onlyB = append(onlyB, q)
		}
	}
	return pairs, onlyA, onlyB
}

func texts(list []place) (text []string) {
	for _, p := range list {
		text = append(text, p.String())
	}
	return text
}

// origin returns the series and the points of the place's runs.
func (p place) origin() Origin {
	o := Origin{Series: p.series}
	for _, r := range p.runs {
		if !slices.Contains(o.Points, r.Point) {
			o.Points = append(o.Points, r.Point)
		}
	}
	return o
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

// differ returns the parameters that distinguish the sets, as names and as text: those with a
// single value in one set, which does not occur in the other. The text omits those that are empty in
// one set and missing in the other. named is true if b has several
// values, so that its points must be named.
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
			if slices.ContainsFunc(slices.Concat(x, y), func(v string) bool { return v != "" && v != unset }) {
				words = append(words, fmt.Sprintf("%s: %s, %s", k, strings.Join(x, " or "), strings.Join(y, " or ")))
			}
		}
	}
	return apart, named, words
}

const unset = "unset"

// value returns a parameter of a curve as text; unset if missing.
func value(c scaling.Curve, key string) string {
	if key == "framework" {
		return c.Framework
	}
	v, ok := c.Parameters[key]
	if !ok {
		return unset
	}
	return fmt.Sprint(v)
}

// groundDiffers returns the fingerprint fields that are equal within each set, but differ between
// the sets.
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

// places returns the points of a set, identified by all parameters except those in
// apart.
func places(list []scaling.Curve, runs []scaling.Observation, apart map[string]bool, f measure.Measure) []place {
	of := scaling.ByRun(runs)
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
