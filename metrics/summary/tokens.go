package summary

import (
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// tokens makes tokens/s of a run whose samples are sequences: of its throughput, over
// all workers and of each, where its program says how many tokens a sample has. What
// the program or its log states as tokens/s itself stays.
func (r *Outcome) tokens(in Input) {
	throughput := r.Known(measure.Throughput)
	var each *metrics.Figure
	for i, f := range in.Figures {
		switch {
		case f.Name == measure.TokensPerSecond:
			return
		case f.Name == measure.TokensPerSample && f.Unit == "tokens" && len(f.At) == 0 && f.Value >= 1:
			each = &in.Figures[i]
		}
	}
	if each == nil {
		return
	}
	all := measure.Reported(measure.TokensPerSecond, "tokens/s", measure.Higher)
	worker := measure.Reported(measure.TokensPerSecond+"_per_worker", "tokens/s", measure.Neither)
	if in.Device == "gpu" { // as logs of programs that have one have it
		worker.Name, worker.Title = measure.TokensPerGPU, measure.TokensPerGPU
	}
	r.Reported = append(r.Reported, all, worker)
	if throughput == nil {
		if why := r.Why[measure.Throughput]; why != "" {
			r.Why[all.Name], r.Why[worker.Name] = why, why
		}
		return
	}
	r.Values[all.Name] = *throughput * each.Value
	if in.World > 0 {
		r.Values[worker.Name] = r.Values[all.Name] / float64(in.World)
	}
}
