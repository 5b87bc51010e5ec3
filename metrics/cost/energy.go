package cost

import (
	"fmt"
	"strings"
)

// joulesPerKWh is how many joules a kilowatt-hour has.
const joulesPerKWh = 3.6e6

// Energy is what a kilowatt-hour costs and how much CO₂ is emitted for it, where a site
// says so; nil is not known, which is not 0. It is beside a run's cost and never in
// it: the price of a node-hour holds the node's energy already.
type Energy struct {
	PerKWh   *float64 // in Currency
	Currency string
	Grams    *float64 // of CO₂ for a kWh
	AsOf     string   // date of the two, 2006-01-02; "" when not said
	Source   string
}

// Set reports whether anything is known.
func (e Energy) Set() bool { return e.PerKWh != nil || e.Grams != nil }

// Unknown says what to set for what is not known; "" where all is.
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

// String is what is known: "0.3 EUR and 380 g of CO2 per kWh (as of 2026-01-01; the utility)".
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
