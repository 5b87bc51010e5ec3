package query

import (
	"cmp"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// A Brief has the facts about an attempt, or about a planned run, that Progress and NewGrid use. It
// is much smaller than a launcher.State, because a study may have 100,000 runs.
type Brief struct {
	at             *briefPoint
	repeat, number int32 // number of the attempt; 0 for a planned run
	run            string
	status         metrics.Status
	detail         string  // progress, or why the run failed or waits
	began          float64 // when its first program started, in seconds since the epoch; 0 if unknown
	took           float64 // seconds until its end; negative if unknown
	unjudged       bool    // its folder cannot be read
}

// A briefPoint has the facts about a point that its Briefs share.
type briefPoint struct {
	pointID
	framework string
	workers   int
	whole     *study.Point // of any repeat; nil beyond mostRows points, which have no rows of their own
}

// Briefs makes Brief values; those of one point share a briefPoint.
type Briefs map[pointID]*briefPoint

// BriefsOf returns the Briefs of attempts and planned runs.
func BriefsOf(states []launcher.State, planned []launcher.Unbegun) (list []Brief) {
	b := Briefs{}
	for i := range states {
		list = append(list, b.Attempt(&states[i]))
	}
	for i := range planned {
		list = append(list, b.Planned(&planned[i].Point))
	}
	return list
}

// Planned returns the Brief of a planned run.
func (b Briefs) Planned(p *study.Point) Brief {
	return Brief{at: b.point(p), repeat: int32(p.Repeat), status: metrics.Planned, took: -1}
}

// Attempt returns the Brief of an attempt.
func (b Briefs) Attempt(s *launcher.State) Brief {
	brief := Brief{at: b.point(&s.Point), repeat: int32(s.Point.Repeat), number: int32(s.Number), run: strings.Clone(s.Run.Name()),
		status: s.Status, began: s.Traces.StartUnix, took: -1, unjudged: s.Err != nil}
	reached := ""
	if !s.Status.Terminal() {
		reached = Reached(*s)
	}
	brief.detail = cmp.Or(detailOf(s), reached, reasonOf(s))
	if e := s.Traces.Exit; e != nil && e.StartUnix > 0 && e.EndUnix >= e.StartUnix {
		brief.took = e.EndUnix - e.StartUnix
	}
	return brief
}

func (b Briefs) point(p *study.Point) *briefPoint {
	id := pointID{p.Study, p.ID}
	one := b[id]
	if one == nil {
		one = &briefPoint{pointID: id, framework: p.Framework, workers: p.Workers}
		if len(b) <= mostRows {
			one.whole = new(*p)
		}
		b[id] = one
	}
	return one
}

// Run returns the name of the attempt; "" of a planned run.
func (b Brief) Run() string { return b.run }

// NotBegun returns the planned runs without an attempt.
func NotBegun(planned, attempts []Brief) (list []Brief) {
	begun := map[briefRun]bool{}
	for _, b := range attempts {
		begun[b.of()] = true
	}
	for _, b := range planned {
		if !begun[b.of()] {
			list = append(list, b)
		}
	}
	return list
}

// A briefRun identifies the run of a Brief.
type briefRun struct {
	pointID
	repeat int32
}

func (b Brief) of() briefRun { return briefRun{b.at.pointID, b.repeat} }

// lastAttempts returns the last attempt of each run, and the planned runs, in the order given.
func lastAttempts(list []Brief) []Brief {
	several := false
	for _, b := range list {
		several = several || b.number > 1
	}
	if !several {
		return list
	}
	last := map[briefRun]int32{}
	for _, b := range list {
		last[b.of()] = max(last[b.of()], b.number)
	}
	var kept []Brief
	for _, b := range list {
		if b.number == last[b.of()] {
			kept = append(kept, b)
		}
	}
	return kept
}
