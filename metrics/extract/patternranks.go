package extract

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// sameValue is how far, as a factor, the copies of one value may lie apart: ranks in step
// time the same steps by their own clocks.
const sameValue = 1.05

// copies refuses values of several ranks that are not one value: a rate that each rank
// measures of itself is a part of the run's. Rates of all workers that ranks print with
// their own digits are the run's only if the study says so.
func (l *log) copies(c *compiled, bySource map[string][]match) error {
	sources := slices.Sorted(maps.Keys(bySource))
	low, high, at, to := math.Inf(1), math.Inf(-1), "", ""
	for _, s := range sources {
		x, err := reduceBy(c.Reduce, numbers(matchValues(bySource[s])))
		if err != nil {
			return err
		}
		if x < low {
			low, at = x, s
		}
		if x > high {
			high, to = x, s
		}
	}
	rate := strings.HasSuffix(c.unit.base, "/s")
	same := high <= low*sameValue || low < 0 && high-low <= (sameValue-1)*math.Abs(low)
	if c.unit.base == "" && high-low <= 0.02 { // shares of 1
		same = true
	}
	switch {
	case low == high, same && (!rate || c.ofRun):
		return nil
	case rate && same:
		return fmt.Errorf("%s: ranks print different values of %s (%g on rank %s, %g on rank %s), so none is the run's: write of = \"rank\" to add them up, or of = \"run\" if each is of all workers",
			l.o.File, c.Name, low, at, high, to)
	case rate:
		return fmt.Errorf("%s: ranks print different values of %s (%g on rank %s, %g on rank %s), so none is the run's: write of = \"rank\" to add them up",
			l.o.File, c.Name, low, at, high, to)
	}
	return fmt.Errorf("%s: ranks print different values of %s (%g on rank %s, %g on rank %s), so none is the run's: log it on one rank, or let the pattern match that rank's lines only",
		l.o.File, c.Name, low, at, high, to)
}

// fewSettled is how many values tell the start of a log from the rest.
const fewSettled = 6

// settled notes a median that the start of the log pulls down: a progress bar counts the
// first steps, in which programs compile, for a long time.
func (l *log) settled(c *compiled, all []match, scale float64, invert bool) {
	if c.Per != "step" || c.Reduce != "median" && c.Reduce != "mean" || len(all) < fewSettled || !strings.HasSuffix(c.unit.base, "/s") && c.unit.base != "s" {
		return
	}
	values := matchValues(all)
	whole, err := reduceValues(c.Reduce, values, invert)
	if err != nil {
		return
	}
	quarter := len(values) / 4
	later, err := reduceValues(c.Reduce, values[len(values)-max(3, quarter):], invert)
	if err != nil {
		return
	}
	first := values[:len(values)-len(values)/2]
	// The start differs from the rest in one direction: noise does not.
	rises, falls := 0, 0
	for i := 1; i < len(first); i++ {
		if first[i].Number > first[i-1].Number {
			rises++
		} else if first[i].Number < first[i-1].Number {
			falls++
		}
	}
	if ratio := later / whole; (ratio > 1.03 || ratio < 1/1.03) && finite(ratio) && min(rises, falls) == 0 && max(rises, falls) >= 3 {
		l.note("%s has not settled in the first half of its %d lines: its last ones have %.4g, their %s is %.4g. Write reduce = \"last\", or match lines after the start", c.Name, len(values), later*scale, c.Reduce, whole*scale)
	}
}
