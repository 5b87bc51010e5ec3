package compare

import (
	"math"
	"slices"
)

const (
	// alarmAt is by how many standard errors the newest runs have to be worse.
	alarmAt = 3.5
	// alarmBefore are the runs, at least, that they are held against.
	alarmBefore = 12
)

// newest are how many of the newest runs are looked at, and how many times as many
// there have to be before them.
var newest = []int{2, 3, 4, 5, 6, 8, 10}

const timesBefore = 3

// Alarm says that the newest runs of a point are worse than those before them on
// the same, since the last change.
type Alarm struct {
	Since  Sample // the first of them
	Runs   int
	Before int     // runs that they are held against
	Ratio  float64 // of the medians, newest over before; NaN where that is not positive
	Errors float64 // standard errors between the means
}

// Newest looks at the newest runs of a point, in the stretch that the last run of
// all is in: a change point needs more runs behind it than somebody wants to wait
// for. judged is false where there are too few runs. Of worse, 1 says that more is
// worse, -1 that less is, 0 looks both ways.
//
// It is a sequential test: the generalised likelihood ratio over the run from which
// the mean may be another one (Lai, J. R. Stat. Soc. B 57, 1995), of the last 2 to
// 10 runs. What is chance is told by the means of as many neighbouring runs before
// them: where runs are like those just before, or go with a season, these scatter
// as well. The limit is found by simulation (TestTruthOfAlarms).
func Newest(segments []Segment, worse int) (alarm *Alarm, judged bool) {
	if len(segments) == 0 {
		return nil, false
	}
	last := slices.MaxFunc(segments, func(a, b Segment) int {
		x, y := a.Samples[len(a.Samples)-1], b.Samples[len(b.Samples)-1]
		switch {
		case x.Unix < y.Unix || x.Unix == y.Unix && x.Run < y.Run:
			return -1
		case x == y:
			return 0
		}
		return 1
	})
	values := make([]float64, len(last.Samples))
	for i, s := range last.Samples {
		values[i] = s.Value
	}
	judged = len(values) >= alarmBefore+newest[0]
	runs, errors := newestErrors(values, worse)
	if errors < alarmAt {
		return nil, judged
	}
	at := len(values) - runs
	_, before, _ := quartiles(values[:at])
	_, now, _ := quartiles(values[at:])
	alarm = &Alarm{Since: last.Samples[at], Runs: runs, Before: at, Ratio: math.NaN(), Errors: errors}
	if before > 0 {
		alarm.Ratio = now / before
	}
	return alarm, true
}

// newestErrors is how many of the newest values are the furthest from those before
// them, in the direction, and by how many standard errors; 0 where none are.
func newestErrors(values []float64, worse int) (runs int, errors float64) {
	n := len(values)
	for _, m := range newest {
		before := values[:max(0, n-m)]
		if len(before) < max(alarmBefore, timesBefore*m) {
			break
		}
		center := mean(before)
		distance, first := mean(values[n-m:])-center, values[n-m]-center
		if worse < 0 || worse == 0 && distance < 0 {
			distance, first = -distance, -first
		}
		if first <= 0 { // worse from a later run on
			continue
		}
		z := distance / math.Sqrt(meanVariance(before, center, m)*(1+float64(m)/float64(len(before))))
		if math.IsInf(z, 1) && m < 3 {
			continue // of values that do not scatter 2 others say little
		}
		if z > errors {
			runs, errors = m, z
		}
	}
	return runs, errors
}

// meanVariance is the variance of the mean of m neighbouring values: as it is seen,
// and not less than what independent values would have.
func meanVariance(values []float64, center float64, m int) float64 {
	n := len(values)
	var single, blocks, sum float64
	for i, v := range values {
		single += (v - center) * (v - center)
		sum += v
		if i >= m {
			sum -= values[i-m]
		}
		if i >= m-1 {
			d := sum/float64(m) - center
			blocks += d * d
		}
	}
	single /= float64((n - 1) * m)
	// The center is of the same values, and so nearer to them than the truth.
	blocks = blocks / float64(n-m+1) * float64(n) / float64(n-m)
	return max(single, blocks)
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
