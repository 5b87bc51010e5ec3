package study

import (
	"fmt"
	"strconv"
	"strings"
)

// Arrivals names the process by which an open loop draws its send times: "poisson", "constant",
// "gamma(SHAPE)" or "trace"; "" is "poisson".
type Arrivals string

// The arrival processes.
const (
	Poisson  = "poisson"
	Constant = "constant"
	// Gamma draws gaps from a gamma distribution of a given shape: 1 is Poisson, less is burstier.
	Gamma = "gamma"
	// Trace repeats the send times of the trace in workload.prompts.
	Trace = "trace"
)

// Of returns the name of the process, and the shape for Gamma.
func (a Arrivals) Of() (process string, shape float64) {
	process, rest, _ := strings.Cut(string(a), "(")
	shape, _ = strconv.ParseFloat(strings.TrimSuffix(rest, ")"), 64)
	if process == "" {
		process = Poisson
	}
	return process, shape
}

func checkArrivals(v any) string {
	text := string(v.(Arrivals))
	switch process, shape := Arrivals(text).Of(); {
	case text == Poisson || text == Constant || text == Trace:
		return ""
	case process == Gamma && strings.HasSuffix(text, ")") && shape >= 0.01 && shape <= 1000:
		return ""
	}
	return fmt.Sprintf("%q is not known; valid: \"poisson\", \"constant\", \"gamma(SHAPE)\" with a shape from 0.01 (bursts) through 1 (as \"poisson\") to 1000 (nearly constant), and \"trace\" for the times of workload.prompts.trace", text)
}
