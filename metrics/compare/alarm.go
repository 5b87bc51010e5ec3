package compare

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// alarmAt is the number of standard errors by which the newest runs must be worse to raise an
	// alarm, if the runs are tested once.
	alarmAt = 3.5
	// alarmBefore is the minimum number of earlier runs.
	alarmBefore = 12
)

// newest lists the group sizes: each test compares that many of the newest runs with all earlier
// ones.
var newest = []int{2, 3, 4, 5, 6, 8, 10}

const timesBefore = 3

// An Alarm reports that the newest runs of a point are worse than the runs before them
// with the same fingerprint, since the last change.
type Alarm struct {
	Since  Sample // first of the newest runs
	Runs   int
	Before int     // number of earlier runs
	Ratio  float64 // ratio of medians, newest over earlier; NaN unless positive
	Errors float64 // standard errors between the means
}

// Newest tests the newest runs of a point, within the segment of the last run. It finds a change
// before enough runs exist for a change point. judged is false if there are too few runs. worse is
// 1 if higher values are worse, -1 if lower values are worse, and 0 to test both directions.
//
// It is a sequential test: the generalised likelihood ratio over the run at which the mean may
// change (Lai, J. R. Stat. Soc. B 57, 1995), for the last 2 to 10 runs. The variation by chance is
// estimated from the means of the same number of neighbouring earlier runs. If runs are correlated
// or periodic, these means scatter more as well. The limit comes from simulation
// (TestTruthOfAlarms). looks is the number of tests while the runs grow in number. The limit
// is such that all of these tests together raise a false alarm no more often than a single one.
func Newest(segments []Segment, worse, looks int) (alarm *Alarm, judged bool) {
	last := latest(segments)
	if last == nil {
		return nil, false
	}
	values := make([]float64, len(last.Samples))
	for i, s := range last.Samples {
		values[i] = s.Value
	}
	judged = len(values) >= alarmBefore+newest[0]
	runs, errors := newestErrors(values, worse)
	if errors < Limit(looks) {
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

// Tested returns the newest runs of a point that Newest may test.
func Tested(segments []Segment) []Sample {
	last := latest(segments)
	if last == nil {
		return nil
	}
	return last.Samples[max(0, len(last.Samples)-newest[len(newest)-1]):]
}

// latest returns the segment of the last run; nil: none.
func latest(segments []Segment) *Segment {
	if len(segments) == 0 {
		return nil
	}
	last := slices.MaxFunc(segments, func(a, b Segment) int {
		x, y := a.Samples[len(a.Samples)-1], b.Samples[len(b.Samples)-1]
		return cmp.Or(cmp.Compare(x.Unix, y.Unix), cmp.Compare(x.Run, y.Run))
	})
	return &last
}

// Limit returns the number of standard errors that an alarm needs if the runs are tested several
// times (looks). The tail probability beyond alarmAt is divided by looks (Bonferroni). It is that
// of Student's t, with the degrees of freedom of the minimum number of earlier runs.
func Limit(looks int) float64 {
	if looks < 2 {
		return alarmAt
	}
	t := distuv.StudentsT{Sigma: 1, Nu: alarmBefore - 1}
	return -t.Quantile(t.CDF(-alarmAt) / float64(looks))
}

// newestErrors returns the group of newest values that differs most from the earlier ones in the
// given direction: its size, and the difference in standard errors. It returns 0 if no group
// differs.
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
		if first <= 0 { // the change starts at a later run
			continue
		}
		z := distance / math.Sqrt(meanVariance(before, center, m)*(1+float64(m)/float64(len(before))))
		if math.IsInf(z, 1) && m < 3 {
			continue // without scatter, two values are too few for a test
		}
		if z > errors {
			runs, errors = m, z
		}
	}
	return runs, errors
}

// meanVariance returns the variance of the mean of m neighbouring values, as observed in values,
// but at least the one that independent values would have.
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
	// Correct for the center, which is estimated from the same values.
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
