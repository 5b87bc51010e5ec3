package cost

import (
	"fmt"
	"strings"
)

// joulesPerKWh is the number of joules in a kilowatt-hour.
const joulesPerKWh = 3.6e6

// Energy is a site's price and CO₂ emission per kilowatt-hour; nil means unknown,
// which differs from 0. Energy is shown next to a run's cost and never added to it:
// the price of a node-hour includes the node's energy.
type Energy struct {
	PerKWh   *float64 // in Currency
	Currency string
	Grams    *float64 // of CO₂ per kWh
	AsOf     string   // date of both values, 2006-01-02; "" if unknown
	Source   string
}

// Set reports whether any value is known.
func (e Energy) Set() bool { return e.PerKWh != nil || e.Grams != nil }

// Unknown says which keys to set for unknown values; "" if all are known.
func (e Energy) Unknown() string {
	var words []string
	if e.PerKWh == nil {
		words = append(words, "a price (energy.per_kwh with energy.currency)")
	}
	if e.Grams == nil {
		words = append(words, "CO2 (energy.co2_per_kwh)")
	}
	return strings.Join(words, " and ")
}

// String returns the known values: "0.3 EUR and 380 g of CO2 per kWh (as of
// 2026-01-01; the utility)".
func (e Energy) String() string {
	var words, about []string
	if e.PerKWh != nil {
		words = append(words, fmt.Sprintf("%g %s", *e.PerKWh, e.Currency))
	}
	if e.Grams != nil {
		words = append(words, fmt.Sprintf("%g g of CO2", *e.Grams))
	}
	text := strings.Join(words, " and ") + " per kWh"
	if e.AsOf != "" {
		about = append(about, "as of "+e.AsOf)
	}
	if e.Source != "" {
		about = append(about, e.Source)
	}
	if about != nil {
		text += " (" + strings.Join(about, "; ") + ")"
	}
	return text
}
