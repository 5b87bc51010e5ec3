//go:build !training

package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A tally adds up what all ranks did in one or several passes, in samples, bytes and seconds.
type tally struct {
	seconds                     float64 // from the common start to the common end, by rank 0's clock
	samples, read, written, cpu float64
	storage, uncounted          float64 // bytes read from storage; number of ranks that do not know theirs
	resident, pages             float64
	repeated                    float64 // retried requests to an object store
	delay                       float64 // NaN: unknown
	waited, took                float64 // seconds of the consumers
	trained, steps, loss        float64 // with a real trainer: samples, steps of all ranks, loss summed over samples
	cpus, threads, fewer        float64
	loaders                     float64 // CPUs available to the threads at once
	stageSeconds, stageCPU      [preprocess.Stages]float64
}

func (t *tally) add(r preprocess.Result) {
	t.samples, t.read, t.written, t.cpu, t.delay = float64(r.Samples), float64(r.Read), float64(r.Written), r.CPU, r.Delay
	if r.FewFiles {
		t.fewer = 1
	}
	for s, spent := range r.Stages {
		t.stageSeconds[s], t.stageCPU[s] = spent.Wall, spent.CPU
	}
}

// fields returns the values that are summed over ranks and passes.
func (t *tally) fields() []*float64 {
	list := []*float64{&t.samples, &t.read, &t.written, &t.cpu, &t.storage, &t.uncounted, &t.resident, &t.pages, &t.repeated, &t.delay, &t.waited, &t.took, &t.trained, &t.steps, &t.loss, &t.fewer}
	for s := range t.stageSeconds {
		list = append(list, &t.stageSeconds[s], &t.stageCPU[s])
	}
	return list
}

// over replaces each value of the tally by its sum over all ranks.
func (t *tally) over(ctx context.Context, g *collective.Group) error {
	fields := append(t.fields(), &t.cpus, &t.threads, &t.loaders)
	values := make([]float64, len(fields))
	for i, f := range fields {
		values[i] = *f
	}
	if err := g.AllReduceFloat64(ctx, values); err != nil {
		return err
	}
	for i, f := range fields {
		*f = values[i]
	}
	return nil
}

// merge adds the tally of a pass.
func (t *tally) merge(pass tally) {
	fields, added := t.fields(), pass.fields()
	for i := range fields {
		*fields[i] += *added[i]
	}
	t.seconds += pass.seconds
	t.cpus, t.threads, t.loaders = pass.cpus, pass.threads, pass.loaders
}

// A ceiling is the maximum throughput if one resource, such as storage or the CPUs, were the only
// limit.
type ceiling struct {
	bound string
	rate  float64 // samples/s
	words string  // how it was determined
}

// alone measures the rate in bytes/s at which all ranks do the work, and describes it. The text
// states the size of the samples in bytes. The bytes moved may be more, such as table columns that
// samples do not use.
func (r *preprocessing) alone(ctx context.Context, each float64, what string, work func() (bytes float64, err error)) (rate float64, words string, err error) {
	begun := time.Now()
	bytes, err := work()
	if err == nil {
		err = r.group.Barrier(ctx)
	}
	seconds := time.Since(begun).Seconds()
	moved := []float64{bytes}
	if err == nil {
		err = r.group.AllReduceFloat64(ctx, moved)
	}
	rate = moved[0] / seconds
	return rate, fmt.Sprintf("%s alone at %s/s, %s per sample", what, number.Bytes(rate), number.Bytes(each)), err
}

// ceilings measures reading and writing separately, and computes the others.
func (r *preprocessing) ceilings(ctx context.Context, sum *tally) ([]ceiling, error) {
	if sum.samples == 0 {
		return nil, fmt.Errorf("the files in %s hold no sample", r.asked.Source)
	}
	list := []ceiling{{"cores", sum.cpus * sum.samples / sum.cpu,
		fmt.Sprintf("%s of CPU time per sample on %s", number.Seconds(sum.cpu/sum.samples), number.Count(int(sum.cpus), "CPU"))}}
	if r.learner != nil && sum.threadCPU() > 0 { // the trainer uses the rest of the CPU time
		each := sum.threadCPU() / sum.samples
		list = append(list, ceiling{"threads", sum.loaders / each, fmt.Sprintf("%s of the threads' CPU time per sample on %s", number.Seconds(each), number.Count(int(sum.loaders), "CPU"))})
	}
	if r.asked.Ceilings && r.asked.Cache != "memory" {
		if err := r.phase("reading alone"); err != nil {
			return nil, err
		}
		if _, _, err := r.chill(ctx); err != nil {
			return nil, err
		}
		rate, words, err := r.alone(ctx, sum.read/sum.samples, "reading", func() (float64, error) {
			n, err := preprocess.ReadAlone(ctx, r.store, r.files, r.threads)
			return float64(n), err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, ceiling{"reading", rate * sum.samples / sum.read, words})
	}
	if r.asked.Ceilings && r.target != nil {
		if err := r.phase("writing alone"); err != nil {
			return nil, err
		}
		own := sum.written / float64(r.asked.Passes) / float64(r.world.Size)
		rate, words, err := r.alone(ctx, sum.written/sum.samples, "writing", func() (float64, error) {
			return own, preprocess.WriteAlone(ctx, r.target, int64(own), int64(r.asked.Shard), r.threads)
		})
		if err != nil {
			return nil, err
		}
		list = append(list, ceiling{"writing", rate * sum.samples / sum.written, words})
	}
	if r.asked.Consumer > 0 {
		list = append(list, ceiling{"consumer", r.asked.Consumer, "what the simulated trainer takes"})
	}
	if r.asked.Ceilings && r.learner != nil {
		c, err := r.trainAlone(ctx, int(sum.steps)/r.world.Size)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// near is the share of a ceiling that the throughput must reach for that resource to count as the
// bottleneck.
const near = 0.85

// below removes ceilings that the throughput far exceeds: they were measured too briefly, or while other work
// ran, and are invalid.
func below(rate float64, list []ceiling) (kept []ceiling, left string) {
	for _, c := range list {
		if rate*near > c.rate {
			left += fmt.Sprintf("; the ceiling of %s, %s samples/s, was measured too low and is left out: more samples would tell", c.bound, number.Significant(c.rate))
			continue
		}
		kept = append(kept, c)
	}
	return kept, left
}

// verdict returns a sentence that says which ceiling limits the throughput, or why none does.
func verdict(rate float64, list []ceiling, sum *tally) string {
	lowest := list[0]
	for _, c := range list {
		if c.rate < lowest.rate {
			lowest = c
		}
	}
	share := rate / lowest.rate
	reached := fmt.Sprintf("%s samples/s are %s of the lowest ceiling, %s samples/s by %s (%s)",
		number.Significant(rate), number.Percent(share), number.Significant(lowest.rate), lowest.bound, lowest.words)
	if share >= near {
		return "bound by " + lowest.bound + ": " + reached
	}
	total := 0.0
	for _, s := range sum.stageSeconds {
		total += s
	}
	var why []string
	if delay := sum.delay / total; delay > 1-near {
		why = append(why, fmt.Sprintf("threads were ready to run and had no CPU for %s of their time, so others use these CPUs, or there are more threads than CPUs", number.Percent(delay)))
	}
	if blocked := (total - sum.delay - sum.threadCPU()) / total; blocked > 1-near {
		why = append(why, fmt.Sprintf("threads waited for storage, or for the consumer, for %s of their time while no other thread used their CPUs: more threads or workers would", number.Percent(blocked)))
	}
	if sum.fewer > 0 {
		why = append(why, "there are fewer files than threads")
	}
	if len(why) == 0 {
		why = append(why, "why is not known")
	}
	return "no bound is active: " + reached + "; " + strings.Join(why, "; ")
}

func (t *tally) threadCPU() (sum float64) {
	for _, s := range t.stageCPU {
		sum += s
	}
	return sum
}

// report writes the run's figures; only rank 0 does.
func (r *preprocessing) report(sum *tally, list []ceiling) error {
	if r.world.Rank > 0 {
		return nil
	}
	rate := sum.samples / sum.seconds
	if r.learner != nil {
		rate = sum.trained / sum.seconds
	}
	list, left := below(rate, list)
	text := "no ceiling is known"
	if len(list) > 0 {
		text = verdict(rate, list, sum)
	}
	text += left
	total := 0.0
	for _, s := range sum.stageSeconds {
		total += s
	}
	figures := []metrics.Figure{
		{Name: measure.Throughput, Value: rate, Unit: "samples/s", Note: text},
		{Name: measure.SourceRate, Value: sum.read / sum.seconds, Unit: "B/s"},
		{Name: measure.SampleCPU, Value: sum.cpu / sum.samples, Unit: "s"},
	}
	add := func(name string, value float64, unit string, known bool) {
		if known && !math.IsNaN(value) && !math.IsInf(value, 0) {
			figures = append(figures, metrics.Figure{Name: name, Value: value, Unit: unit})
		}
	}
	add(measure.TargetRate, sum.written/sum.seconds, "B/s", r.target != nil)
	add(measure.SourceCached, sum.resident/sum.pages, "", r.paged())
	add(measure.SourceStorage, sum.storage/sum.read, "", r.paged() && sum.uncounted == 0)
	add(measure.ThreadsDelay, sum.delay/total, "", true)
	add(measure.ConsumerWait, sum.waited/sum.took, "", r.asked.Consumer > 0 || r.learner != nil)
	add(measure.ConsumerStep, sum.took/sum.steps, "s", r.learner != nil)
	for i, loss := range r.losses {
		figures = append(figures, metrics.Figure{Name: measure.ConsumerLoss, Value: loss, At: map[string]any{measure.Pass: i + 1}})
	}
	for s := range preprocess.Stages {
		if sum.stageSeconds[s] == 0 {
			continue
		}
		at := map[string]any{measure.Stage: preprocess.Stage(s).String()}
		figures = append(figures,
			metrics.Figure{Name: measure.StageShare, Value: sum.stageSeconds[s] / total, At: at},
			metrics.Figure{Name: measure.StageSeconds, Value: sum.stageSeconds[s] / sum.samples, Unit: "s", At: at},
			metrics.Figure{Name: measure.StageCPU, Value: sum.stageCPU[s] / sum.samples, Unit: "s", At: at})
	}
	for _, c := range list {
		at := map[string]any{measure.Bound: c.bound}
		figures = append(figures, metrics.Figure{Name: measure.Ceiling, Value: c.rate, Unit: "samples/s", At: at, Note: c.words},
			metrics.Figure{Name: measure.CeilingShare, Value: rate / c.rate, At: at})
	}
	for _, f := range figures {
		if err := r.figure(f); err != nil {
			return err
		}
	}
	if share := sum.storage / sum.read; r.asked.Cache == "cold" && r.paged() && sum.uncounted == 0 && share < 0.9 {
		if err := r.note(fmt.Sprintf("by read_bytes of /proc/self/io, storage delivered only %s of what was read cold; file systems of a network and FUSE do not count there", number.Percent(share))); err != nil {
			return err
		}
	}
	if sum.repeated > 0 {
		if err := r.note(fmt.Sprintf("%s got no answer, or one that said to ask again, and had to be repeated; their time is in the stages", number.Count(int(sum.repeated), "request"))); err != nil {
			return err
		}
	}
	return r.phase(text)
}
