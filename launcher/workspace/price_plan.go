package workspace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/number"
)

// plannedCosts returns the most that a plan can cost, one text per currency and market:
// what each job holds for its whole time limit. It names jobs without a price.
func plannedCosts(plan *study.Plan, site *study.Site) ([]string, error) {
	prices, err := pricesOf(site)
	if err != nil {
		return nil, err
	}
	var lines, seen []string
	for _, price := range prices {
		if key := price.Currency + "\x00" + price.Market; slices.Contains(seen, key) {
			continue
		} else {
			seen = append(seen, key)
		}
		table, err := cost.NewTable(prices, price.Currency, price.Market)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", site.File, err)
		}
		total, bases, why := 0.0, map[string]bool{}, map[string]int{}
		for _, p := range plan.Points {
			labels := p.Point.Parameters()
			partition(labels, site, p.Partition)
			rate, err := table.Rate(useOf(p.Point.Workers, p.Point.Nodes, labels))
			if err != nil {
				why[err.Error()]++
				continue
			}
			total += rate.Cost(p.Point.Resources.Time.Seconds())
			for _, part := range rate.Parts {
				bases[part.Price.String()] = true
			}
		}
		line := fmt.Sprintf("%s %s at %s", money(total), table.Currency, strings.Join(slices.Sorted(maps.Keys(bases)), " and "))
		if len(bases) == 0 {
			line = "– " + table.Currency
		}
		for _, reason := range slices.Sorted(maps.Keys(why)) {
			line += fmt.Sprintf(" (leaves out %d of %s: %s)", why[reason], number.Count(len(plan.Points), "run"), reason)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// money formats an amount with two decimals, or two significant digits if it is below 0.1.
func money(amount float64) string {
	if amount > 0 && amount < 0.1 {
		return strconv.FormatFloat(amount, 'g', 2, 64)
	}
	return strconv.FormatFloat(amount, 'f', 2, 64)
}
