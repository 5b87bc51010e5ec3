package summary

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// tokens sets the tokens/s of a run whose samples are sequences, over all workers and per worker.
// It computes them from the throughput and the number of tokens per sample, which the program
// states or, if not, the plan. Tokens/s that the program or its log states are kept.
func (r *Outcome) tokens(in Input) {
	throughput := r.Known(measure.Throughput)
	var each *metrics.Figure
	for i, f := range in.Figures {
		switch {
		case f.Name == measure.TokensPerSecond:
			r.ofTokens(in, f)
			return
		case f.Name == measure.TokensPerSample && f.Unit == "tokens" && len(f.At) == 0 && f.Value >= 1:
			each = &in.Figures[i]
		}
	}
	if each != nil && in.SampleTokens >= 1 && each.Value != in.SampleTokens {
		r.warn("the program reports %g tokens per sample, the study %g (workload.sample, workload.sequence): tokens/s uses the program's number", each.Value, in.SampleTokens)
	}
	if each == nil && in.SampleTokens >= 1 && throughput != nil {
		each = &metrics.Figure{Value: in.SampleTokens}
	}
	if each == nil {
		return
	}
	all := measure.Reported(measure.TokensPerSecond, "tokens/s", measure.Higher)
	worker := measure.Reported(measure.TokensPerSecond+"_per_worker", "tokens/s", measure.Neither)
	if in.Device == "gpu" { // the unit in logs that have one
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

// ofTokens sets the throughput from the tokens/s in a log, if the log has no samples/s and the
// number of tokens per sample is known.
func (r *Outcome) ofTokens(in Input, f metrics.Figure) {
	known := r.Known(measure.TokensPerSecond)
	if known == nil || f.Unit != "tokens/s" || len(f.At) > 0 || !measure.KindOf(in.Kind).Trains || in.SampleTokens < 1 || len(in.Steps) > 0 || r.Known(measure.Throughput) != nil {
		return
	}
	r.Values[measure.Throughput] = *known / in.SampleTokens
	delete(r.Why, measure.Throughput)
	f.Name = measure.Throughput
	if in.SampleTokens > 1 {
		f.Note = strings.TrimSuffix(fmt.Sprintf("tokens_per_second over the %g tokens of a sample; %s", in.SampleTokens, f.Note), "; ")
	}
	r.warn("%s", describe(f))
}

// SampleTokens returns the number of tokens per sample, from a run's parameters; 0 if unknown.
// Imported runs have no plan that computed it.
func SampleTokens(parameters map[string]any) float64 {
	if n := amount(parameters[measure.SampleTokensKey]); n > 0 {
		return n
	}
	switch parameters[measure.SampleKey] {
	case measure.Token:
		return 1
	case measure.Sequence:
		return amount(parameters["workload.sequence"])
	}
	return 0
}

// amount returns the value of a parameter that is a number; 0 for other values.
func amount(v any) float64 {
	switch x := v.(type) {
	case float64:
		return x
	case int64:
		return float64(x)
	}
	return 0
}
