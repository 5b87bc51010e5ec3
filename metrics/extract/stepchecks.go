package extract

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// consumedOf records the samples of all steps up to the current one.
func (s *stepLog) consumedOf(ln int, text string) {
	x, ok := parsed(text)
	if !ok { // some programs write 1.258B
		return
	}
	v := Value{x, ln}
	if steps := s.last - s.before; s.lines > 1 && steps > 0 && s.consumed.Line > 0 {
		s.growth = append(s.growth, (v.Number-s.consumed.Number)/float64(steps))
	}
	s.consumed = v
}

// checkBatch compares the global batch with the growth of the consumed samples.
func (s *stepLog) checkBatch() {
	if s.skipped > 0 && 10*s.skipped > s.counted {
		s.l.note("%d of %s have iterations that were skipped or had no finite gradient: such steps take less time, and train nothing", s.skipped, number.Count(s.counted, "line"))
	}
	if s.batch.Line == 0 || len(s.growth) < 3 {
		return
	}
	slices.Sort(s.growth)
	if low, high := s.growth[len(s.growth)/4], s.growth[len(s.growth)-1-len(s.growth)/4]; low == high && low > 0 && low != s.batch.Number {
		s.wrongBatch = fmt.Sprintf("the consumed samples grow by %g a step, and the global batch is stated as %g", low, s.batch.Number)
	}
}

// clockSpan is the smallest time in seconds between the first line and the last from which a step
// time is taken. Times of day may be whole seconds.
const clockSpan = 20

// betweenLines returns the time between the first line and the last in seconds, the number of
// steps, and the median time of a step by the times of day. steps is 0 if the log has no times of
// day, or only few lines.
func (s *stepLog) betweenLines() (span, steps, median float64) {
	c := s.clock
	if c.why != "" || c.began == 0 || len(c.alike) < 4 {
		return 0, 0, 0
	}
	return c.latest - c.alikeFrom, float64(c.last - c.alikeStep), must(reduceBy("median", c.alike))
}

// idle is the largest ratio of the time between lines to the stated step times that time between
// steps, such as for loading data, may explain.
const idle = 3

// checkTimes compares the stated step times with the times of day. A step cannot take longer than
// the time between two lines, but time may pass between steps.
func (s *stepLog) checkTimes() {
	span, steps, median := s.betweenLines()
	stated := s.median(stepSeconds)
	switch {
	case steps == 0 || !(stated > 0):
	case s.uniform():
		s.l.note("the stated step times change and the times of day between lines do not: these are not the times of steps")
	case stated*steps > 1.1*span+2:
		s.wrongTime = fmt.Sprintf("the log states %.4g s for a step, and its times of day give %.4g s: a step cannot take longer than the time between lines, so one of the two is wrong", stated, span/steps)
	case span > clockSpan && median > idle*stated && median > 1:
		s.wrongTime = fmt.Sprintf("by the times of day a step takes %.4g s, and the stated step time is %.4g s", median, stated)
	case span > clockSpan && median > 1.5*stated && median > 1:
		s.l.note("by the times of day a step takes %.4g s, and the stated step time is %.4g s: rates leave out the time between steps", median, stated)
	}
}

// uniform reports whether all times between lines are equal although the stated step times change.
func (s *stepLog) uniform() bool {
	return slices.Max(s.clock.each)-slices.Min(s.clock.each) < 1e-3*slices.Max(s.clock.each) && s.slowest > 1.5*s.fastest
}

// timed renames a figure that follows from the stated step times if the times of day contradict
// them.
func (s *stepLog) timed(f metrics.Figure) metrics.Figure {
	if s.wrongTime != "" {
		return s.l.contradicted(f, s.wrongTime)
	}
	return f
}
