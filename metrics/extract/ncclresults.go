package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// ncclFactors returns the ratios of bus bandwidth to algorithmic bandwidth that nccl-tests uses on
// some ranks (see its doc/PERFORMANCE.md), of a collective, or of all if its name is not known.
func ncclFactors(op string, ranks float64) []float64 {
	part := (ranks - 1) / ranks
	switch op {
	case "all_reduce":
		return []float64{2 * part}
	case "all_gather", "reduce_scatter", "alltoall", "gather", "scatter", "hypercube":
		return []float64{part}
	case "broadcast", "reduce", "sendrecv":
		return []float64{1}
	}
	return []float64{1, part, 2 * part}
}

// mostRanks limits the search for the number of ranks that a ratio fits.
const mostRanks = 1 << 14

// ncclFactor returns the ratio that the rows of a benchmark must have: the possible one that their
// median fits. A log may list only the first rank of each process, so the number of ranks may be a
// multiple of those listed. 0: unknown.
func (l *log) ncclFactor(op string, ratios []float64) float64 {
	median, err := reduceBy("median", ratios)
	listed := l.res.Workers
	if err != nil || listed == 0 {
		return median
	}
	for n := listed; n <= mostRanks; n += listed {
		for _, f := range ncclFactors(op, float64(n)) {
			if math.Abs(median-f) > 0.01*f {
				continue
			}
			if n > listed {
				l.note("the log lists %s, and its busbw is %.4g times algbw, as on %d: its number of ranks may be wrong", number.Count(listed, "rank"), median, n)
			}
			return f
		}
	}
	return ncclFactors(op, float64(listed))[0]
}

// An ncclResult is a benchmark's result for one message size and placement.
type ncclResult struct {
	op             string // the collective, with what distinguishes the result from others of its size; "" if not known
	bytes          float64
	inPlace        bool
	time, alg, bus Value // µs, GB/s, GB/s
}

// contradiction says why the figures of a result cannot all be right; "" if they can. The first bandwidth
// follows from bytes and time, the second is the first times factor; 0: unknown.
func (r ncclResult) contradiction(factor float64) string {
	const rounding = 0.006
	t, alg, bus := r.time.Number, r.alg.Number, r.bus.Number
	if t > 0 && alg > 0 && !within(t*alg*1e3, r.bytes, 1.1+0.01/t+rounding/alg) {
		return fmt.Sprintf("%.4g µs at %.4g GB/s are not %.10g bytes: the time or the bandwidth is in another unit, or the row is damaged", t, alg, r.bytes)
	}
	if alg > 0 && bus > 0 && factor > 0 && math.Abs(bus-factor*alg) > 0.03*bus+rounding*(1+factor) {
		return fmt.Sprintf("a busbw of %.4g GB/s is not %.4g times the algbw of %.4g GB/s", bus, factor, alg)
	}
	return ""
}

// ncclResults collects the results of a benchmark.
type ncclResults struct {
	l     *log
	list  []ncclResult
	wrong []string // sizes with wrong results
	line  int      // line of the first wrong result
}

// add records a result; wrong is its number of wrong elements, the zero Value if it was not checked.
func (b *ncclResults) add(r ncclResult, wrong Value) {
	b.list = append(b.list, r)
	if wrong.Number == 0 {
		return
	}
	if b.line == 0 {
		b.line = wrong.Line
	}
	if text := fmt.Sprintf("%.10g", r.bytes); !slices.Contains(b.wrong, text) {
		b.wrong = append(b.wrong, text)
	}
}

// figures adds the figures of all results of a collective; op is "" if its name is not known.
func (b *ncclResults) figures(op string) {
	type place struct {
		op      string
		bytes   float64
		inPlace bool
	}
	l, seen, noted := b.l, map[place]bool{}, false
	var ratios []float64
	for _, r := range b.list {
		if r.alg.Number > 0.5 && r.bus.Number > 0 { // large enough, with two decimals
			ratios = append(ratios, r.bus.Number/r.alg.Number)
		}
	}
	factor := l.ncclFactor(op, ratios)
	for _, r := range b.list {
		at := place{r.op, r.bytes, r.inPlace}
		if seen[at] {
			l.fail(r.time.Line, "a second row for %.10g bytes; one log is one benchmark: split it", r.bytes)
		}
		seen[at] = true
		why := r.contradiction(factor)
		if why != "" && !noted {
			noted = true
			l.note("line %d: %s", r.time.Line, why)
		}
		b.figure(r, measure.Time, "s", 1e-6, r.time, strings.Contains(why, "µs"))
		b.figure(r, measure.AlgBW, "B/s", 1e9, r.alg, strings.Contains(why, "µs"))
		b.figure(r, measure.BusBW, "B/s", 1e9, r.bus, why != "")
	}
}

// figure adds one figure of a result; wrong is true if others of the result contradict it.
func (b *ncclResults) figure(r ncclResult, name, unit string, scale float64, v Value, wrong bool) {
	switch {
	case v.Number < 0:
		b.l.fail(v.Line, "%s is %g; want 0 or more", name, v.Number)
	case v.Number == 0:
		b.l.note("a %s of 0 is less than the log's digits show, and left out", name)
		return
	}
	f := metrics.Figure{Name: name, Value: scaled(v.Number, scale), Unit: unit, At: busbw.At(r.op, r.bytes, r.inPlace)}
	if wrong {
		f = b.l.contradicted(f, "time, algbw and busbw of a row contradict each other")
	}
	b.l.add(metrics.Event{Figure: &f}, scale, v)
}

// average adds the mean bus bandwidth that the benchmark states, in GB/s.
func (b *ncclResults) average(v Value) {
	b.l.add(metrics.Event{Figure: &metrics.Figure{Name: "avg_busbw", Value: v.Number * 1e9, Unit: "B/s",
		Note: "nccl-tests' mean over all sizes, small ones too"}}, 1e9, v)
}

// judge marks the run as failed if results were wrong. stated is what the benchmark says of them:
// "Out of bounds values : N FAILED".
func (b *ncclResults) judge(stated string) {
	switch {
	case len(b.wrong) > 0:
		shown := b.wrong[:min(len(b.wrong), 5)]
		b.l.res.Failed = fmt.Sprintf("nccl-tests found wrong results at %s bytes (line %d)", strings.Join(shown, ", "), b.line)
		if n := len(b.wrong) - len(shown); n > 0 {
			b.l.res.Failed += " and " + number.Count(n, "more size")
		}
	case strings.HasSuffix(stated, "FAILED"):
		b.l.res.Failed = "nccl-tests says " + stated
	}
}

// ranks sets the number of ranks from the group of each. If ranks form groups, each group runs its
// own benchmark at the same time, and the number is not set.
func (b *ncclResults) ranks(groups []string) {
	slices.Sort(groups)
	b.l.res.Workers = len(groups)
	if n := len(slices.Compact(slices.Clone(groups))); n > 1 {
		b.l.note("%d groups of ranks ran collectives at the same time (NCCL_TESTS_SPLIT): bandwidths are those of one group, and the number of ranks in it is not taken from the log", n)
		b.l.res.Workers = 0
	}
}
