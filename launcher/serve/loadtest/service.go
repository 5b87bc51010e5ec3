package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

// file returns the name of the load's files.
func (l Load) file() string {
	if l.Threads == 0 {
		return fmt.Sprintf("batch-%d-rate-%s", l.Batch, number.Exact(l.Rate))
	}
	return fmt.Sprintf("batch-%d-threads-%d", l.Batch, l.Threads)
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
	Seed uint64 // for the schedules of open loops; each run needs a different seed
	// Sleep and InProcess are passed on to Options.
	Sleep     func(time.Duration)
	InProcess bool

	// Log opens the file for a load's latencies (see Result.WriteLog). nil writes none.
	Log func(name string) (io.WriteCloser, error)
	// Export opens the file for a load's requests (see Outcome): JSON objects, one a line, if the format is
	// "jsonl", or the rows of a "parquet" file. nil writes none.
	Export func(name, format string) (io.WriteCloser, error)

	// Scrape reads the servers' own metrics, by replica, and keeps their text under a name unless that is "". nil
	// reads none.
	Scrape func(ctx context.Context, name string) ([]ServerMetrics, error)

	Turns float64   // mean number of turns of a session; 0 means 1
	Trace []float64 // send times in seconds for study.Trace
	// Input and Output are the distributions of the tokens that requests ask for; not set if unknown.
	Input, Output study.TokenLength
	// GPUs is the number of GPUs of the service; 0 without GPUs.
	GPUs int

	Phase  func(text string) error
	Figure func(metrics.Figure) error
	Warn   func(text string) error

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
	o, why := s.options(w, l, stream)
	if why != "" {
		return nil, Verdict{Why: why}, nil
	}
	o.Dial = dial
	end, err := s.export(l, &o)
	if err != nil {
		return nil, Verdict{}, err
	}
	r, err := Run(ctx, o)
	if err = errors.Join(err, end()); err != nil {
		return nil, Verdict{}, fmt.Errorf("%v: %w", l, err)
	}
	v := r.Judge()
	v.Outruns(max(l.Rate, v.Total.Rate()), s.client[l.Batch].rate)
	if l.Threads == 0 {
		v.Beyond(l.Rate, capacity)
	}
	return r, v, nil
}

// log writes a load's latencies to its log.
func (s *Service) log(l Load, r *Result, v Verdict, start time.Time) error {
	if s.Log == nil || r == nil {
		return nil
	}
	w, err := s.Log(l.file())
	if err != nil {
		return err
	}
	return errors.Join(r.WriteLog(w, l.String()+"; latencies in nanoseconds", start, v.Warmup), w.Close())
}

// measure runs one load and records its figures.
func (s *Service) measure(ctx context.Context, w study.Serve, l Load, capacity float64, stream uint64) (*Result, Verdict, error) {
	start := time.Now()
	out := recorder{service: s, load: l}
	scraped := s.scrape(ctx, l)
	defer scraped.cancel()
	r, v, err := s.run(ctx, w, l, capacity, stream)
	if err == nil {
		err = s.log(l, r, v, start)
	}
	out.doubts = slices.Clone(v.Warnings)
	if r != nil {
		out.client(r, &v)
		scraped.end(ctx, &out, r.lead())
	}
	if err != nil {
		return nil, v, err
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
			out.err = s.Warn(l.String() + ": " + text)
		}
	}
	return r, v, out.err
}
