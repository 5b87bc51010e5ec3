package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A Degree is a degree of parallelism: the number of ranks that share the model or the
// data, 1 or more. 0 means unset.
type Degree int

// UnmarshalTOML reads a whole number of at least 1.
func (d *Degree) UnmarshalTOML(v any) error {
	n, whole := v.(int64)
	if !whole || n < 1 || n > maxWorkers {
		return fmt.Errorf("want a whole number from 1 to %d, got %v", maxWorkers, v)
	}
	*d = Degree(n)
	return nil
}

// degrees returns the degrees of parallelism (tensor, pipeline, context, expert and data),
// each with its TOML key.
func (t Train) degrees() []struct {
	key string
	of  Degree
} {
	return []struct {
		key string
		of  Degree
	}{{"tp", t.TP}, {"pp", t.PP}, {"cp", t.CP}, {"ep", t.EP}, {"dp", t.DP}}
}

// degreeKeys are the TOML paths of the degrees of parallelism.
var degreeKeys = func() (paths []string) {
	for _, d := range (Train{}).degrees() {
		paths = append(paths, "workload."+d.key)
	}
	return paths
}()

// layoutKeys are the keys, by the last part of their path, that determine how much memory a
// model needs.
var layoutKeys = []string{"tp", "pp", "cp", "ep", "dp", "zero", "shard", "micro_batch", "accumulate", "checkpointing"}

// Layout formats the degrees of parallelism that are set: "tp 2 · pp 4".
func (t Train) Layout() string {
	var words []string
	for _, d := range t.degrees() {
		if d.of > 0 {
			words = append(words, fmt.Sprintf("%s %d", d.key, d.of))
		}
	}
	return strings.Join(words, " · ")
}

// divided reports whether the point's program can divide a model among ranks. Only users'
// programs can; in scalebench's own trainers, each rank has the whole model.
func (p *Point) divided() bool { return p.Workload.Trains() && p.Command.Folder != "" }

// Replica returns the number of workers that share one copy of the model and a batch:
// tensor × pipeline × context parallelism. Expert parallelism divides the same workers
// again.
func (p *Point) Replica() int {
	if !p.divided() {
		return 1
	}
	t := p.Workload.Train
	return max(1, int(t.TP)) * max(1, int(t.PP)) * max(1, int(t.CP))
}

// Replicas returns the degree of data parallelism.
func (p *Point) Replicas() int { return max(1, p.Workers/p.Replica()) }

// misfit returns why the degrees of parallelism do not fit the number of workers; "" if
// they do. Experts are divided among the workers of a pipeline stage, as in torchtitan's
// parallel_dims.py, and in Megatron-LM's expert_model_parallel_size at an
// expert_tensor_parallel_size of 1. Programs with expert tensor parallelism have further
// conditions, which misfit does not check.
func (p *Point) misfit() string {
	if !p.divided() {
		return ""
	}
	t, replica := p.Workload.Train, p.Replica()
	stage := p.Workers / max(1, int(t.PP))
	switch {
	case p.Workers%replica != 0:
		return fmt.Sprintf("%s takes a multiple of %d workers, not %d", t.Layout(), replica, p.Workers)
	case t.DP > 0 && int(t.DP) != p.Workers/replica:
		return fmt.Sprintf("%s takes %d workers, not %d", t.Layout(), replica*int(t.DP), p.Workers)
	case t.EP > 0 && stage%int(t.EP) != 0:
		return fmt.Sprintf("ep %d does not divide the %d workers of a stage (tp·cp·dp)", t.EP, stage)
	}
	return ""
}

// misfits collects the combinations of a sweep in which the degrees of parallelism do not
// fit the number of workers.
type misfits struct {
	all int // number of all combinations that were checked
	why []string
}

// fewMisfits is the maximum number of unfit combinations that an error message lists.
const fewMisfits = 3

// report adds one problem about all unfit combinations.
func (m *misfits) report(x *expansion) {
	if len(m.why) == 0 {
		return
	}
	var first []string
	more := ""
	for _, why := range m.why {
		switch {
		case slices.Contains(first, why):
		case len(first) == fewMisfits:
			more = "; …"
		default:
			first = append(first, why)
		}
	}
	what := fmt.Sprintf("the layouts of %d of %d combinations do not fit their workers", len(m.why), m.all)
	if m.all == 1 {
		what = "the layout does not fit the workers"
	}
	todo := fmt.Sprintf("Correct them, leave them out with [[exclude]], or set sweep.design = %q, which leaves out all such combinations", layouts)
	if m.all == 1 {
		todo = "Correct the degrees or the workers"
	}
	x.problem("workers", fmt.Sprintf("%s: %s%s. %s", what, strings.Join(first, "; "), more, todo), degreeKeys...)
}

// expandBatch fills in the batch of each replica, the global batch and the micro batch.
func expandBatch(p *Point, wrong map[string]string) {
	w, replicas := &p.Workload.Train, p.Replicas()
	switch {
	case w.Accumulates() && w.Scaling == "strong":
		wrong["workload.accumulate"] = "with scaling = \"strong\" how often gradients are added up follows from batch, micro_batch and the workers; leave accumulate out"
	case w.Accumulates() && w.MicroBatch > 1<<24/int(w.Accumulate):
		wrong["workload.accumulate"] = fmt.Sprintf("micro_batch %d times %d is above %d samples", w.MicroBatch, w.Accumulate, 1<<24)
	case w.Accumulates():
		p.WorkerBatch = w.MicroBatch * int(w.Accumulate)
		p.GlobalBatch = p.WorkerBatch * replicas
	case w.Scaling == "weak":
		p.WorkerBatch, p.GlobalBatch = w.Batch, w.Batch*replicas
	case w.Scaling == "strong":
		p.WorkerBatch, p.GlobalBatch = w.Batch/replicas, w.Batch
		if w.Batch%replicas != 0 {
			among := number.Count(p.Workers, "worker")
			if p.Replica() > 1 {
				among = number.Count(replicas, "replica")
			}
			wrong["workload.batch"] = fmt.Sprintf("with scaling = \"strong\" the batch of %d is shared by all workers, and %s do not divide it", w.Batch, among)
		}
	}
	p.MicroBatch = w.MicroBatch
	if w.MicroBatch == 0 && w.Accumulate > 0 {
		p.MicroBatch = p.WorkerBatch / int(w.Accumulate)
		if p.MicroBatch*int(w.Accumulate) != p.WorkerBatch || p.MicroBatch == 0 {
			wrong["workload.accumulate"] = fmt.Sprintf("a worker's batch of %d cannot be divided into %d equal parts", p.WorkerBatch, w.Accumulate)
		}
	}
}

// Accumulates reports whether a worker's batch is given as micro_batch × accumulate.
func (t Train) Accumulates() bool { return t.MicroBatch > 0 && t.Accumulate > 0 }

// ReceivesBatch reports whether the run's program receives its batch size.
func (p *Point) ReceivesBatch() bool {
	return p.Reaches("workload.batch") || p.Reaches("workload.accumulate")
}

// ExhaustionIsResult reports whether running out of memory is a result of the point, and not a
// failure: because its memory is enforced, or because the study compares layouts.
func (p *Point) ExhaustionIsResult() bool { return p.Enforces(MemoryKey) || p.ComparesLayouts }

// comparesLayouts reports whether the study's points differ in layout.
func (s *Study) comparesLayouts() bool {
	return slices.ContainsFunc(s.axes, func(a axis) bool {
		return len(a.values) > 1 && slices.Contains(layoutKeys, a.field.key)
	})
}
