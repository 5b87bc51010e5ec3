package loadtest

import (
	"fmt"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
)

// options returns how to put the service under a load. why is set if the load would have no request.
func (s *Service) options(w study.Serve, l Load, stream uint64) (o Options, why string) {
	// The shift keeps the streams of consecutive seeds apart: repeats have consecutive seeds.
	seed := s.Seed<<20 + stream
	o = Options{InFlight: l.Threads, Requests: w.Requests, Ramp: time.Duration(w.Ramp), MaxInFlight: w.MaxConcurrency, Timeout: time.Duration(w.Timeout),
		Cancel: w.Cancel, CancelAfter: time.Duration(w.CancelAfter), Seed: seed,
		Sleep: s.Sleep, InProcess: s.InProcess, Within: each(w.Limit), SharedPrompts: w.Prompts != "" && w.Prompts.Shares()}
	o.Window = time.Duration(w.Duration) / Windows
	turns, lead := max(s.Turns, 1), time.Duration(w.Ramp+w.Warmup)
	if l.Threads == 0 { // after the longest session, as many sessions end as begin
		lead += time.Duration((turns - 1) * float64(w.Prompts.Of().Think))
	}
	o.lead(lead, time.Duration(w.Duration))
	if l.Threads > 0 {
		return o, ""
	}
	o.Schedule = Arrivals{Process: w.Arrivals, Rate: l.Rate / turns, Span: o.Duration, Ramp: o.Ramp, Seed: seed, Trace: s.Trace}.Times()
	if w.Requests > 0 {
		o.Schedule = first(o.Schedule, o.Lead, int(float64(w.Requests)/turns+0.5))
		if n := len(o.Schedule); n > 0 {
			o.Window = max((o.Schedule[n-1]-o.Lead)/Windows+1, time.Millisecond) // the last request is in the last window
			o.lead(lead, o.Schedule[n-1]-o.Lead)
		}
	}
	if len(o.Schedule) == 0 {
		return o, fmt.Sprintf("no request falls within %v", w.Duration)
	}
	return o, ""
}

// lead sets the part that is not measured, rounded up to windows, and the duration.
func (o *Options) lead(lead, measured time.Duration) {
	o.Lead = (lead + o.Window - 1) / o.Window * o.Window
	o.Duration = o.Lead + measured
}

// first returns the part of a schedule with at most n requests after the lead.
func first(schedule []time.Duration, lead time.Duration, n int) []time.Duration {
	for i, at := range schedule {
		if at >= lead {
			return schedule[:min(i+max(n, 1), len(schedule))]
		}
	}
	return schedule
}
