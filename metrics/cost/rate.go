package cost

import (
	"fmt"
	"math"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A Rate is the hourly cost of one use, by the prices that apply to it.
type Rate struct {
	Currency string
	Parts    []Part
}

// A Part is one price and the number of units held of its resource.
type Part struct {
	Price Price
	Units float64
}

// PerHour returns the hourly price, before granularity and minimum.
func (r Rate) PerHour() float64 {
	var sum float64
	for _, p := range r.Parts {
		sum += p.Units * p.Price.Hour
	}
	return sum
}

// Cost returns the price of holding the use for the given seconds without a break.
func (r Rate) Cost(seconds float64) float64 {
	var sum float64
	for _, p := range r.Parts {
		sum += p.Units * p.Price.Hour * p.Price.Billed(seconds) / 3600
	}
	return sum
}

// Billed returns the seconds that are paid for a use of the given length: rounded up
// to the granularity, and at least the minimum.
func (p *Price) Billed(seconds float64) float64 {
	if g := p.Granularity; g > 0 {
		// 3600.0000000001 s, the sum of many floats, are one hour.
		seconds = g * math.Ceil(seconds/g*(1-1e-12))
	}
	return max(seconds, p.Minimum)
}

// String returns the basis of the rate: "2 × 3.2 EUR per node-hour, as of 2026-01-01".
func (r Rate) String() string {
	parts := make([]string, len(r.Parts))
	for i, p := range r.Parts {
		parts[i] = fmt.Sprintf("%s × %s", number.Exact(p.Units), p.Price.String())
	}
	return strings.Join(parts, " + ")
}

// String returns the price and its terms: "3.2 EUR per node-hour (spot; billed by 60
// s, 3600 s at least; as of 2026-01-01; price list)".
func (p *Price) String() string {
	s := fmt.Sprintf("%s %s per %s-hour", number.Exact(p.Hour), p.Currency, p.Per)
	var more []string
	if p.Market == Spot {
		more = append(more, Spot)
	}
	if p.Weights != nil {
		more = append(more, p.Weights.String())
	}
	var billed []string
	if p.Granularity > 0 {
		billed = append(billed, "by "+number.Exact(p.Granularity)+" s")
	}
	if p.Minimum > 0 {
		billed = append(billed, number.Exact(p.Minimum)+" s at least")
	}
	if billed != nil {
		more = append(more, "billed "+strings.Join(billed, ", "))
	}
	if p.AsOf != "" {
		more = append(more, "as of "+p.AsOf)
	}
	if p.Source != "" {
		more = append(more, p.Source)
	}
	if more == nil {
		return s
	}
	return s + " (" + strings.Join(more, "; ") + ")"
}
