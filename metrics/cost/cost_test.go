package cost

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func n(i int) *int { return &i }

func bytes(i int64) *int64 { return &i }

func table(t *testing.T, prices ...Price) *Table {
	t.Helper()
	table, err := NewTable(prices, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestRate(t *testing.T) {
	platforms := table(t,
		Price{Per: PerNode, Hour: 0.90, Currency: "USD", Where: map[string]any{"platform": "p2"}},
		Price{Per: PerNode, Hour: 3.06, Currency: "USD", Where: map[string]any{"platform": "p3"}},
		Price{Per: PerNode, Hour: 3.20, Currency: "USD", Where: map[string]any{"platform": "p3", "zone": "eu"}},
		Price{Per: PerNode, Hour: 1.00, Currency: "USD", AsOf: "2025-01-01"},
		Price{Per: PerNode, Hour: 0.80, Currency: "USD", AsOf: "2026-01-01"},
		Price{Per: PerVCPU, Hour: 0.05, Currency: "USD", Where: map[string]any{"workers": int64(8)}},
		Price{Per: PerNode, Hour: 9, Currency: "EUR"},
		Price{Per: PerNode, Hour: 0.3, Currency: "USD", Market: Spot})
	for _, test := range []struct {
		name string
		use  Use
		hour float64 // 0: an error with words
		want string
	}{
		{"by label", Use{Nodes: n(2), Labels: map[string]any{"platform": "p2"}}, 1.80, ""},
		{"more labels win", Use{Nodes: n(1), Labels: map[string]any{"platform": "p3", "zone": "eu"}}, 3.20, ""},
		{"the latest wins", Use{Nodes: n(1)}, 0.80, ""},
		{"resources add up, numbers by value", Use{Nodes: n(1), CPUs: n(4), Labels: map[string]any{"workers": 8.0}}, 1.00, ""},
		{"unknown count", Use{Labels: map[string]any{"platform": "p2"}}, 0, "the number of nodes is not recorded"},
	} {
		r, err := platforms.Rate(test.use)
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want %q", test.name, err, test.want)
			}
		} else if err != nil || math.Abs(r.PerHour()-test.hour) > 1e-12 {
			t.Errorf("%s: %g an hour (%v), want %g", test.name, r.PerHour(), err, test.hour)
		}
	}
}

func TestNoPrice(t *testing.T) {
	gpu := table(t, Price{Per: PerGPU, Hour: 2, Currency: "EUR", Where: map[string]any{"node": "a100"}})
	for _, test := range []struct {
		use  Use
		want string
	}{
		{Use{GPUs: n(1), Labels: map[string]any{"node": "v100"}}, "node (here: v100)"},
		{Use{GPUs: n(1)}, "; prices depend on node (not recorded)"},
		{Use{GPUs: n(0), Labels: map[string]any{"node": "a100"}}, "no price"}, // never free of charge
	} {
		_, err := gpu.Rate(test.use)
		if !errors.Is(err, errNoPrice) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.use, err, test.want)
		}
	}
	any := table(t, Price{Per: PerGPU, Hour: 2, Currency: "EUR"})
	if _, err := any.Rate(Use{GPUs: n(0)}); err == nil || err.Error() != "no price in EUR (on-demand) applies" {
		t.Errorf("no GPU, and a price of any: %v", err)
	}
	twice := table(t, Price{Per: PerNode, Hour: 1, Currency: "EUR"}, Price{Per: PerNode, Hour: 2, Currency: "EUR"})
	if _, err := twice.Rate(Use{Nodes: n(1)}); err == nil || errors.Is(err, errNoPrice) {
		t.Errorf("two prices for one thing: %v", err)
	}
	for _, test := range []struct {
		prices           []Price
		currency, market string
		want             string
	}{
		{nil, "", "", "no price is given"},
		{[]Price{{Per: PerNode, Hour: 1, Currency: "EUR"}}, "USD", "", "prices are in EUR"},
		{[]Price{{Per: PerNode, Hour: 1, Currency: "EUR"}}, "", Spot, "on the spot market"},
		{[]Price{{Per: "month", Hour: 1, Currency: "EUR"}}, "", "", "valid: node, gpu"},
		{[]Price{{Per: PerNode, Hour: math.NaN(), Currency: "EUR"}}, "", "", "want 0 to 1e15"},
		{[]Price{{Per: PerBilling, Hour: 1, Currency: "EUR"}}, "", "", "weights"},
	} {
		if _, err := NewTable(test.prices, test.currency, test.market); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.prices, err, test.want)
		}
	}
}

// Clouds bill whole seconds with a minimum of a minute, or whole hours.
func TestBilling(t *testing.T) {
	second := Price{Per: PerNode, Hour: 3600, Currency: "USD", Granularity: 1, Minimum: 60}
	hour := Price{Per: PerNode, Hour: 3600, Currency: "USD", Granularity: 3600}
	exact := Price{Per: PerNode, Hour: 3600, Currency: "USD"}
	for _, test := range []struct {
		price         Price
		seconds, cost float64
	}{
		{second, 12.2, 2 * 60}, {second, 61.5, 2 * 62}, {second, 62, 2 * 62},
		{hour, 3600 * (1 + 0.8e-12), 2 * 3600}, {hour, 3600 * (1 + 1.5e-12), 2 * 7200}, // 1e-12 is the rounding of a sum
		{hour, 1, 2 * 3600}, {hour, 3600, 2 * 3600}, {hour, 3600.0000000001, 2 * 3600}, {hour, 3601, 2 * 7200},
		{exact, 0.5, 1},
	} {
		r, err := table(t, test.price).Rate(Use{Nodes: n(2)})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Cost(test.seconds); math.Abs(got-test.cost) > 1e-9 {
			t.Errorf("%s for %g s: %g, want %g", test.price.String(), test.seconds, got, test.cost)
		}
	}
}

// The examples of slurm.conf(5), TRESBillingWeights and PriorityFlags=MAX_TRES,
// and of https://slurm.schedmd.com/tres.html: billing values are integers.
func TestWeights(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		weights string
		max     bool
		use     Use
		want    float64
	}{
		{"CPU=1.0,Mem=0.25G,GRES/gpu=2.0", false, Use{CPUs: n(1), MemoryBytes: bytes(8 * gib), GPUs: n(0)}, 3},
		{"CPU=1.0,Mem=0.25G,GRES/gpu=2.0", true, Use{CPUs: n(1), MemoryBytes: bytes(8 * gib), GPUs: n(0)}, 2},
		{"mem=.25", false, Use{MemoryBytes: bytes(8 * gib)}, 2048},
		{"mem=.25G", false, Use{MemoryBytes: bytes(8 * gib)}, 2},
		{"cpu=0.5", false, Use{CPUs: n(3)}, 1},
		{"CPU = 0 , Node = 2", false, Use{Nodes: n(3)}, 6}, // CPUs that count nothing need not be known
		{"mem=1k", false, Use{MemoryBytes: bytes(3 << 10)}, 3},
		{"mem=2T", false, Use{MemoryBytes: bytes(gib << 11)}, 4},
		{"cpu=0.29", false, Use{CPUs: n(100)}, 29}, // a sum of floats: 28.999999999999996
		{"cpu=2.9999999999976", false, Use{CPUs: n(1)}, 3},
		{"cpu=2.9999999999955", false, Use{CPUs: n(1)}, 2},
		{"gres/gpu:a100=4,gres/gpu=1", false, Use{GPUs: n(2), GPUType: "a100"}, 10},
		{"gres/gpu:a100=4,gres/gpu=1", false, Use{GPUs: n(2), GPUType: "v100"}, 2},
	} {
		w, err := ParseWeights(test.weights, test.max)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.Units(test.use); err != nil || got != test.want {
			t.Errorf("%s: %g (%v), want %g", w, got, err, test.want)
		}
	}
	w, err := ParseWeights("CPU=1,Mem=1G,GRES/gpu:a100=1", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range []Use{{}, {CPUs: n(1)}, {CPUs: n(1), MemoryBytes: bytes(1), GPUs: n(1)}} {
		if got, err := w.Units(use); err == nil || !strings.Contains(err.Error(), "not recorded") {
			t.Errorf("%+v: %g, %v", use, got, err)
		}
	}
	for _, bad := range []string{"", "CPU", "CPU=", "CPU=-1", "CPU=1G", "Mem=G", "Mem=1GG", "Mem=1X", "License/ansys=1", "CPU=1,cpu=2", "CPU=NaN", "CPU=Inf"} {
		if _, err := ParseWeights(bad, false); err == nil {
			t.Errorf("%q was taken for weights", bad)
		}
	}
}

func FuzzParseWeights(f *testing.F) {
	for _, seed := range []string{"CPU=1.0,Mem=0.25G,GRES/gpu=2.0", "mem=.25", "gres/gpu:a100=4", "cpu=1e300", "=,="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ParseWeights(s, false)
		if err != nil {
			return
		}
		use := Use{Nodes: n(1), CPUs: n(1), GPUs: n(1), MemoryBytes: bytes(1 << 20), GPUType: "a100"}
		if units, err := w.Units(use); err != nil || !(units >= 0) {
			t.Errorf("%q: %g, %v", s, units, err)
		}
	})
}

// A sum is refused if a resource has its price only in another currency or on another
// market.
func TestPricedElsewhere(t *testing.T) {
	count := func(n int) *int { return &n }
	node := Price{Per: PerNode, Hour: 3, Currency: "EUR"}
	for name, c := range map[string]struct {
		gpu  Price
		gpus int
		says string
	}{
		"the same":         {Price{Per: PerGPU, Hour: 2, Currency: "EUR"}, 4, ""},
		"another currency": {Price{Per: PerGPU, Hour: 2, Currency: "USD"}, 4, "a gpu-hour has a price in USD (on-demand) and none in EUR (on-demand)"},
		"another market":   {Price{Per: PerGPU, Hour: 2, Currency: "EUR", Market: "spot"}, 4, "a gpu-hour has a price in EUR (spot) and none in EUR (on-demand)"},
		"another way":      {Price{Per: PerGPU, Hour: 2, Currency: "core-h"}, 4, ""},
		"no GPU":           {Price{Per: PerGPU, Hour: 2, Currency: "USD"}, 0, ""},
		"other machines":   {Price{Per: PerGPU, Hour: 2, Currency: "USD", Where: map[string]any{"machine": "b"}}, 4, ""},
	} {
		same := c.gpu // a list with both prices
		same.Per = PerNode
		prices := []Price{node, c.gpu}
		if c.says != "" {
			prices = append(prices, same)
		}
		table, err := NewTable(prices, "EUR", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = table.Rate(Use{Nodes: count(1), GPUs: count(c.gpus), Labels: map[string]any{"machine": "a"}})
		if (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
