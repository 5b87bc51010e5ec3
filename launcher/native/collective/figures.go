package collective

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
)

// Figures returns the result as a run records it.
func (t BenchRow) Figures() []metrics.Figure {
	return busbw.Measurement{Op: string(t.Op), Bytes: float64(t.Bytes), InPlace: t.InPlace, Iterations: t.Iterations,
		Seconds: &t.Median, Min: &t.Min, Mean: &t.Mean, P99: &t.P99, CV: &t.CV, AlgBW: &t.AlgBW, BusBW: &t.BusBW}.Figures()
}

// MarshalJSON encodes the result in base units.
func (t BenchRow) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Op         Op      `json:"op"`
		Bytes      int64   `json:"bytes"`
		InPlace    bool    `json:"in_place"`
		Iterations int     `json:"iterations"`
		Seconds    float64 `json:"seconds"`
		Min        float64 `json:"seconds_min"`
		Mean       float64 `json:"seconds_mean"`
		P99        float64 `json:"seconds_p99"`
		CV         float64 `json:"cv"`
		AlgBW      float64 `json:"algbw"`
		BusBW      float64 `json:"busbw"`
	}{t.Op, t.Bytes, t.InPlace, t.Iterations, t.Median, t.Min, t.Mean, t.P99, t.CV, t.AlgBW, t.BusBW})
}

// A BenchTable prints results in the format of nccl-tests, so that its parsers can read them: times
// in µs (medians, as the header says), bandwidths in GB/s. Every printed row was checked; a wrong
// element would have ended the benchmark.
type BenchTable struct {
	w    io.Writer
	op   Op
	half *BenchRow // the out-of-place result, until the in-place one arrives
}

// NewBenchTable prints a benchmark's header and returns its table.
func NewBenchTable(w io.Writer, backend string, ranks int, o BenchOptions) *BenchTable {
	fmt.Fprintf(w, "# %d ranks through %s, %d iterations after %d to warm up; time is their median, of the slowest rank in each\n",
		ranks, backend, o.Iterations, o.Warmup)
	return &BenchTable{w: w}
}

// Add adds a result. The out-of-place result of a size comes first.
func (t *BenchTable) Add(r BenchRow) error {
	if !r.InPlace {
		t.half = &r
		return nil
	}
	if r.Op != t.op {
		t.op = r.Op
		fmt.Fprintf(t.w, "# Collective test starting: %s\n#\n#%66s%36s\n", r.Op, "out-of-place", "in-place")
		fmt.Fprintf(t.w, "#%12s%14s%10s%8s%8s", "size", "count", "type", "redop", "root")
		for range 2 {
			fmt.Fprintf(t.w, "%9s%9s%9s%7s", "time", "algbw", "busbw", "#wrong")
		}
		fmt.Fprintf(t.w, "\n#%12s%14s%10s%8s%8s", "(B)", "(elements)", "", "", "")
		for range 2 {
			fmt.Fprintf(t.w, "%9s%9s%9s%7s", "(us)", "(GB/s)", "(GB/s)", "")
		}
		fmt.Fprintln(t.w)
	}
	redop, root := "none", -1
	switch r.Op {
	case AllReduce, ReduceScatter:
		redop = "sum"
	case Broadcast:
		root = 0
	}
	fmt.Fprintf(t.w, "%13d%14d%10s%8s%8d", r.Bytes, r.Bytes/elementBytes, "float", redop, root)
	for _, half := range []*BenchRow{t.half, &r} {
		if half == nil || half.Bytes != r.Bytes || half.Op != r.Op {
			fmt.Fprintf(t.w, "%9s%9s%9s%7s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		fmt.Fprintf(t.w, " %s %8.3g %8.3g%7d", micros(half.Median), half.AlgBW/1e9, half.BusBW/1e9, 0)
	}
	_, err := fmt.Fprintln(t.w)
	return err
}

// micros formats a time in µs with four digits and no exponent.
func micros(seconds float64) string {
	v := seconds * 1e6
	decimals := 3
	for whole := v; whole >= 10 && decimals > 0; whole /= 10 {
		decimals--
	}
	return fmt.Sprintf("%8.*f", decimals, v)
}
