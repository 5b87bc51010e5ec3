package extract

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
)

// stepClock computes the time since the start of a training at which a loss was logged. The start
// is the beginning of the first step: the time of day of its line minus the time of the steps up
// to it, at the median step time of later lines. In a log without times of day, it is computed
// from step times alone.
type stepClock struct {
	seen        bool      // a step was seen
	first, last int       // step numbers of the first and the latest lines
	began       float64   // time of day of the first line in seconds; 0: unknown
	latest      float64   // time of day of the latest line
	each        []float64 // seconds per step between lines
	spacing     int       // steps between the first two lines
	// alike has the seconds per step between lines of steps with the same batch and devices,
	// without the first interval, which may include compilation. They begin at the line of step
	// alikeStep, at the time of day alikeFrom; 0: at the next line.
	alike     []float64
	alikeStep int
	alikeFrom float64
	why       string // why losses cannot be timed; "" if they can
}

var timeOfDay = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?`)

// time returns a line's time of day in seconds: the time that the program printed, else the log
// collector's, else 0.
func (ln line) time() float64 {
	text := cmp.Or(timeOfDay.FindString(ln.text), timeOfDay.FindString(ln.stamp))
	t, err := time.Parse("2006-01-02 15:04:05.999999", strings.NewReplacer("T", " ", ",", ".").Replace(text))
	if err != nil {
		return 0
	}
	return metrics.Unix(t)
}

// step records the line of a step.
func (c *stepClock) step(n int, at float64) {
	switch {
	case !c.seen:
		c.seen, c.first, c.began = true, n, at
	case n <= c.last:
		c.why = "it goes back to a checkpoint"
	case at < c.latest, (at == 0) != (c.latest == 0):
		c.why = "its times of day go back, or some lines have none"
	default:
		c.each = append(c.each, (at-c.latest)/float64(n-c.last))
	}
	switch {
	case !c.seen || n == c.first || n <= c.last:
	case c.alikeFrom == 0:
		c.alikeStep, c.alikeFrom = n, at
	default:
		c.alike = append(c.alike, (at-c.latest)/float64(n-c.last))
	}
	if c.spacing == 0 {
		c.spacing = n - c.first
	}
	c.last, c.latest = n, at
}

// seconds returns the function of that computes the time since the start of the training from a
// step number and its line's time of day. median is the stated step time; 0: unknown. how
// describes the computation. If none exists, why says why.
func (c *stepClock) seconds(median float64) (of func(step, at float64) float64, how, why string) {
	switch {
	case c.why != "":
		return nil, "", c.why
	case c.spacing == 0:
		return nil, "", "it has the line of one step only, and the time of a step needs two"
	case c.first > c.spacing:
		return nil, "", fmt.Sprintf("it begins at step %d", c.first)
	case c.began == 0 && median == 0:
		return nil, "", "it has neither times of day nor step times"
	case c.began == 0:
		before := 0.0
		if c.first == 0 {
			before = 1 // steps count from 0
		}
		return func(step, _ float64) float64 { return (step + before) * median },
			"the step times the median step time, without evaluations and pauses, since the log has no times of day", ""
	}
	start := c.began - float64(c.first)*must(reduceBy("median", c.each))
	return func(_, at float64) float64 { return at - start },
		"the times of day, from the first line minus its steps at the median time of later steps, without compilation", ""
}
