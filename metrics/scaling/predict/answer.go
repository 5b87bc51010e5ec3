package predict

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Question is put to each series.
type Question struct {
	Workers     int
	GlobalBatch float64 // samples; 0: as it went with the workers so far
	RackSize    int     // nodes; 0: not known
	Memory      float64 // bytes that a worker has; 0: not said
	Confidence  float64 // of intervals; 0 is 0.95
}

// Figure is a value with its interval.
type Figure struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Row is a measured count.
type Row struct {
	Workers     int      `json:"workers"`
	GlobalBatch *float64 `json:"global_batch"` // samples a step; null: not known
	Runs        int      `json:"runs"`
	Step        *float64 `json:"step_seconds"` // median of the runs; null where no batch is known
	Rate        float64  `json:"rate"`         // median of the runs
}

// An Answer is the prediction for one series, or the reason why there is no prediction.
type Answer struct {
	Series      string         `json:"series"`
	Layout      map[string]any `json:"layout"` // by key; never null
	Workers     int            `json:"workers"`
	GlobalBatch *float64       `json:"global_batch"` // samples a step; null: not known
	Step        *Figure        `json:"step_seconds"` // null: refused, or no batch is known
	Rate        *Figure        `json:"rate"`         // null: refused
	Unit        string         `json:"rate_unit"`    // "samples/s", "tokens/s"
	Confidence  float64        `json:"confidence"`   // asked of the intervals, a fraction
	Measured    []Row          `json:"measured"`     // by rising workers; never null
	// HeldOut is the prediction of the largest count by the law of the smaller ones;
	// HoldOut how far that rate is off, a fraction of what was measured. null with two counts.
	HeldOut *Figure  `json:"held_out"` // rate
	HoldOut *float64 `json:"hold_out"`
	// Memory is the most that a worker needs, by what was measured; null: not known.
	Memory        *float64 `json:"memory_bytes"`
	MemoryMeasure string   `json:"memory_measure"` // which figure that is; "" without one
	Refused       string   `json:"refused"`        // why nothing is predicted; "" when it is
	Next          string   `json:"next"`           // what to measure; "" when nothing is refused
}

// Ask answers for one series.
func Ask(s *Series, q Question) (*Answer, error) {
	if q.Confidence == 0 {
		q.Confidence = 0.95
	}
	a := &Answer{Series: s.Name, Layout: s.Values, Workers: q.Workers, Unit: s.Unit, Confidence: q.Confidence, Measured: []Row{}}
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
			a.HeldOut = &Figure{last.Batch / h.Predicted.Value, last.Batch / h.Predicted.High, last.Batch / h.Predicted.Low}
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
		a.Rate = &Figure{batch / e.Value, batch / e.High, batch / e.Low}
		if !s.Relative {
			a.Step = &Figure{e.Value, e.Low, e.High}
		}
	}
	return a, nil
}

// Band returns predictions from the smallest measured count to the largest count that
// it answers for, at most upto, as rates: for a figure.
func Band(s *Series, confidence float64, upto int) (workers []int, rates []Figure, err error) {
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
		rates = append(rates, Figure{batch / e.Value, batch / e.High, batch / e.Low})
	}
	return workers, rates, nil
}
