package extract

import (
	"fmt"
	"math"

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

// ratioOf appends a row's ratio of bus bandwidth to algorithmic bandwidth, in GB/s with two
// decimals, if these are large enough for it.
func ratioOf(ratios []float64, alg, bus Value) []float64 {
	if alg.Number > 0.5 && bus.Number > 0 {
		ratios = append(ratios, bus.Number/alg.Number)
	}
	return ratios
}

// A bandwidth is a row's result with its rounding.
type bandwidth struct {
	time, alg, bus Value // µs, GB/s, GB/s
	bytes          float64
}

// contradiction says why a row's figures cannot all be right; "" if they can. The first bandwidth
// follows from bytes and time, the second is the first times factor; 0: unknown.
func (b bandwidth) contradiction(factor float64) string {
	const rounding = 0.006
	t, alg, bus := b.time.Number, b.alg.Number, b.bus.Number
	if t > 0 && alg > 0 && !within(t*alg*1e3, b.bytes, 1.1+0.01/t+rounding/alg) {
		return fmt.Sprintf("%.4g µs at %.4g GB/s are not %.10g bytes: the time or the bandwidth is in another unit, or the row is damaged", t, alg, b.bytes)
	}
	if alg > 0 && bus > 0 && factor > 0 && math.Abs(bus-factor*alg) > 0.03*bus+rounding*(1+factor) {
		return fmt.Sprintf("a busbw of %.4g GB/s is not %.4g times the algbw of %.4g GB/s", bus, factor, alg)
	}
	return ""
}
