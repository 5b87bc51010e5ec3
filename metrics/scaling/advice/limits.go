package advice

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// Limits are the costs that limit scaling, as shares of the step time at the largest measured
// worker count. They are medians over its runs. Shares are fractions, and null if they were not
// measured; they need not add up to 1.
type Limits struct {
	Workers       int      `json:"workers"`       // the worker count at which they were measured; 0: none
	Communication *float64 `json:"communication"` // share of the mean rank's step time, including the wait for slower peers
	DataWait      *float64 `json:"data_wait"`     // share of the mean rank's step time
	Skew          *float64 `json:"skew"`          // average rank's wait for the slowest, as a share of the step time
	// ExtraSamples are the samples that the target takes at this worker count's global batch
	// beyond those at the base's, as a fraction of the base's.
	ExtraSamples *float64 `json:"extra_samples"`
	// Largest names the largest cost: "communication", "input", "skew", "batch". It is "" if
	// nothing was measured or nothing costs 2 % or more.
	Largest string `json:"largest"`

	sentence string
	tooLarge bool // the global batch is too large to reach the target
}

// Text names the largest limit in a few words: "communication, 45.1 % at 16 workers". It is "" if
// nothing was measured or nothing costs 2 % or more.
func (l *Limits) Text() string {
	share := map[string]*float64{"communication": l.Communication, "input": l.DataWait, "skew": l.Skew, "batch": l.ExtraSamples}[l.Largest]
	at := " at " + number.Count(l.Workers, "worker")
	switch {
	case l.Largest == "":
		return ""
	case l.tooLarge:
		return "batch, too large" + at
	case l.Largest == "batch":
		return "batch, " + percent(*share) + " more samples" + at
	}
	return l.Largest + ", " + percent(*share) + at
}

// small is the share below which a cost is not named as a limit.
const small = 0.02

// limits sets what limits scaling. It sets nothing if the user asked about another measure,
// because the parts of a step do not explain it.
func (s *study) limits() {
	if s.o.Figure != nil {
		return
	}
	i := len(s.curve.Points) - 1
	for i >= 0 && rate(&s.curve.Points[i]) == nil {
		i--
	}
	if i < 0 {
		return
	}
	n := s.curve.Points[i].Workers
	l := &s.Limits
	l.Workers = n
	share := func(name string) *float64 {
		if m := s.curve.Points[i].Of(name).Median; m != nil {
			return &m.Value
		}
		return nil
	}
	l.Communication, l.DataWait, l.Skew = share(measure.Communication), share(measure.DataWait), share(measure.Skew)
	if s.conv != nil && s.curve.Base != nil && s.batchAt(n) > s.batchAt(s.curve.Base.Workers) {
		base, err := s.conv.Predict(s.batchAt(s.curve.Base.Workers))
		here, err2 := s.conv.Predict(s.batchAt(n))
		if err == nil && err2 == nil {
			l.ExtraSamples = new(here.Value/base.Value - 1)
		}
	}
	l.say(s)
}

// unmeasuredParts says that the parts of the step time are unknown. It tells authors of programs how to measure them.
func (s *study) unmeasuredParts() string {
	if s.imported() {
		return "what limits it is unknown: the runs do not state the parts of the step time."
	}
	return "what limits it is unknown: the parts of the step time were not measured (in Python: scalebench.part(\"communication\") and \"data_wait\")."
}

// say sets the sentence on the limits.
func (l *Limits) say(s *study) {
	type part struct {
		name, text string
		share      *float64
	}
	of := []part{
		{"communication", "communication takes %s of the step time", l.Communication},
		{"input", "waiting for input takes %s of the step time", l.DataWait},
		{"skew", "the average rank waits %s of the step time for the slowest", l.Skew},
		{"batch", "the larger global batch takes %s more samples to the target", l.ExtraSamples},
	}
	var known []part
	for _, p := range of {
		if p.share != nil {
			known = append(known, p)
		}
	}
	at := "At " + number.Count(l.Workers, "worker") + ", the most measured, "
	if b := s.batchAt(l.Workers); b >= s.lost && s.lost > 0 && s.timeless == "" { // otherwise runs miss the target at every batch, and the batch is not the cause
		l.Largest, l.tooLarge = "batch", true
		l.sentence = at + "the global batch is too large for this recipe: " + s.lostRuns + "."
		return
	}
	if len(known) == 0 {
		l.sentence = at + s.unmeasuredParts()
		if b := s.curve.Base; b != nil && b.Workers == l.Workers { // the base itself, whose efficiency is 100 % by definition
			l.sentence = "How it scales is not known: no other worker count was measured."
			return
		}
		if p := s.point(l.Workers); p != nil && p.Of(measure.Throughput).Efficiency() != nil {
			l.sentence = fmt.Sprintf("%sefficiency is %s; %s", at, percent(p.Of(measure.Throughput).Efficiency().Value), s.unmeasuredParts())
		}
		return
	}
	slices.SortStableFunc(known, func(a, b part) int { return cmp.Compare(*b.share, *a.share) })
	if *known[0].share < small {
		l.sentence = at + "no measured part of the step time costs " + percent(small) + " or more."
		return
	}
	l.Largest = known[0].name
	l.sentence = at + fmt.Sprintf(known[0].text, percent(*known[0].share))
	if len(known) > 1 && *known[1].share >= small {
		l.sentence += " and " + fmt.Sprintf(known[1].text, percent(*known[1].share))
	}
	l.sentence += "."
}
