package loadtest

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// A replica differs from the others if chance would produce the difference in at most one load in a
	// hundred, and if its latency differs by more than apart, or its error share by more than faulty.
	byChance = 0.01
	faulty   = 0.01
)

// Slowest returns the replica with the largest mean latency, and the ratio of its mean to the median of the
// others' means. It compares means because replicas get requests in turn: each replica's mean determines its part
// of a closed loop's rate, and a replica that is slow only now and then shows in its mean but not in its
// median.
//
// sure reports whether the difference is more than noise. In each window the logarithm of the replica's mean is
// compared with the average of the others', which cancels causes that slow all of them. A t test decides whether
// the mean difference is above 0, with the effective number of windows as its sample size, and at level
// byChance divided by the number of replicas, since any of them could have been the slowest.
func (v *Verdict) Slowest() (i int, times float64, sure, ok bool) {
	var all []float64
	for k := range v.Total.Replicas {
		mean, _ := v.Total.Replicas[k].Mean()
		if mean == 0 {
			return 0, 0, false, false // a replica without an answer is not fast
		}
		if all = append(all, mean); mean > all[i] {
			i = k
		}
	}
	if len(all) < 2 {
		return 0, 0, false, false
	}
	others := append(append([]float64{}, all[:i]...), all[i+1:]...)
	sure = v.differs(i, math.Log1p(apart), func(w *Window) (float64, bool) {
		mean, _ := w.Mean()
		return math.Log(mean), mean > 0
	})
	return i, all[i] / median(others), sure, true
}

// Worst returns the replica with the largest share of errors, that share, the share of the others taken
// together, and whether the difference is more than noise by the test that Slowest uses.
func (v *Verdict) Worst() (i int, share, others float64, sure bool) {
	list := v.Total.Replicas
	for k := range list {
		if list[k].Errors() > list[i].Errors() {
			i = k
		}
	}
	if len(list) < 2 || list[i].Errors() == 0 {
		return 0, 0, 0, false
	}
	var rest Window
	for k := range list {
		if k != i {
			rest.Good, rest.Wrong, rest.Late = rest.Good+list[k].Good, rest.Wrong+list[k].Wrong, rest.Late+list[k].Late
		}
	}
	sure = v.differs(i, faulty, func(w *Window) (float64, bool) { return w.Errors(), w.Requests() > 0 })
	return i, list[i].Errors(), rest.Errors(), sure
}

// differs reports whether a value of replica i's windows exceeds the mean of the other replicas' by more than
// bound, and by more than noise.
func (v *Verdict) differs(i int, bound float64, of func(*Window) (value float64, ok bool)) bool {
	var differences []float64
	n := len(v.Total.Replicas)
	for _, w := range v.windows {
		own, others, seen := 0.0, 0.0, 0
		for k := range w.Replicas {
			value, ok := of(&w.Replicas[k])
			switch {
			case !ok:
			case k == i:
				own = value
				seen++
			default:
				others += value
				seen++
			}
		}
		if seen == n {
			differences = append(differences, own-others/float64(n-1))
		}
	}
	worth := independentWindows(differences)
	if len(differences) < minSteady || worth < independent {
		return false
	}
	off := stat.Mean(differences, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: worth - 1}.Quantile(1 - byChance/float64(n))
	return off > bound && off > t*stat.StdDev(differences, nil)/math.Sqrt(worth)
}
