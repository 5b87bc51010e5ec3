package study

import (
	"fmt"
	"time"
)

const (
	// UntilDecided is the value of study.repeats with which a study is measured until its
	// question has an answer.
	UntilDecided = "until-decided"
	// MaxRepeats is the default of the maximum number of runs per point of such a study.
	MaxRepeats = 12
	// timeLayout is the layout of study.stop_by, in local time.
	timeLayout = "2006-01-02T15:04"
)

// repeats is the number of runs of each point; 0: until decided.
type repeats int

// UnmarshalTOML reads the value of study.repeats: a number, or the string UntilDecided.
func (r *repeats) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		if v < 1 || v > 1000 {
			return fmt.Errorf("want 1 to 1000, got %d", v)
		}
		*r = repeats(v)
		return nil
	case string:
		if v == UntilDecided {
			*r = 0
			return nil
		}
	}
	return fmt.Errorf("want a number from 1 to 1000 or %q, got %v", UntilDecided, v)
}

// until sets the fields of s that study.repeats = "until-decided" and its limits
// determine.
func (d *decoder) until(s *Study, head *header) {
	s.UntilDecided = head.Repeats == 0
	if s.Repeats = int(head.Repeats); s.UntilDecided {
		s.Repeats = head.MaxRepeats
	}
	if head.MaxRepeats < 2 || head.MaxRepeats > 1000 {
		d.rule("study.max_repeats", fmt.Sprintf("want 2 to 1000, got %d", head.MaxRepeats))
	}
	if s.MaxNodeHours = head.MaxNodeHours; !(s.MaxNodeHours >= 0) {
		d.rule("study.max_node_hours", fmt.Sprintf("want more than 0, got %g", s.MaxNodeHours))
	}
	if head.StopBy == "" {
		return
	}
	at, err := time.ParseInLocation(timeLayout, head.StopBy, time.Local)
	if err != nil {
		d.rule("study.stop_by", fmt.Sprintf("%q is no local time like %q", head.StopBy, "2026-12-24T18:00"))
	}
	s.StopBy = at
}
