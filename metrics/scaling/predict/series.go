package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Parameters that describe how a model is divided among workers, by the last part of their path.
// The ones in follows depend on the number of workers and do not separate series.
var (
	keys    = []string{"tp", "pp", "cp", "ep", "vp", "zero", "micro_batch", "checkpointing"}
	follows = []string{"dp", "dp_replicate", "dp_shard", "accumulate", "microbatches"}
)

// Keys returns the parameters that describe a layout.
func Keys() []string { return slices.Clone(keys) }

// Follows reports whether a parameter's value is determined by the number of workers, the layout
// and the batch.
func Follows(parameter string) bool { return slices.Contains(follows, lastPart(parameter)) }

func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// Parameter returns the value of a layout's key in a run's parameters, from any table; if
// several tables have the key, from the first by name. It is nil if the key is missing or
// unused (0, false or empty).
func Parameter(parameters map[string]any, key string) any {
	first := ""
	for k := range parameters {
		if lastPart(k) == key && !strings.HasPrefix(k, "fingerprint.") && (first == "" || k == key || first != key && k < first) {
			first = k
		}
	}
	switch v := parameters[first]; scaling.ValueOf(v) {
	case scaling.Value{}, scaling.ValueOf(false), scaling.ValueOf(""):
		return nil
	default:
		return v
	}
}

func amount(parameters map[string]any, key string) (float64, bool) {
	v := scaling.ValueOf(Parameter(parameters, key))
	return v.Number, v.Numeric() && v.Number > 0
}

// Batch returns the samples per step of a run over all workers; 0 if unknown.
func Batch(o *scaling.Observation) float64 {
	if b, ok := amount(o.Parameters, "global_batch"); ok {
		return b
	}
	replicas := float64(o.Workers) / float64(replica(o.Parameters))
	if micro, ok := amount(o.Parameters, "micro_batch"); ok {
		if times, ok := amount(o.Parameters, "accumulate"); ok {
			return micro * times * replicas
		}
	}
	b := scaling.ValueOf(o.Parameters["workload.batch"]).Number
	switch o.Parameters["workload.scaling"] {
	case "weak":
		return b * replicas
	case "strong":
		return b
	}
	return 0
}

func replica(parameters map[string]any) int {
	n := 1.0
	for _, key := range []string{"tp", "pp", "cp"} {
		if x, ok := amount(parameters, key); ok {
			n *= x
		}
	}
	return int(n)
}

// Series holds the measurements of one series of runs (Study), and says how its batches and
// rates are to be read.
type Series struct {
	Study
	Name   string
	Values map[string]any // values of the layout by key; only those that runs record
	// Weak is set if the global batch is proportional to the number of workers, Fixed if it
	// is constant. If neither is set, the question must state the batch.
	Weak, Fixed bool
	// Relative is set for runs whose batch is unknown. Batches are then in units of one
	// replica's batch (Weak) or of the global batch (Fixed), and step times have no meaning.
	Relative bool
	Unit     string  // unit of rates, such as "samples/s"
	Memory   *Memory // nil: no run reports it
}

// Memory is the largest measured memory of a worker.
type Memory struct {
	Workers int     // the worker count with the most replicas of which runs report their memory
	Bytes   float64 // memory of a worker, the largest of its runs
	Measure string  // "reserved_memory"
}

// BatchAt returns the global batch of a number of workers, which follows from the measured
// runs. It returns an error if they do not determine it.
func (s *Series) BatchAt(workers int) (float64, error) {
	switch first := s.Counts[0]; {
	case s.Fixed:
		return first.Batch, nil
	case s.Weak:
		return first.Batch / float64(first.Workers) * float64(workers), nil
	}
	return 0, fmt.Errorf("the global batch neither stays the same nor grows with the workers in these runs; say with --global-batch how large it is")
}

// errScaling is returned if the runs do not say how their batch depends on the workers.
var errScaling = errors.New("the runs do not say how large their global batch is, nor whether it grows with the workers")

// memories are the measures of a worker's memory; the first of them that runs report is used.
var memories = []string{"reserved_memory", "allocated_memory", "used_memory"}

// NewSeries returns the measurements of a curve over workers from its runs. kind is "weak" or "strong" if the user
// stated it, or "" to take it from the runs.
//
// figure is the measure that replaces the throughput in runs; nil: the throughput itself. It need
// not count samples, so only ratios of it can be predicted.
func NewSeries(c scaling.Curve, runs []*scaling.Observation, kind string, figure *measure.Measure) (*Series, error) {
	s := &Series{Name: c.Series, Values: map[string]any{}, Unit: measure.RateUnit(c.Sample)}
	s.Layout = Layout{Replica: 1, Stages: 1, Virtual: 1}
	if len(runs) == 0 {
		return s, &Refusal{"no run has finished successfully yet", "two worker counts, with 3 runs each"}
	}
	s.setLayout(runs[0].Parameters)
	kind = cmp.Or(kind, c.Scaling)
	rate := rateOf(runs)
	// If the batch of a run is unknown, or rates do not count samples of the batch, only ratios of
	// rates can be predicted.
	s.Relative = figure != nil || slices.ContainsFunc(runs, func(o *scaling.Observation) bool {
		return Batch(o) == 0 || o.Known(measure.Throughput) == nil && o.Known("step_seconds") == nil
	})
	if s.Relative {
		if kind != "weak" && kind != "strong" {
			return s, errScaling
		}
		s.Micro = 0
		switch {
		case figure != nil:
			s.Unit = figure.Unit
		case rate == measure.TokensPerSecond:
			s.Unit = "tokens/s"
		}
	}
	for _, o := range runs {
		s.add(o, kind, rate)
	}
	slices.SortFunc(s.Counts, func(a, b Count) int { return a.Workers - b.Workers })
	s.setGrowth(kind)
	return s, nil
}

// setLayout reads the layout from a run's parameters.
func (s *Series) setLayout(parameters map[string]any) {
	for _, key := range keys {
		if v := Parameter(parameters, key); v != nil {
			s.Values[key] = v
		}
	}
	s.Replica = replica(parameters)
	if x, ok := amount(parameters, "pp"); ok {
		s.Stages = int(x)
	}
	if x, ok := amount(parameters, "vp"); ok {
		s.Virtual = int(x)
	} else if s.Stages > 1 {
		s.Virtual = 0 // not stated: it may be interleaved or not
	}
	if x, ok := amount(parameters, "micro_batch"); ok {
		s.Micro = x
	}
}

// rateOf returns the measure of the runs' rate: the throughput, or tokens per second if no run has
// a throughput.
func rateOf(runs []*scaling.Observation) string {
	has := func(rate string) bool {
		return slices.ContainsFunc(runs, func(o *scaling.Observation) bool { return o.Known(rate) != nil })
	}
	if !has(measure.Throughput) && has(measure.TokensPerSecond) {
		return measure.TokensPerSecond
	}
	return measure.Throughput
}

// add adds a run's step time, if it has one, to the count of its workers and batch.
func (s *Series) add(o *scaling.Observation, kind, rate string) {
	batch := Batch(o)
	if s.Relative {
		batch = 1
		if kind == "weak" {
			batch = float64(o.Workers / s.Replica)
		}
	}
	step := s.step(o, batch, rate)
	if step == 0 {
		return
	}
	i := slices.IndexFunc(s.Counts, func(c Count) bool { return c.Workers == o.Workers && c.Batch == batch })
	if i < 0 {
		i = len(s.Counts)
		s.Counts = append(s.Counts, Count{Workers: o.Workers, Nodes: o.Nodes, Batch: batch})
	}
	s.Counts[i].Steps = append(s.Counts[i].Steps, step)
	s.remember(o)
}

// step returns a run's step time, or 0 if it is unknown. If the batch counts sequences and the rate
// counts tokens, it cannot be computed.
func (s *Series) step(o *scaling.Observation, batch float64, rate string) float64 {
	if x := o.Known(rate); x != nil && *x > 0 && (s.Relative || rate != measure.TokensPerSecond) {
		return batch / *x
	}
	if x := o.Known("step_seconds"); x != nil && !s.Relative {
		return *x
	}
	return 0
}

// setGrowth determines whether the global batch is constant or proportional to the workers. With a
// single count, it uses kind.
func (s *Series) setGrowth(kind string) {
	s.Fixed, s.Weak = len(s.Counts) > 0, len(s.Counts) > 0
	for _, c := range s.Counts {
		first := s.Counts[0]
		s.Fixed = s.Fixed && c.Batch == first.Batch
		s.Weak = s.Weak && math.Abs(c.Batch/float64(c.Workers)/(first.Batch/float64(first.Workers))-1) < 1e-9
	}
	if s.Fixed && s.Weak {
		s.Fixed, s.Weak = kind == "strong", kind == "weak"
	}
}

// remember updates the memory, if this run has more replicas than earlier ones.
func (s *Series) remember(o *scaling.Observation) {
	for _, name := range memories {
		x := o.Known(name)
		switch {
		case x == nil:
			continue
		case s.Memory == nil || o.Workers > s.Memory.Workers:
			s.Memory = &Memory{o.Workers, *x, name}
		case o.Workers == s.Memory.Workers && name == s.Memory.Measure:
			s.Memory.Bytes = max(s.Memory.Bytes, *x)
		}
		return
	}
}

// Needs returns an upper bound of the memory that each of this number of workers needs. With more
// replicas, a worker never needs more: the model's state is replicated or sharded over all
// replicas, and a microbatch always takes the same. ok is false for fewer workers than were
// measured.
func (m *Memory) Needs(workers int) (bytes float64, ok bool) {
	if m == nil || workers < m.Workers {
		return 0, false
	}
	return m.Bytes, true
}

// Text formats a layout: "tp=8 pp=8"; "" if it is empty.
func Text(values map[string]any) string {
	var words []string
	for _, key := range keys {
		if v, ok := values[key]; ok {
			words = append(words, fmt.Sprintf("%s=%s", key, scaling.ValueOf(v)))
		}
	}
	return strings.Join(words, " ")
}

// Ended returns why this number of workers lacks memory, judging by planned points of the layout
// that ran out of memory. It returns "" if these do not tell.
func Ended(exhausted []scaling.Planned, values map[string]any, workers int) string {
	for _, p := range exhausted {
		same := p.Workers >= workers
		for _, key := range keys {
			same = same && scaling.ValueOf(Parameter(p.Parameters, key)) == scaling.ValueOf(values[key])
		}
		if same {
			return fmt.Sprintf("with this layout memory ran out on %s", number.Count(p.Workers, "worker"))
		}
	}
	return ""
}
