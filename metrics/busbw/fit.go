package busbw

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
)

// A Link is Hockney's model of one operation in one run: a message of s bytes takes
// Alpha + s/Beta seconds (Hockney, Parallel Computing 20, 1994).
type Link struct {
	Op      string
	InPlace bool
	Alpha   float64 // latency, seconds
	// Beta is the bandwidth of a long message, bytes/s of the whole array.
	Beta  float64
	Sizes int // number of sizes fitted
	// Low and High are the largest errors of the model below and above the measured
	// times, as model/measured − 1. They can be large: caches and changes of algorithm
	// bend real curves.
	Low, High float64
}

// minSizes is the number of sizes that a fit needs: one more than its coefficients.
const minSizes = 3

// Seconds returns the predicted time of a message of the given size.
func (l Link) Seconds(bytes float64) float64 { return l.Alpha + bytes/l.Beta }

// A message is one data point of a fit.
type message struct{ bytes, seconds float64 }

// Fit fits a Link to each operation and placement in a run's measurements by least
// absolute deviations of log time. Alpha and Beta are never negative. why lists the
// operations without a fit, with the reason.
func Fit(list iter.Seq[Measurement]) (links []Link, why []string) {
	type curve struct {
		op      string
		inPlace bool
	}
	messages := map[curve][]message{}
	for m := range list {
		if m.Seconds == nil || !(*m.Seconds > 0) || math.IsInf(*m.Seconds, 0) || !(m.Bytes > 0) {
			continue
		}
		c := curve{m.Op, m.InPlace}
		messages[c] = append(messages[c], message{m.Bytes, *m.Seconds})
	}
	curves := slices.SortedFunc(maps.Keys(messages), func(a, b curve) int {
		return cmp.Or(compareOps(a.op, b.op), cmp.Compare(number(a.inPlace), number(b.inPlace)))
	})
	for _, c := range curves {
		l, err := fit(messages[c])
		if err != nil {
			why = append(why, fmt.Sprintf("no latency and bandwidth for %s: %v", opName(c.op, c.inPlace), err))
			continue
		}
		l.Op, l.InPlace = c.op, c.inPlace
		links = append(links, l)
	}
	return links, why
}

// fit minimises the sum over sizes of |log(model/time)|: a time three times too long
// weighs as much as one three times too short, short messages as much as long ones,
// and a disturbed size no more than any other. With ρ = 1/(αβ) the model is α(1 + ρs),
// and for a given ρ the best log α is the median of log t − log(1 + ρs). That leaves a
// search over ρ. It may have several minima, so fit first scans a grid.
func fit(list []message) (Link, error) {
	slices.SortStableFunc(list, func(a, b message) int { return cmp.Compare(a.bytes, b.bytes) })
	list = thinned(list)
	sizes := map[float64]bool{}
	smallest, largest := math.Inf(1), 0.0
	for _, m := range list {
		sizes[m.bytes] = true
		smallest, largest = min(smallest, m.bytes), max(largest, m.bytes)
	}
	if len(sizes) < minSizes {
		return Link{}, fmt.Errorf("%d sizes measured, %d needed", len(sizes), minSizes)
	}
	rest := make([]float64, len(list))
	// off returns the sum of deviations for ρ, and the best log α. If ρ is infinite, α
	// is 0, the model is s/β, and log is log(1/β).
	off := func(rho float64) (sum, log float64) {
		for i, m := range list {
			grown := math.Log1p(rho * m.bytes)
			if math.IsInf(rho, 1) {
				grown = math.Log(m.bytes)
			}
			rest[i] = math.Log(m.seconds) - grown
		}
		slices.Sort(rest)
		log = (rest[(len(rest)-1)/2] + rest[len(rest)/2]) / 2
		for _, r := range rest {
			sum += math.Abs(r - log)
		}
		return sum, log
	}
	// ρ ranges from a latency of 1000 times the longest transfer to 1/1000 of the
	// shortest.
	const steps = 120
	low, high := math.Log(1e-3/largest), math.Log(1e3/smallest)
	at := func(i int) float64 { return low + (high-low)*float64(i)/steps }
	best, least := 0, math.Inf(1)
	for i := range steps + 1 {
		if sum, _ := off(math.Exp(at(i))); sum < least {
			best, least = i, sum
		}
	}
	rho := math.Exp(narrowed(at(max(best-1, 0)), at(min(best+1, steps)), func(x float64) float64 { sum, _ := off(math.Exp(x)); return sum }))
	least, log := off(rho)
	l := Link{Alpha: math.Exp(log), Beta: 1 / (math.Exp(log) * rho), Sizes: len(sizes)}
	if sum, log := off(math.Inf(1)); sum <= least {
		least, l.Alpha, l.Beta = sum, 0, math.Exp(-log)
	}
	if sum, _ := off(0); sum <= least || !(l.Beta > 0) || math.IsInf(l.Beta, 0) {
		return Link{}, fmt.Errorf("its times do not grow with size")
	}
	for _, m := range list {
		off := l.Seconds(m.bytes)/m.seconds - 1
		if math.Abs(off) < 1e-9 { // within the precision of the search
			off = 0
		}
		l.Low, l.High = min(l.Low, off), max(l.High, off)
	}
	return l, nil
}

// narrowed returns the minimum of f between a and b by golden-section search.
func narrowed(a, b float64, f func(float64) float64) float64 {
	inner := (math.Sqrt(5) - 1) / 2
	x, y := b-inner*(b-a), a+inner*(b-a)
	fx, fy := f(x), f(y)
	for b-a > 1e-13*max(1, math.Abs(a), math.Abs(b)) {
		if fx <= fy {
			b, y, fy = y, x, fx
			x = b - inner*(b-a)
			fx = f(x)
		} else {
			a, x, fx = x, y, fy
			y = a + inner*(b-a)
			fy = f(y)
		}
	}
	return (a + b) / 2
}

// thinned returns the list, or evenly spaced elements of a very long one.
func thinned(sorted []message) []message {
	const most = 4096
	if len(sorted) <= most {
		return sorted
	}
	some := make([]message, most)
	for i := range some {
		some[i] = sorted[i*(len(sorted)-1)/(most-1)]
	}
	return some
}

// opName returns the name of an operation and its placement.
func opName(op string, inPlace bool) string {
	if op == "" {
		op = "an unnamed operation"
	}
	if inPlace {
		return op + " in place"
	}
	return op + " out of place"
}
