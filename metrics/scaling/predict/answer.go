package predict

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Question is a request for a prediction; Ask answers it for one series.
type Question struct {
	Workers     int
	GlobalBatch float64 // samples; 0: continue as in the measured runs, constant or in proportion to the workers
	RackSize    int     // nodes per rack; 0: unknown
	Memory      float64 // memory of a worker in bytes; 0: unknown
	Confidence  float64 // confidence level of intervals; 0 means 0.95
}

// Row holds the measurements at one worker count.
type Row struct {
	Workers     int      `json:"workers"`
	GlobalBatch *float64 `json:"global_batch"` // samples per step; null: unknown
	Runs        int      `json:"runs"`
	Step        *float64 `json:"step_seconds"` // median of the runs; null if the batch is unknown
	Rate        float64  `json:"rate"`         // median of the runs
}

// An Answer is the prediction for one series, or the reason why it is missing.
type Answer struct {
	Series      string         `json:"series"`
	Layout      map[string]any `json:"layout"` // values of the layout's keys; never null
	Workers     int            `json:"workers"`
	GlobalBatch *float64       `json:"global_batch"` // samples per step; null: unknown
	Step        *Estimate      `json:"step_seconds"` // null: refused, or the batch is unknown
	Rate        *Estimate      `json:"rate"`         // null: refused
	Unit        string         `json:"rate_unit"`    // "samples/s", "tokens/s"
	Confidence  float64        `json:"confidence"`   // confidence level of the intervals, a fraction
	Measured    []Row          `json:"measured"`     // ascending by workers; never null
	// HeldOut is the prediction for the largest measured worker count from the smaller counts
	// alone. HoldOut is its relative error, as a fraction of the measured rate. Both are null
	// with two counts.
	HeldOut *Estimate `json:"held_out"` // rate
	HoldOut *float64  `json:"hold_out"`
	// Memory is the largest measured memory of a worker; null: unknown.
	Memory        *float64 `json:"memory_bytes"`
	MemoryMeasure string   `json:"memory_measure"` // name of the measure that Memory is; "" if it is unknown
	Caveats       []string `json:"doubts"`         // warnings about the runs that can change the prediction; never null
	Refused       string   `json:"refused"`        // why there is no prediction; "" if there is one
	Next          string   `json:"next"`           // what to measure; "" unless refused
}

// Ask returns the prediction for one series.
func Ask(s *Series, q Question) (*Answer, error) {
	if q.Confidence == 0 {
		q.Confidence = 0.95
	}
	a := &Answer{Series: s.Name, Layout: s.Values, Workers: q.Workers, Unit: s.Unit, Confidence: q.Confidence, Measured: []Row{}, Caveats: []string{}}
	for _, c := range s.Counts {
		r := Row{Workers: c.Workers, Runs: len(c.Steps)}
		step := scaling.Middle(c.Steps)
		r.Rate = c.rate()
		if !s.Relative {
			r.GlobalBatch, r.Step = &c.Batch, &step
		}
		a.Measured = append(a.Measured, r)
	}
	batch := q.GlobalBatch
	if batch > 0 && s.Relative {
		return nil, errors.New("the runs do not record their global batch, so nothing follows from another one; import them with a label global_batch")
	}
	if batch == 0 && len(s.Counts) > 0 {
		var err error
		if batch, err = s.BatchAt(q.Workers); err != nil {
			return nil, err
		}
	}
	if !s.Relative && batch > 0 {
		a.GlobalBatch = &batch
	}
	if bytes, ok := s.Memory.Needs(q.Workers); ok {
		a.Memory, a.MemoryMeasure = &bytes, s.Memory.Measure
		if q.Memory > 0 && bytes > q.Memory {
			a.Refused = fmt.Sprintf("a worker needs %s (%s on %s) and has %s: it does not fit", number.Bytes(bytes), s.Memory.Measure, number.Count(s.Memory.Workers, "worker"), number.Bytes(q.Memory))
			a.Next = "another layout: more tp or pp, a smaller micro_batch, or checkpointing"
			return a, nil
		}
	}
	study := s.Study
	study.RackSize = q.RackSize
	l, err := Fit(study, q.Confidence)
	var e Estimate
	if err == nil {
		if h := l.HoldOut; h != nil {
			off, last := h.Measured/h.Predicted.Value-1, s.Counts[len(s.Counts)-1]
			a.HoldOut = &off
			a.HeldOut = new(h.Predicted.Rate(last.Batch))
		}
		e, err = l.Predict(q.Workers, batch)
	}
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		a.Refused, a.Next = refusal.Why, refusal.Next
	case err != nil:
		return nil, err
	default:
		a.Rate = new(e.Rate(batch))
		if !s.Relative {
			a.Step = &e
		}
	}
	return a, nil
}

// Band returns predicted rates for plots. It covers the worker counts from the smallest
// measured count to the largest that can be predicted, at most upto.
func Band(s *Series, confidence float64, upto int) (workers []int, rates []Estimate, err error) {
	l, err := Fit(s.Study, confidence)
	if err != nil {
		return nil, nil, err
	}
	for n := s.Counts[0].Workers; n <= upto; n *= 2 {
		batch, err := s.BatchAt(n)
		if err != nil {
			return nil, nil, err
		}
		e, err := l.Predict(n, batch)
		if err != nil {
			break
		}
		workers = append(workers, n)
		rates = append(rates, e.Rate(batch))
	}
	return workers, rates, nil
}
