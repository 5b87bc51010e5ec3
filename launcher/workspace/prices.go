package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
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

// NewTariff takes a site file's prices in a currency on a market. An empty
// currency means that of the first price, an empty market cost.OnDemand. The error wraps ErrNoPrices
// if the site file has no prices; other errors name the file.
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

// Compare compares the points of curves by time on the training clock and by cost. Without a target it uses the
// most informative work: up to the hardest target that was reached, else an epoch, else a run. Without a baseline
// it divides by the smallest worker count. mix is as in Configurations; no series means all.
func (t *Tariff) Compare(curves []scaling.Curve, observations []scaling.Observation, mix bool, series []string, o cost.Options) (*cost.Comparison, error) {
	list, _, err := t.Configurations(observations, TrainClock, measure.Measure{}, mix)
	if err != nil {
		return nil, err
	}
	if len(series) > 0 {
		list = slices.DeleteFunc(list, func(c cost.Configuration) bool { return !slices.Contains(series, c.Series) })
	}
	o.Energy = t.Energy
	if o.Work.Target == nil {
		o.Work = usualWork(curves, observations)
	}
	if o.Baseline == nil && len(list) > 0 {
		least := slices.MinFunc(list, func(a, b cost.Configuration) int { return a.Workers - b.Workers }).Workers
		o.Baseline = []scaling.Condition{{Key: scaling.Workers, Value: fmt.Sprint(least)}}
	}
	rows, err := cost.Compare(list, o)
	return &cost.Comparison{Currency: t.Currency, Options: o, Rows: rows}, err
}

func usualWork(curves []scaling.Curve, observations []scaling.Observation) cost.Work {
	var work cost.Work
	for _, c := range curves {
		for _, p := range c.Points {
			for _, t := range p.Targets() {
				if target, ok := measure.TargetOf(t.Name); ok && t.Median != nil && (work.Target == nil || measure.Harder(target, *work.Target) > 0) {
					work.Target = &target
				}
			}
		}
	}
	work.Epoch = work.Target == nil && !slices.ContainsFunc(observations, func(o scaling.Observation) bool { return o.Epochs == nil || *o.Epochs == 0 })
	return work
}

// machineLabel is the label that names the machine of the price list on which a run took place.
const machineLabel = "machine"

// Machines returns the price per hour of machines: those that price entries name, and nodes of partitions whose
// size the site file gives, if nodes have a price. The warnings name machines without a price.
func (t *Tariff) Machines() (list []sensitivity.Machine, warnings []string) {
	add := func(m sensitivity.Machine, labels map[string]any) {
		one, cpus, gpus, bytes := 1, int(m.VCPUs), int(m.GPUs), int64(m.Bytes)
		rate, err := t.prices.Rate(cost.Use{Nodes: &one, CPUs: &cpus, GPUs: &gpus, MemoryBytes: &bytes, Labels: labels})
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v", m.Name, err))
			return
		}
		m.Hour = rate.PerHour()
		list = append(list, m)
	}
	var seen []study.Price
	for _, p := range t.site.Prices {
		same := func(other study.Price) bool {
			return other.Machine == p.Machine && other.Partition == p.Partition && maps.EqualFunc(other.Where, p.Where, cost.Equal)
		}
		if p.Per != cost.PerNode || p.Currency != t.Currency || cmp.Or(p.Market, cost.OnDemand) != t.prices.Market || slices.ContainsFunc(seen, same) {
			continue // only the latest price of a machine is valid, which Rate finds
		}
		seen = append(seen, p)
		labels := maps.Clone(p.Where)
		if labels == nil {
			labels = map[string]any{}
		}
		m := sensitivity.Machine{Name: p.Machine, VCPUs: float64(p.VCPUs), Bytes: float64(p.Memory), GPUs: float64(p.GPUs), Only: maps.Clone(p.Where)}
		if p.Partition != "" {
			labels["partition"] = p.Partition
		}
		if p.Machine != "" {
			labels[machineLabel] = p.Machine
			add(m, labels)
			continue
		}
		for _, part := range t.site.Partitions {
			if (p.Partition == "" || part.Name == p.Partition) && part.CPUsPerNode > 0 && part.MemoryPerNode > 0 {
				m.Name, m.VCPUs, m.Bytes, m.GPUs = "a node of "+part.Name, float64(part.CPUsPerNode), float64(part.MemoryPerNode), float64(part.GPUsPerNode)
				labels["partition"] = part.Name
				add(m, maps.Clone(labels))
			}
		}
	}
	return list, warnings
}

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
		line := fmt.Sprintf("%s %s at %s", number.Money(total), table.Currency, strings.Join(slices.Sorted(maps.Keys(bases)), " and "))
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
