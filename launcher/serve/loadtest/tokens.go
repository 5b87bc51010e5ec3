package loadtest

import (
	"fmt"
	"math"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// tokens records what a language model read and generated.
func (r *recorder) tokens(v *Verdict) {
	tokens, counted := v.Total.Tokens()
	if tokens == 0 {
		return
	}
	throughput := v.Total.OutputThroughput()
	r.figure(measure.OutputThroughput, "tokens/s", throughput)
	r.figure(measure.OutputTokens, "tokens", float64(tokens)/float64(v.Total.Good))
	if seconds, why := v.Percentile(PerToken, 0.5); why == "" && seconds > 0 {
		r.figure(measure.OutputPerUser, "tokens/s", 1/seconds)
	}
	if r.service.GPUs > 0 {
		r.figure(measure.OutputPerGPU, "tokens/s", throughput/float64(r.service.GPUs))
	}
	if !counted {
		r.doubts = append(r.doubts, "the service does not report its tokens, so each text counts as one, although it may have several; request them with \"stream_options\": {\"include_usage\": true}")
	}
	input, cached, reasoning := v.Total.Shares()
	if input > 0 {
		r.figure(measure.InputTokens, "tokens", input)
		r.figure(measure.CachedTokens, "", cached)
	}
	if reasoning > 0 {
		r.figure(measure.ReasoningTokens, "", reasoning)
	}
	if counted {
		r.length("input", input, v.Total.Good, r.service.Input, "a word is not a token for this model")
		r.length("output", float64(tokens)/float64(v.Total.Good), v.Total.Good, r.service.Output, "answers end early or are cut off; if the server supports it, set \"ignore_eos\": true in the payload")
	}
}

// offLength is the largest relative difference between the requested and the counted mean length without a
// warning.
const offLength = 0.05

// length adds a warning if the mean length of n requests or answers is not the one asked for, and chance does
// not explain it.
func (r *recorder) length(of string, got float64, n int64, want study.TokenLength, because string) {
	mean, sd := want.Moments()
	if got > 0 && mean > 0 && math.Abs(got-mean) > max(offLength*mean, far*sd/math.Sqrt(float64(n))) {
		r.doubts = append(r.doubts, fmt.Sprintf("the service counts %s %s tokens per request on average, and workload.prompts ask for %s: %s", number.Significant(got), of, number.Significant(mean), because))
	}
}
