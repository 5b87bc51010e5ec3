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

// The parameters that say how a model is laid out, by the last part of their path.
// Those of Follows change with the number of workers and separate no series.
var (
	keys    = []string{"tp", "pp", "cp", "ep", "vp", "zero", "micro_batch", "checkpointing"}
	follows = []string{"dp", "dp_replicate", "dp_shard", "accumulate", "microbatches"}
)

// Keys returns the parameters that describe a layout.
func Keys() []string { return slices.Clone(keys) }

// Follows reports whether a parameter follows from the number of workers, the layout
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

// Of returns the study of the runs of a curve over workers. kind is "weak" or "strong" where
// the user says it, "" where the runs do.
//
// A figure, a rate of work that the runs have as their throughput, need not count samples, so
// that only its ratios follow from the law; nil for the throughput itself.
func Of(c scaling.Curve, obs []scaling.Observation, kind string, figure *measure.Measure) (*Series, error) {
	runs := runsOf(c, obs)
	s := &Series{Name: c.Series, Values: map[string]any{}, Unit: measure.RateUnit(c.Sample)}
	s.Layout = Layout{Replica: 1, Stages: 1, Virtual: 1}
	if len(runs) == 0 {
		return s, &Refusal{"no run has finished successfully yet", "two worker counts, with 3 runs each"}
	}
	s.setLayout(runs[0].Parameters)
	kind = cmp.Or(kind, c.Scaling)
	rate := rateOf(runs)
	// Without a batch of every run, or with a rate in another unit than the batch's, only
	// rates can be compared.
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

// runsOf lists the observations of a curve's runs.
func runsOf(c scaling.Curve, obs []scaling.Observation) (runs []*scaling.Observation) {
	mine := map[string]bool{}
	for _, p := range c.Points {
		for _, r := range p.Runs {
			mine[r.ID] = true
		}
	}
	for i := range obs {
		if mine[obs[i].Run] {
			runs = append(runs, &obs[i])
		}
	}
	return runs
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

// rateOf is the rate that the runs have: throughput, or tokens per second if no run has that.
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

// step is a run's time of a step, 0 if it has none. A batch of sequences over a rate of
// tokens is none.
func (s *Series) step(o *scaling.Observation, batch float64, rate string) float64 {
	if x := o.Known(rate); x != nil && *x > 0 && (s.Relative || rate != measure.TokensPerSecond) {
		return batch / *x
	}
	if x := o.Known("step_seconds"); x != nil && !s.Relative {
		return *x
	}
	return 0
}

// setGrowth says how the global batch goes with the workers. One count does not tell: then
// kind does.
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

// remember keeps the memory of the run with most replicas.
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

// Needs is the most that a worker of so many needs, by what was measured: the states of
// a model are the same on each replica or shared out over all, and what a microbatch
// takes does not depend on their number, so more workers never need more each. ok is
// false for fewer than were measured.
func (m *Memory) Needs(workers int) (bytes float64, ok bool) {
	if m == nil || workers < m.Workers {
		return 0, false
	}
	return m.Bytes, true
}

// Text is a layout in words: "tp=8 pp=8"; "" for none.
func Text(values map[string]any) string {
	var words []string
	for _, key := range keys {
		if v, ok := values[key]; ok {
			words = append(words, fmt.Sprintf("%s=%s", key, scaling.ValueOf(v)))
		}
	}
	return strings.Join(words, " ")
}

// Ended says whether what of the layout ended for lack of memory tells that so many
// workers have too little: "" where nothing does.
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
