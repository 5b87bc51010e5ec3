package workspace

import (
	"errors"
	"fmt"
	"maps"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
)

// ErrNoPrices is the error of a site file without prices.
var ErrNoPrices = errors.New("no prices are given")

// A Tariff holds a site file's prices in one currency on one market.
type Tariff struct {
	Currency string
	Energy   cost.Energy // the site's price and other facts about energy
	prices   *cost.Table
	site     *study.Site
}

// NewTariff takes a site file's prices in a currency on a market. "" is the first
// price's currency, and cost.OnDemand. The error wraps ErrNoPrices where the file has
// no prices at all, and names the file otherwise.
func NewTariff(site *study.Site, currency, market string) (*Tariff, error) {
	prices, err := pricesOf(site)
	if err != nil {
		return nil, err
	}
	if len(prices) == 0 {
		return nil, ErrNoPrices
	}
	table, err := cost.NewTable(prices, currency, market)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", site.File, err)
	}
	e := site.Energy
	return &Tariff{Energy: cost.Energy{PerKWh: e.PerKWh, Currency: e.Currency, Grams: e.CO2PerKWh, AsOf: e.AsOf, Source: e.Source}, Currency: table.Currency, prices: table, site: site}, nil
}

// pricesOf converts a site file's prices for package cost.
func pricesOf(site *study.Site) ([]cost.Price, error) {
	var list []cost.Price
	for i, p := range site.Prices {
		c := cost.Price{Per: p.Per, Hour: p.Hour, Currency: p.Currency, Market: p.Market, Where: maps.Clone(p.Where),
			Granularity: p.Granularity.Seconds(), Minimum: p.Minimum.Seconds(), AsOf: p.AsOf, Source: p.Source}
		for label, name := range map[string]string{"partition": p.Partition, machineLabel: p.Machine} {
			if name == "" {
				continue
			}
			if c.Where == nil {
				c.Where = map[string]any{}
			}
			c.Where[label] = name
		}
		if p.TRESBillingWeights != "" {
			var err error
			if c.Weights, err = cost.ParseWeights(p.TRESBillingWeights, p.MaxTRES); err != nil {
				return nil, fmt.Errorf("%s: prices[%d].tres_billing_weights: %w", site.File, i, err)
			}
		}
		list = append(list, c)
	}
	return list, nil
}
