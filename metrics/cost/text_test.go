package cost

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestPriceAsText(t *testing.T) {
	weights, err := ParseWeights("CPU=1", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		price Price
		want  string
	}{
		{Price{Per: PerNode, Hour: 3.2, Currency: "EUR"}, "3.2 EUR per node-hour"},
		{Price{Per: PerGPU, Hour: 2, Currency: "USD", Market: OnDemand}, "2 USD per gpu-hour"},
		{Price{Per: PerGPU, Hour: 0.5, Currency: "USD", Market: Spot}, "0.5 USD per gpu-hour (spot)"},
		{Price{Per: PerBilling, Hour: 1, Currency: "core-h", Weights: weights}, "1 core-h per billing-hour (sum of cpu=1)"},
		{Price{Per: PerNode, Hour: 1, Currency: "EUR", Granularity: 1}, "1 EUR per node-hour (billed by 1 s)"},
		{Price{Per: PerNode, Hour: 1, Currency: "EUR", Minimum: 1}, "1 EUR per node-hour (billed 1 s at least)"},
		{Price{Per: PerNode, Hour: 1, Currency: "EUR", AsOf: "2026-01-01"}, "1 EUR per node-hour (as of 2026-01-01)"},
		{Price{Per: PerNode, Hour: 1, Currency: "EUR", Source: "price list"}, "1 EUR per node-hour (price list)"},
		{Price{Per: PerNode, Hour: 3.2, Currency: "EUR", Market: Spot, Granularity: 60, Minimum: 3600, AsOf: "2026-01-01", Source: "price list"},
			"3.2 EUR per node-hour (spot; billed by 60 s, 3600 s at least; as of 2026-01-01; price list)"},
	} {
		if got := c.price.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	r := Rate{Parts: []Part{{Price{Per: PerNode, Hour: 3, Currency: "EUR"}, 2}, {Price{Per: PerGPU, Hour: 1, Currency: "EUR"}, 8}}}
	if got, want := r.String(), "2 × 3 EUR per node-hour + 8 × 1 EUR per gpu-hour"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEnergyAsText(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		e             Energy
		set           bool
		text, unknown string // text only if it is set
	}{
		{Energy{}, false, "", "a price (energy.per_kwh with energy.currency) and CO2 (energy.co2_per_kwh)"},
		{Energy{PerKWh: x(0.3), Currency: "EUR"}, true, "0.3 EUR per kWh", "CO2 (energy.co2_per_kwh)"},
		{Energy{Grams: x(380)}, true, "380 g of CO2 per kWh", "a price (energy.per_kwh with energy.currency)"},
		{Energy{Grams: x(0), AsOf: "2026-01-01"}, true, "0 g of CO2 per kWh (as of 2026-01-01)", "a price (energy.per_kwh with energy.currency)"},
		{Energy{PerKWh: x(0.3), Currency: "EUR", Grams: x(380), AsOf: "2026-01-01", Source: "the utility"}, true,
			"0.3 EUR and 380 g of CO2 per kWh (as of 2026-01-01; the utility)", ""},
	} {
		if c.e.Set() != c.set || c.e.Unknown() != c.unknown || c.set && c.e.String() != c.text {
			t.Errorf("set: %v, %q, unknown: %q; want %+v", c.e.Set(), c.e.String(), c.e.Unknown(), c)
		}
	}
}

// Each rule of a price is tested at its limits.
func TestPriceRules(t *testing.T) {
	weights, err := ParseWeights("CPU=1", false)
	if err != nil {
		t.Fatal(err)
	}
	sound := Price{Per: PerNode, Hour: 1, Currency: "EUR"}
	for _, c := range []struct {
		name   string
		change func(p *Price)
		want   string // in the error; "" for none
	}{
		{"as it is", func(*Price) {}, ""},
		{"free of charge", func(p *Price) { p.Hour = 0 }, ""},
		{"the dearest", func(p *Price) { p.Hour = 1e15 }, ""},
		{"too dear", func(p *Price) { p.Hour = 1.1e15 }, "want 0 to 1e15"},
		{"negative", func(p *Price) { p.Hour = -0.5 }, "want 0 to 1e15"},
		{"no currency", func(p *Price) { p.Currency = "" }, "has no currency"},
		{"a market", func(p *Price) { p.Market = OnDemand }, ""},
		{"no such market", func(p *Price) { p.Market = "black" }, "valid: on-demand, spot"},
		{"granularity", func(p *Price) { p.Granularity = 60 }, ""},
		{"negative granularity", func(p *Price) { p.Granularity = -1 }, "want 0 or more"},
		{"minimum", func(p *Price) { p.Minimum = 60 }, ""},
		{"negative minimum", func(p *Price) { p.Minimum = -1 }, "want 0 or more"},
		{"weights of a node", func(p *Price) { p.Weights = weights }, "no other price has them"},
		{"billing without weights", func(p *Price) { p.Per = PerBilling }, "need billing weights"},
		{"billing", func(p *Price) { p.Per, p.Weights = PerBilling, weights }, ""},
	} {
		p := sound
		c.change(&p)
		_, err := NewTable([]Price{p}, "", "")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A node has a price in EUR, and a node and its GPUs have some in USD: the sum in EUR
// would leave the GPUs out. Where the use has no GPU, or the other list lacks the node,
// it is not another offer for the same.
func TestOffersElsewhere(t *testing.T) {
	node := Price{Per: PerNode, Hour: 1, Currency: "EUR"}
	dollarNode, dollarGPU := Price{Per: PerNode, Hour: 2, Currency: "USD"}, Price{Per: PerGPU, Hour: 3, Currency: "USD"}
	spotNode, spotGPU := Price{Per: PerNode, Hour: 2, Currency: "EUR", Market: Spot}, Price{Per: PerGPU, Hour: 3, Currency: "EUR", Market: Spot}
	labelled := dollarGPU
	labelled.Where = map[string]any{"zone": "eu"}
	for _, c := range []struct {
		name   string
		others []Price
		gpus   *int
		want   string
	}{
		{"nothing else", nil, n(4), ""},
		{"the node elsewhere", []Price{dollarNode}, n(4), ""},
		{"the GPU alone elsewhere", []Price{dollarGPU}, n(4), ""},
		{"both elsewhere", []Price{dollarNode, dollarGPU}, n(4), "a gpu-hour has a price in USD (on-demand) and none in EUR (on-demand)"},
		{"both on the spot market", []Price{spotNode, spotGPU}, n(4), "a gpu-hour has a price in EUR (spot) and none in EUR (on-demand)"},
		{"one in each list", []Price{dollarNode, spotGPU}, n(4), ""},
		{"no GPU", []Price{dollarNode, dollarGPU}, n(0), ""},
		{"it is not known how many", []Price{dollarNode, dollarGPU}, nil, "a gpu-hour has a price in USD"},
		{"for other nodes", []Price{dollarNode, labelled}, n(4), ""},
	} {
		table, err := NewTable(append([]Price{node}, c.others...), "EUR", "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		r, err := table.Rate(Use{Nodes: n(2), GPUs: c.gpus})
		switch {
		case c.want == "" && (err != nil || r.PerHour() != 2 || r.Currency != "EUR"):
			t.Errorf("%s: %g, %v; want 2 EUR", c.name, r.PerHour(), err)
		case c.want != "" && (err == nil || errors.Is(err, errNoPrice) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A run that holds GPUs and no node is priced by them; without a currency the first
// price's counts; of three equal prices a fourth with a label decides.
func TestChoiceOfPrices(t *testing.T) {
	mixed, err := NewTable([]Price{{Per: PerGPU, Hour: 2, Currency: "EUR"}, {Per: PerGPU, Hour: 9, Currency: "USD"}}, "", "")
	if err != nil || mixed.Currency != "EUR" || mixed.Market != OnDemand {
		t.Fatalf("%+v, %v", mixed, err)
	}
	if r, err := mixed.Rate(Use{GPUs: n(3)}); err != nil || r.PerHour() != 6 {
		t.Errorf("%g, %v; want 6", r.PerHour(), err)
	}
	equal := Price{Per: PerNode, Hour: 1, Currency: "EUR"}
	decides := Price{Per: PerNode, Hour: 5, Currency: "EUR", Where: map[string]any{"zone": "eu"}}
	table := table(t, equal, equal, equal, decides)
	if r, err := table.Rate(Use{Nodes: n(1), Labels: map[string]any{"zone": "eu"}}); err != nil || r.PerHour() != 5 {
		t.Errorf("%g, %v; want 5", r.PerHour(), err)
	}
	if _, err := table.Rate(Use{Nodes: n(1)}); err == nil || !strings.Contains(err.Error(), "two prices per node-hour in EUR") {
		t.Error(err)
	}
	for _, c := range []struct {
		a, b  any
		equal bool
	}{{int64(8), 8.0, true}, {8, "8", true}, {true, "true", true}, {8.5, "8.5", true}, {8, 9, false}, {1e21, "1000000000000000000000", true}, {"a", "A", false}} {
		if Equal(c.a, c.b) != c.equal {
			t.Errorf("%v and %v: equal is %v", c.a, c.b, !c.equal)
		}
	}
}

// 3600 s of 2 nodes and 8 GPUs, at 3 and 1 an hour, cost 14; half an hour, billed by the
// quarter of an hour for GPUs and at least one hour for nodes, 2·3 + 8·0.5.
func TestCostOfParts(t *testing.T) {
	r := Rate{Parts: []Part{{Price{Per: PerNode, Hour: 3, Minimum: 3600}, 2}, {Price{Per: PerGPU, Hour: 1, Granularity: 900}, 8}}}
	for seconds, want := range map[float64]float64{3600: 14, 1800: 10, 901: 6 + 8*0.5, 900: 6 + 8*0.25, 7200: 28} {
		if got := r.Cost(seconds); math.Abs(got-want) > 1e-12 {
			t.Errorf("%g s cost %g, want %g", seconds, got, want)
		}
	}
}
