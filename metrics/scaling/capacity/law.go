package capacity

import (
	"cmp"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// level is the default level of the intervals.
const level = 0.95

// sure returns the probability of carrying the demand that an answer needs: the demand is below the
// interval.
func (c carried) sure() float64 { return (1 + cmp.Or(c.level, level)) / 2 }

// rateAt returns the rate of a number of replicas: measured, interpolated between measured
// numbers, or extrapolated. Replicas that share a request queue carry more than in
// proportion, especially few of them. Replicas that share memory or a network carry less,
// and increasingly so. Beyond the largest number, the rate is a power law of the replicas.
// Its exponent is that between the largest measured number and half of it, bent towards 1
// if it is above 1 and further down if it is below. The bounds include simulated services
// (TestTruthOfCapacity).
func rateAt(measured []carried, replicas int) carried {
	i, found := slices.BinarySearchFunc(measured, replicas, func(c carried, k int) int { return c.replicas - k })
	switch {
	case found:
		return measured[i]
	case i == 0:
		return measured[0].scaled(replicas, 1, 2.7, 0.5)
	case i == len(measured):
		return beyond(measured, replicas)
	}
	below, above := measured[i-1], measured[i]
	part := math.Log(float64(replicas)/float64(below.replicas)) / math.Log(float64(above.replicas)/float64(below.replicas))
	between := func(a, b float64) float64 { return math.Exp((1-part)*math.Log(a) + part*math.Log(b)) }
	off := 0.02 * float64(above.replicas) / float64(below.replicas)
	c := carried{replicas: replicas, byRates: above.byRates, level: below.level, rate: between(below.rate, above.rate), low: between(below.low, above.low) * (1 - off), high: between(below.high, above.high) * (1 + off)}
	c.rate = min(max(c.rate, c.low), c.high)
	return c
}

// beyond is rateAt for more replicas than measured.
func beyond(measured []carried, replicas int) carried {
	last := measured[len(measured)-1]
	k := float64(last.replicas)
	if len(measured) == 1 {
		return last.scaled(replicas, 1, 0.85-0.25*math.Log(k)/math.Log(3), 1+1.7/k)
	}
	before := measured[0] // the largest number up to half as many; nearer ones are less informative
	for _, m := range measured {
		if 2*m.replicas <= last.replicas {
			before = m
		}
	}
	doublings := math.Log(k / float64(before.replicas))
	excess := math.Log(last.rate/before.rate)/doublings - 1
	less := math.Hypot(math.Log(last.rate/last.low), math.Log(before.high/before.rate)) / doublings
	more := math.Hypot(math.Log(last.high/last.rate), math.Log(before.rate/before.low)) / doublings
	middle := 1 + 0.4*excess
	if excess < 0 {
		middle = 1 + 1.5*excess
	}
	low := 1 - 0.1 + 2.5*min(0, excess-less/2)
	high := 1 + 0.1 + max(0, excess+more)
	return last.scaled(replicas, middle, min(low, middle), max(high, middle))
}

// scaled returns the rate of another number of replicas if the rate is a power law of it.
func (c carried) scaled(replicas int, power, low, high float64) carried {
	by := float64(replicas) / float64(c.replicas)
	c.replicas, c.runs = replicas, 0
	c.rate, c.low, c.high = c.rate*math.Pow(by, power), c.low*math.Pow(by, low), c.high*math.Pow(by, high)
	return c
}

// carries returns the probability that the demand is carried; nil if unknown, between
// measured rates.
func (c carried) carries(demand float64) *float64 {
	p := 0.0
	switch {
	case demand > c.high:
		p = min(1-c.sure(), c.belief(demand))
	case demand <= c.low:
		p = max(c.sure(), c.belief(demand))
	case c.byRates || math.IsInf(c.high, 1):
		return nil
	default:
		p = c.belief(demand)
	}
	return &p
}

func (c carried) belief(demand float64) float64 {
	if math.IsInf(c.high, 1) {
		return c.sure()
	}
	if c.low <= 0 {
		return 1 - c.sure()
	}
	return 1 - decision.Belief{Value: c.rate, Low: c.low, High: c.high, Level: cmp.Or(c.level, level)}.AtMost(demand)
}

// counts returns the numbers of replicas to consider: all up to 64, then steps of at most 2
// %, and the measured ones.
func counts(measured []carried) []int {
	var list []int
	farthest := most * measured[len(measured)-1].replicas
	for k := 1; k <= farthest; k += max(1, k/64) {
		list = append(list, k)
	}
	for _, m := range measured {
		list = append(list, m.replicas)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
