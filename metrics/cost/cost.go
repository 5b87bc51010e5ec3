// Package cost converts the resources and time of runs to money or to a computing
// centre's allocation units, and compares configurations by time and cost.
//
// It has no side effects: callers pass the prices of a site file. It rounds nothing,
// because ratios of rounded prices can be wrong in the first digit. A run that cannot
// be priced has no cost and a reason; its cost is never 0.
package cost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// The resources that a price can be for, per hour.
const (
	PerNode    = "node"
	PerGPU     = "gpu"
	PerVCPU    = "vcpu"
	PerBilling = "billing" // a unit of Slurm's billing TRES
)

// pers are the valid values of Price.Per.
var pers = []string{PerNode, PerGPU, PerVCPU, PerBilling}

// The markets that a price can apply to.
const (
	OnDemand = "on-demand"
	Spot     = "spot"
)

// Markets are the valid values of Price.Market.
var Markets = []string{OnDemand, Spot}

// A Price is the cost of one resource per hour, and the conditions under which it
// applies.
type Price struct {
	Per      string  // one of Pers
	Hour     float64 // in Currency, 0 or more
	Currency string  // ISO 4217 or a unit of account: "EUR", "core-h"
	Market   string  // one of Markets; "" is OnDemand

	// Where holds the labels that a use must have for the price to apply, by name:
	// string, bool, int64 or float64. Numbers are equal by value. If several prices
	// for a resource apply, the one with the most labels wins.
	Where map[string]any

	// Granularity is the billing unit in seconds (use is rounded up to a multiple of
	// it) and Minimum the shortest time billed; 0 means no rounding and no minimum.
	Granularity, Minimum float64

	Weights *Weights // with PerBilling: how a use becomes billing units

	AsOf   string // date of the price, 2006-01-02; "" if unknown
	Source string // where the price was published
}

// A Use is the resources that a run holds while it runs. A nil count is unknown, which
// differs from 0.
type Use struct {
	Nodes, GPUs, CPUs *int
	MemoryBytes       *int64 // over all nodes
	GPUType           string // as in --gres=gpu:TYPE; "" if unknown
	Labels            map[string]any
}

// A Table holds the prices of one currency and one market.
type Table struct {
	Currency, Market string
	prices           []Price
	others           []Price // of other currencies and markets
}

// errNoPrice is wrapped by errors about uses to which no price applies.
var errNoPrice = errors.New("no price")

// NewTable selects the prices in one currency and market. An empty currency means that
// of the market's first price; an empty market means OnDemand.
func NewTable(prices []Price, currency, market string) (*Table, error) {
	t := &Table{Currency: currency, Market: cmp.Or(market, OnDemand)}
	currencies := map[string]struct{}{}
	for _, p := range prices {
		if err := p.check(); err != nil {
			return nil, err
		}
		if cmp.Or(p.Market, OnDemand) != t.Market {
			t.others = append(t.others, p)
			continue
		}
		currencies[p.Currency] = struct{}{}
		if t.Currency == "" {
			t.Currency = p.Currency
		}
		if p.Currency == t.Currency {
			t.prices = append(t.prices, p)
		} else {
			t.others = append(t.others, p)
		}
	}
	if len(t.prices) == 0 {
		switch {
		case len(prices) == 0:
			return nil, fmt.Errorf("%w is given", errNoPrice)
		case len(currencies) == 0:
			return nil, fmt.Errorf("%w on the %s market", errNoPrice, t.Market)
		}
		return nil, fmt.Errorf("%w in %s on the %s market; prices are in %s", errNoPrice, t.Currency, t.Market,
			strings.Join(slices.Sorted(maps.Keys(currencies)), ", "))
	}
	return t, nil
}

func (p *Price) check() error {
	switch {
	case !slices.Contains(pers, p.Per):
		return fmt.Errorf("a price per %q; valid: %s", p.Per, strings.Join(pers, ", "))
	case !(p.Hour >= 0) || p.Hour > 1e15:
		return fmt.Errorf("a price of %g %s an hour; want 0 to 1e15", p.Hour, p.Currency)
	case p.Currency == "":
		return fmt.Errorf("a price of %g per %s-hour has no currency; set one, such as \"EUR\"", p.Hour, p.Per)
	case p.Market != "" && !slices.Contains(Markets, p.Market):
		return fmt.Errorf("market %q is not known; valid: %s", p.Market, strings.Join(Markets, ", "))
	case !(p.Granularity >= 0) || !(p.Minimum >= 0):
		return fmt.Errorf("granularity %g s, minimum %g s; want 0 or more", p.Granularity, p.Minimum)
	case (p.Per == PerBilling) != (p.Weights != nil):
		return fmt.Errorf("a price per %s-hour: prices per %s-hour need billing weights, and no other price has them", p.Per, PerBilling)
	}
	return nil
}

// Rate returns the hourly cost of a use. For each resource (node, GPU, vCPU, billing
// unit) the price with the most matching labels applies; among equals, the latest.
// Prices of different resources add up, as clouds bill them. Prices per GPU do not
// apply to a use without GPUs. If another currency or market prices the same resources
// and one more, Rate returns an error, because the sum without that resource would be
// too low. Prices of entirely different resources, such as billing units, are an
// alternative way to pay and no error.
//
// The error wraps errNoPrice if no price applies. Other errors say which count is
// unknown, which two prices contradict each other, or which resource is priced only
// elsewhere.
func (t *Table) Rate(u Use) (Rate, error) {
	r := Rate{Currency: t.Currency}
	var missing []string
	for _, per := range pers {
		p, err := t.holds(per, u)
		if err != nil {
			return Rate{}, err
		}
		if p == nil {
			missing = append(missing, per)
			continue
		}
		n, err := p.units(u)
		if err != nil {
			return Rate{}, err
		}
		if per == PerGPU && n == 0 {
			continue
		}
		r.Parts = append(r.Parts, Part{Price: *p, Units: n})
	}
	if len(r.Parts) == 0 {
		return Rate{}, fmt.Errorf("%w in %s (%s) applies%s", errNoPrice, t.Currency, t.Market, t.wanted(u))
	}
	if err := t.complete(r, missing, u); err != nil {
		return Rate{}, err
	}
	return r, nil
}

// complete returns an error if a resource of the use is priced only in another
// currency or market that also prices everything in r.
func (t *Table) complete(r Rate, missing []string, u Use) error {
	elsewhere := map[[2]string]map[string]bool{} // by currency and market: the resources priced
	var lists [][2]string
	for _, p := range t.others {
		if n, err := p.units(u); !p.fits(u.Labels) || err == nil && n == 0 {
			continue
		}
		list := [2]string{p.Currency, cmp.Or(p.Market, OnDemand)}
		if elsewhere[list] == nil {
			elsewhere[list] = map[string]bool{}
			lists = append(lists, list)
		}
		elsewhere[list][p.Per] = true
	}
	for _, list := range lists {
		priced := elsewhere[list]
		if slices.ContainsFunc(r.Parts, func(p Part) bool { return !priced[p.Price.Per] }) {
			continue
		}
		for _, per := range missing {
			if priced[per] {
				return fmt.Errorf("a %s-hour has a price in %s (%s) and none in %s (%s), so sums would omit it; add one, or distinguish the offers with where = {…}", per, list[0], list[1], t.Currency, t.Market)
			}
		}
	}
	return nil
}

// holds returns the price that applies to one resource; nil if none does.
func (t *Table) holds(per string, u Use) (*Price, error) {
	var best *Price
	var equal bool
	for i := range t.prices {
		p := &t.prices[i]
		if p.Per != per || !p.fits(u.Labels) {
			continue
		}
		order := 1
		if best != nil {
			order = cmp.Or(cmp.Compare(len(p.Where), len(best.Where)), strings.Compare(p.AsOf, best.AsOf))
		}
		switch {
		case order > 0:
			best, equal = p, false
		case order == 0:
			equal = true
		}
	}
	if equal {
		return nil, fmt.Errorf("two prices per %s-hour in %s apply to the same run; give one of them one more label, or another date", per, t.Currency)
	}
	return best, nil
}

func (p *Price) fits(labels map[string]any) bool {
	for key, want := range p.Where {
		have, ok := labels[key]
		if !ok || !Equal(want, have) {
			return false
		}
	}
	return true
}

// wanted says which labels a use would need for a price to apply.
func (t *Table) wanted(u Use) string {
	missing := map[string]struct{}{}
	for _, p := range t.prices {
		for key := range p.Where {
			have, ok := u.Labels[key]
			if !ok {
				missing[key+" (not recorded)"] = struct{}{}
			} else if !Equal(p.Where[key], have) {
				missing[fmt.Sprintf("%s (here: %s)", key, text(have))] = struct{}{}
			}
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "; prices depend on " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
}

// units returns how many units of the price's resource u holds.
func (p *Price) units(u Use) (float64, error) {
	count := func(n *int) (float64, error) {
		if n == nil {
			text := fmt.Sprintf("its price is per %s-hour, but the number of %ss is not recorded", p.Per, p.Per)
			if u.Labels["import.format"] != nil {
				text += fmt.Sprintf(" (import --set %s=N says it)", map[string]string{PerNode: "nodes", PerGPU: "gpus", PerVCPU: "cpus"}[p.Per])
			}
			return 0, errors.New(text)
		}
		return float64(*n), nil
	}
	switch p.Per {
	case PerNode:
		return count(u.Nodes)
	case PerGPU:
		return count(u.GPUs)
	case PerVCPU:
		return count(u.CPUs)
	}
	return p.Weights.Units(u)
}

// Equal reports whether two labels match: numbers by value, regardless of type,
// including numbers given as text.
func Equal(a, b any) bool { return text(a) == text(b) }

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

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
