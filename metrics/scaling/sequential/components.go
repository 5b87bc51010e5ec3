package sequential

import (
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Component is a source of scatter that several runs share: the nodes on which they ran, the job, or
// the day (Kalibera & Jones, Rigorous Benchmarking in Reasonable Time, 2013).
type Component struct {
	Name   string  // "nodes", "jobs" or "days"
	Groups int     // number of different nodes, jobs or days
	SD     float64 // relative standard deviation between them, without that of single runs; 0 if none is seen
	P      float64 // p-value of the F-test that they do not differ
}

// sources has, for each component, the group to which a run belongs; "" if unknown.
var sources = []struct {
	name string
	of   func(o *scaling.Observation) string
}{
	{"nodes", func(o *scaling.Observation) string {
		hosts := slices.Clone(o.Hosts)
		slices.Sort(hosts)
		return strings.Join(hosts, ",")
	}},
	{"jobs", func(o *scaling.Observation) string { return o.Job }},
	{"days", func(o *scaling.Observation) string {
		if o.BeganUnix < 1e9 { // unknown, or only a position in an order
			return ""
		}
		return time.Unix(int64(o.BeganUnix), 0).UTC().Format(time.DateOnly)
	}},
}

// Components divides the scatter of the throughput of runs within their points into a part between
// nodes, jobs or days and a part within them. It omits those with a single value, and those
// that no two runs of a point share.
func Components(obs []scaling.Observation) (list []Component) {
	for _, source := range sources {
		if c, ok := component(obs, source.of); ok {
			c.Name = source.name
			list = append(list, c)
		}
	}
	return list
}

// component computes the variance between groups of runs by analysis of variance with random
// effects, of each point by itself: the sums of squares and the degrees of freedom of all points
// are added. ok is false if the runs do not allow it.
func component(obs []scaling.Observation, group func(*scaling.Observation) string) (c Component, ok bool) {
	points, groups := map[string]map[string][]float64{}, map[string]bool{} // logarithms, by point and group
	for i := range obs {
		x, g, id := obs[i].Known(measure.Throughput), group(&obs[i]), obs[i].Point
		if x == nil || *x <= 0 || g == "" {
			continue
		}
		if points[id] == nil {
			points[id] = map[string][]float64{}
		}
		points[id][g] = append(points[id][g], math.Log(*x))
		groups[g] = true
	}
	var inside, outside, freeInside, freeOutside, size float64
	for _, of := range points {
		var all, middles, weights []float64
		unequal := 0.0
		for _, logs := range of {
			middle, variance := stat.MeanVariance(logs, nil)
			n := float64(len(logs))
			if n > 1 {
				inside += variance * (n - 1)
			}
			all, middles, weights = append(all, logs...), append(middles, middle), append(weights, n)
			freeInside += n - 1
			unequal += n * n
		}
		if len(of) < 2 {
			continue
		}
		mean := stat.Mean(all, nil)
		for i, middle := range middles {
			outside += weights[i] * (middle - mean) * (middle - mean)
		}
		freeOutside += float64(len(of) - 1)
		size += float64(len(all)) - unequal/float64(len(all))
	}
	if freeInside < 1 || freeOutside < 1 {
		return c, false
	}
	inside, outside, size = inside/freeInside, outside/freeOutside, size/freeOutside // size: runs of a group, on average
	c.Groups, c.P = len(groups), 1
	switch {
	case inside > 0:
		c.P = 1 - distuv.F{D1: freeOutside, D2: freeInside}.CDF(outside/inside)
	case outside > 0:
		c.P = 0
	}
	c.SD = math.Sqrt(max(0, outside-inside) / size)
	return c, true
}
