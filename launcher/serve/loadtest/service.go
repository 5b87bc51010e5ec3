package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// This file runs the loads that a point lists and searches for the largest rate within the limit. It is
// independent of the protocol and of who started the service.

// A Load is one load that a service is measured under.
type Load struct {
	Batch   int     // samples in a request
	Threads int     // requests in flight of a closed loop; 0 for an open loop
	Rate    float64 // requests/s of an open loop

	probes bool // a probe of the search, which has its own figures
}

// loadsOf returns the loads of a workload in the order in which they are measured: for each batch size the
// closed loops first, since they find the capacity.
func loadsOf(w study.Serve) []Load {
	var list []Load
	for _, batch := range w.Batch {
		for _, n := range slices.Sorted(slices.Values(w.Threads)) {
			list = append(list, Load{Batch: batch, Threads: n})
		}
		for _, rate := range slices.Sorted(slices.Values(w.Rate)) {
			list = append(list, Load{Batch: batch, Rate: rate})
		}
	}
	return list
}

// At returns the coordinates of the load's figures.
func (l Load) At() map[string]any {
	at := map[string]any{measure.Batch: float64(l.Batch)}
	if l.Threads > 0 {
		at[measure.Threads] = float64(l.Threads)
	} else {
		at[measure.Rate] = l.Rate
	}
	return at
}

func (l Load) String() string {
	text := fmt.Sprintf("%d in flight", l.Threads)
	switch {
	case l.Threads > 0:
	case l.probes:
		text = number.Significant(l.Rate) + " requests/s"
	default: // exactly as the study gives it
		text = number.Exact(l.Rate) + " requests/s"
	}
	return text + fmt.Sprintf(", batch %d", l.Batch)
}

// A Service describes the service to measure and the functions that receive the results.
type Service struct {
	// Dial returns a function that connects for requests of batch samples. The first call for a batch size may
	// send warm-up requests.
	Dial func(batch int) (func() (Sender, error), error)
	// Replicas holds the replicas' names, such as "replica 0 on node7", in the order of Chooser.Asked.
	Replicas []string
	// Null starts a server that answers requests of batch samples at once, with answers as long as the
	// service's. nil skips the calibration of the client.
	Null func(ctx context.Context, batch int) (dial func() (Sender, error), end func(), err error)
	Seed uint64 // of the schedules of open loops; each run needs its own
	// Sleep and InProcess are passed on to Options.
	Sleep     func(time.Duration)
	InProcess bool

	// Log opens the file for a load's latencies (see Result.WriteLog). nil writes none.
	Log func(name string) (io.WriteCloser, error)

	Phase  func(text string) error
	Figure func(metrics.Figure) error
	Doubt  func(text string) error

	client map[int]client // by batch
	probes map[Load]bool  // probes whose figures are recorded
}

// Measure puts the service under every load, then searches. It returns an error if it could not measure, or if
// the run has failed (see tally). A load that the service cannot keep up with is a warning and has no figures.
func (s *Service) Measure(ctx context.Context, w study.Serve) error {
	for _, batch := range w.Batch {
		if err := s.Phase(fmt.Sprintf("warming up, batch %d", batch)); err != nil {
			return err
		}
		if _, err := s.Dial(batch); err != nil {
			return err
		}
	}
	if err := s.calibrate(ctx, w.Batch); err != nil {
		return err
	}
	if err := s.Phase("warm"); err != nil {
		return err
	}
	loads := loadsOf(w)
	capacity := map[int]float64{} // by batch
	var all tally
	for i, l := range loads {
		if err := s.Phase(fmt.Sprintf("measuring %v (%d of %d)", l, i+1, len(loads))); err != nil {
			return err
		}
		r, v, err := s.measure(ctx, w, l, capacity[l.Batch], uint64(i))
		if err == nil && r != nil {
			err = all.add(l, r)
		}
		if err != nil {
			return err
		}
		if l.Threads > 0 && v.Why == "" {
			capacity[l.Batch] = max(capacity[l.Batch], v.Total.Rate())
		}
	}
	if err := all.end(); err != nil || w.Limit == "" {
		return err
	}
	for i, batch := range w.Batch {
		if err := s.search(ctx, w, batch, capacity[batch], uint64(len(loads)+i*maxProbes)); err != nil {
			return err
		}
	}
	return nil
}

// run puts the service under a load and judges the result.
func (s *Service) run(ctx context.Context, w study.Serve, l Load, capacity float64, stream uint64) (*Result, Verdict, error) {
	dial, err := s.Dial(l.Batch)
	if err != nil {
		return nil, Verdict{}, err
	}
	o := Options{Dial: dial, InFlight: l.Threads, Duration: time.Duration(w.Duration), Timeout: time.Duration(w.Timeout), Sleep: s.Sleep, InProcess: s.InProcess, Within: each(w.Limit)}
	o.Window = o.Duration / Windows
	if l.Threads == 0 {
		// The shift keeps the streams of consecutive seeds apart: repeats have consecutive seeds.
		if o.Schedule = Poisson(l.Rate, o.Duration, s.Seed<<20+stream); len(o.Schedule) == 0 {
			return nil, Verdict{Why: fmt.Sprintf("no request falls within %v", o.Duration)}, nil
		}
	}
	r, err := Run(ctx, o)
	if err != nil {
		return nil, Verdict{}, fmt.Errorf("%v: %w", l, err)
	}
	v := r.Judge()
	v.Outruns(max(l.Rate, v.Total.Rate()), s.client[l.Batch].rate)
	if l.Threads == 0 {
		v.Beyond(l.Rate, capacity)
	}
	return r, v, nil
}

// shares lists the percentiles that are recorded as figures.
var shares = []struct {
	name string
	of   string // a name of study.Bound
	at   float64
}{
	{measure.LatencyP50, "", 0.5}, {measure.LatencyP95, "", 0.95}, {measure.LatencyP99, "", 0.99},
	{measure.TTFTP50, study.TTFT, 0.5}, {measure.TTFTP95, study.TTFT, 0.95}, {measure.TTFTP99, study.TTFT, 0.99},
	{measure.TTFOP50, study.TTFO, 0.5}, {measure.TTFOP95, study.TTFO, 0.95}, {measure.TTFOP99, study.TTFO, 0.99},
	{measure.TPOTP50, study.TPOT, 0.5}, {measure.TPOTP95, study.TPOT, 0.95}, {measure.TPOTP99, study.TPOT, 0.99},
	{measure.ITLP50, study.ITL, 0.5}, {measure.ITLP95, study.ITL, 0.95}, {measure.ITLP99, study.ITL, 0.99},
}

// percentiles records the percentiles that are known, and returns why the others are not.
func percentiles(v *Verdict, figure func(name, unit string, value float64)) (doubts []string) {
	tokens, _ := v.Total.Tokens()
	for _, p := range shares {
		if p.of != "" && tokens == 0 || p.of == study.TTFO && !v.Total.Reasoned() {
			continue
		}
		if seconds, why := v.Percentile(timeOf[p.of], p.at); why == "" {
			figure(p.name, "s", seconds)
		} else {
			doubts = append(doubts, fmt.Sprintf("no %sP%g: %s", ofStreams(p.of), 100*p.at, why))
		}
	}
	return doubts
}

// timeOf maps the time that a limit names to a Time.
var timeOf = map[string]Time{"": Latency, study.TTFT: FirstToken, study.TTFO: FirstOutput, study.TPOT: PerToken, study.ITL: Gap}

// ofStreams returns the name of a time as a prefix for a percentile, such as "TTFT ".
func ofStreams(of string) string {
	if of == "" {
		return ""
	}
	return strings.ToUpper(of) + " "
}

// each returns the limits that an answer must keep to count for the goodput: its own times must be within those
// of the percentiles.
func each(l study.Limit) map[Time]time.Duration {
	bounds, _ := l.Of()
	most := map[Time]time.Duration{}
	for _, b := range bounds {
		d := time.Duration(b.Seconds * float64(time.Second))
		if had, ok := most[timeOf[b.Of]]; !ok || d > had { // of several percentiles the widest
			most[timeOf[b.Of]] = d
		}
	}
	return most
}

// log writes a load's latencies to its log.
func (s *Service) log(l Load, r *Result, v Verdict, start time.Time) error {
	if s.Log == nil || r == nil {
		return nil
	}
	name := fmt.Sprintf("batch-%d-threads-%d", l.Batch, l.Threads)
	if l.Threads == 0 {
		name = fmt.Sprintf("batch-%d-rate-%s", l.Batch, number.Exact(l.Rate))
	}
	w, err := s.Log(name)
	if err != nil {
		return err
	}
	return errors.Join(r.WriteLog(w, l.String()+"; latencies in nanoseconds", start, v.Warmup), w.Close())
}

// measure runs one load and records its figures.
func (s *Service) measure(ctx context.Context, w study.Serve, l Load, capacity float64, stream uint64) (*Result, Verdict, error) {
	start := time.Now()
	r, v, err := s.run(ctx, w, l, capacity, stream)
	if err == nil {
		err = s.log(l, r, v, start)
	}
	if err != nil {
		return nil, v, err
	}
	out := recorder{service: s, load: l, doubts: slices.Clone(v.Doubts)}
	if r != nil {
		out.client(r, &v)
	}
	if v.Why == "" {
		out.steady(w, &v)
	} else {
		out.doubts = append(out.doubts, "no steady state: "+v.Why)
	}
	if out.err == nil {
		var more []string
		more, out.err = s.replicas(l, &v)
		out.doubts = append(out.doubts, more...)
	}
	for _, text := range out.doubts {
		if out.err == nil {
			out.err = s.Doubt(l.String() + ": " + text)
		}
	}
	return r, v, out.err
}

// A recorder records the figures of one load. After an error it records nothing more.
type recorder struct {
	service *Service
	load    Load
	doubts  []string
	err     error
}

func (r *recorder) figure(name, unit string, value float64) {
	if r.err == nil {
		r.err = r.service.Figure(metrics.Figure{Name: name, Unit: unit, Value: value, At: r.load.At()})
	}
}

// client records errors and what the client itself did.
func (r *recorder) client(result *Result, v *Verdict) {
	r.figure(measure.Errors, "", v.Total.Errors())
	r.figure(measure.Timeouts, "", v.Total.Timeouts())
	r.figure(measure.ClientCPUs, "", result.ClientCPU)
	if alone, known := r.service.client[r.load.Batch]; known {
		r.figure(measure.ClientRate, "requests/s", alone.rate)
		r.figure(measure.ClientOverhead, "s", alone.overhead)
	}
	if result.FirstError != nil && v.Total.Good > 0 { // otherwise the reason includes it
		r.doubts = append(r.doubts, "the first request without a right answer in time: "+result.FirstError.Error())
	}
}

// steady records throughput and latencies.
func (r *recorder) steady(w study.Serve, v *Verdict) {
	rate := v.Total.Rate()
	r.figure(measure.RequestsPerSecond, "requests/s", rate)
	r.figure(measure.SamplesPerSecond, "samples/s", rate*float64(r.load.Batch))
	if mean, _ := v.Total.Mean(); v.lateMean() == "" {
		r.figure(measure.LatencyMean, "s", mean)
	} else {
		r.doubts = append(r.doubts, "no mean latency: "+v.lateMean())
	}
	if r.load.Threads == 0 {
		r.figure(measure.SendLagP99, "s", v.Lag())
	}
	r.figure(measure.LongestStall, "s", v.Total.Stall.Seconds())
	if cv, ok := v.WindowCV(); ok {
		r.figure(measure.WindowCV, "", cv)
	}
	r.tokens(v)
	if w.Limit != "" {
		r.figure(measure.Goodput, "requests/s", v.Total.Goodput())
	}
	r.doubts = append(r.doubts, percentiles(v, r.figure)...)
}

// tokens records what a language model read and made.
func (r *recorder) tokens(v *Verdict) {
	if tokens, counted := v.Total.Tokens(); tokens > 0 {
		r.figure(measure.OutputThroughput, "tokens/s", v.Total.OutputThroughput())
		if !counted {
			r.doubts = append(r.doubts, "the service does not say how many tokens it made: each text counts as one, and can hold several; ask for usage with \"stream_options\": {\"include_usage\": true}")
		}
	}
	input, cached, reasoning := v.Total.Shares()
	if input > 0 {
		r.figure(measure.InputTokens, "tokens", input)
		r.figure(measure.CachedTokens, "", cached)
	}
	if reasoning > 0 {
		r.figure(measure.ReasoningTokens, "", reasoning)
	}
}
