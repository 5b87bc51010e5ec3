package workspace

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// site returns a site with prices for two partitions, one of which names its GPUs.
func site() *study.Site {
	return &study.Site{File: "site.toml",
		Partitions: []study.Partition{{Name: "cpu"}, {Name: "gpu", GPUType: "a100"}},
		Prices: []study.Price{
			{Per: cost.PerNode, Hour: 1.5, Currency: "EUR", Partition: "cpu"},
			{Per: cost.PerGPU, Hour: 2, Currency: "EUR", Where: map[string]any{"gpu_type": "a100"}},
			{Per: cost.PerNode, Hour: 9, Currency: "USD", Market: cost.Spot},
		}}
}

// observation returns a run that trained for an hour, two epochs.
func observation(id string, workers, nodes int, partition string, parameters map[string]any) scaling.Observation {
	epochs := 2
	jobs := 5400.0
	return scaling.Observation{Run: id, Study: "s", Point: id, Kind: "train", Framework: "native", Workers: workers, Nodes: nodes,
		Partition: partition, Parameters: parameters, Epochs: &epochs, JobSeconds: &jobs,
		Values: map[string]float64{measure.Throughput: 100 * float64(workers), measure.TrainSeconds: 3600}}
}

func TestNew(t *testing.T) {
	if _, err := NewTariff(study.DefaultSite(), "", cost.OnDemand); !errors.Is(err, ErrNoPrices) {
		t.Errorf("a site without prices: %v", err)
	}
	if tariff, err := NewTariff(site(), "", cost.Spot); err != nil || tariff.Currency != "USD" {
		t.Errorf("the first price of the market says the currency: %+v, %v", tariff, err)
	}
	bad := site()
	bad.Prices[1].TRESBillingWeights = "CPU"
	for _, test := range []struct {
		site     *study.Site
		currency string
		want     []string
	}{
		{site(), "USD", []string{"site.toml", "EUR"}},
		{bad, "", []string{"site.toml", "prices[1].tres_billing_weights", `"CPU"`}},
	} {
		_, err := NewTariff(test.site, test.currency, cost.OnDemand)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
		}
	}
}

// Runs are priced by their partition and by their labels from an import.
func TestConfigurations(t *testing.T) {
	tariff, err := NewTariff(site(), "EUR", cost.OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := tariff.Configurations([]scaling.Observation{
		observation("a", 1, 1, "cpu", map[string]any{"workers": int64(1)}),
		observation("b", 2, 2, "cpu", map[string]any{"workers": int64(2)}),
		observation("c", 4, 1, "gpu", map[string]any{"workers": int64(4), "resources.device": "gpu"}),
		observation("d", 8, 1, "", nil),
	}, JobClock, measure.Measure{}, true)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{} // an hour's price
	for _, c := range list {
		for _, r := range c.Runs {
			if r.Seconds != 5400 || r.Epochs != 2 {
				t.Errorf("%s: %g s and %d epochs, want the job's 5400 and 2", r.ID, r.Seconds, r.Epochs)
			}
			if r.Rate == nil {
				got[r.ID] = math.NaN()
				continue
			}
			got[r.ID] = r.Rate.PerHour()
		}
	}
	// 1 and 2 nodes at 1.5; 4 GPUs at 2, by the partition's type; no partition, no price
	want := map[string]float64{"a": 1.5, "b": 3, "c": 8, "d": math.NaN()}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })); diff != "" {
		t.Errorf("prices an hour (-want +got):\n%s", diff)
	}
}

// Worker counts without runs are priced by their number, not by an import's count for another run. If the
// measure is per node, so is the cost.
func TestConfigurationsByNode(t *testing.T) {
	tariff, err := NewTariff(site(), "EUR", cost.OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	for _, slow := range []bool{true, false} {
		var list []scaling.Observation
		for i := range 24 {
			workers, repeat := 1+i%2, i/2
			o := observation(fmt.Sprintf("w%d-r%d", workers, repeat+1), workers, 1, "cpu", nil)
			o.Point, o.Repeat, o.BeganUnix, o.Hosts = fmt.Sprint("w", workers), repeat+1, 1.79e9+float64(i), []string{fmt.Sprint("n", repeat%6)}
			o.Values[measure.Throughput] = float64(workers) * (100 + float64(repeat)/10)
			if slow && repeat%6 == 3 {
				o.Values[measure.Throughput] *= 0.8
			}
			list = append(list, o)
		}
		configurations, warnings, err := tariff.Configurations(list, TrainClock, measure.Measure{}, false)
		if err != nil {
			t.Fatal(err)
		}
		c := configurations[0]
		if c.ByNode != slow || c.Runs[0].Hosts == nil {
			t.Errorf("one node is slow: %v; by node: %v, %v", slow, c.ByNode, c.Runs[0].Hosts)
		}
		var want []string
		if slow {
			want = []string{"native: runs differ by their nodes; those that share a node count as one in intervals"}
		}
		if d := cmp.Diff(want, warnings); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestLike(t *testing.T) {
	tariff, err := NewTariff(site(), "EUR", cost.OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	list := []scaling.Observation{observation("a", 2, 1, "gpu", map[string]any{"workers": int64(2), "resources.device": "gpu", "gpus": int64(2)})}
	curves, err := scaling.Analyse(list, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	amount, err := tariff.Like(curves[0], list)(16, 2, 1800)
	if err != nil || math.Abs(amount-16) > 1e-9 { // 16 GPUs at 2 an hour for half an hour
		t.Errorf("%g, %v; want 16", amount, err)
	}
	if _, err := tariff.Like(scaling.Curve{}, nil)(1, 1, 1); err == nil {
		t.Error("a curve without runs has a price")
	}
}

// A plan costs at most each job's whole time limit. Points without a price are reported.
func TestPlanned(t *testing.T) {
	at := func(workers, nodes int, partition string) study.Planned {
		p := study.Planned{Partition: partition}
		p.Point.Workers, p.Point.Nodes, p.Point.Resources.Time = workers, nodes, study.Duration(7200e9)
		return p
	}
	lines, err := plannedCosts(&study.Plan{Points: []study.Planned{at(1, 1, "cpu"), at(4, 2, "cpu"), at(8, 1, "other")}}, site())
	if err != nil {
		t.Fatal(err)
	}
	// 2 h of 1 node and of 2 at 1.5: 9 EUR. 2 h of 4 nodes at 9 on the spot market: 72 USD.
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "9.00 EUR at 1.5 EUR per node-hour (leaves out 1 of 3 runs: no price") || !strings.HasPrefix(lines[1], "72.00 USD at ") {
		t.Errorf("got %q", lines)
	}
}

// The comparison uses the most informative work and divides by the smallest worker count.
func TestCompare(t *testing.T) {
	tariff, err := NewTariff(site(), "EUR", cost.OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	list := []scaling.Observation{observation("a", 1, 1, "cpu", map[string]any{"workers": int64(1)}), observation("b", 2, 2, "cpu", map[string]any{"workers": int64(2)})}
	list[1].Values[measure.TrainSeconds] = 1200
	work := func(want string, o cost.Options) {
		t.Helper()
		curves, err := scaling.Analyse(list, scaling.Options{})
		if err != nil {
			t.Fatal(err)
		}
		bill, err := tariff.Compare(curves, list, false, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := bill.Options.Work.String() + " over " + bill.Options.Baseline[0].String(); got != want {
			t.Errorf("compared %s, want %s", got, want)
		}
		// an hour of one node against 20 minutes of two: 1.5 and 1 EUR
		if c := bill.Rows[1].CostNormalised; want == "an epoch over workers=1" && (c == nil || math.Abs(c.Value-1/1.5) > 1e-9) {
			t.Errorf("cost over the baseline's: %+v, want 2/3", c)
		}
	}
	work("an epoch over workers=1", cost.Options{})
	for i := range list {
		list[i].Values[measure.Accuracy(0.5).Time().Name] = 600
		list[i].Values[measure.Accuracy(0.75).Time().Name] = 900
		list[i].Values[measure.Accuracy(0.9).Time().Name] = math.Inf(1)
	}
	work("accuracy 0.75 over workers=1", cost.Options{}) // no run reached 0.9
	work("accuracy 0.5 over workers=2", cost.Options{Work: cost.Work{Target: new(measure.Accuracy(0.5))}, Baseline: []scaling.Condition{{Key: scaling.Workers, Value: "2"}}})
}

// A million answers of a service at the largest rate within its limit, at each batch:
// two replicas at 1.5 an hour and 250 requests/s are 3 / 3600 / 250 · 10⁶ = 3.333.
func TestMillionAnswers(t *testing.T) {
	tariff, err := NewTariff(site(), "EUR", cost.OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	var list []scaling.Observation
	for _, nodes := range []int{1, 2} {
		for i := range 6 {
			o := observation(fmt.Sprint("r", nodes, "-", i), nodes, nodes, "cpu", map[string]any{"workers": int64(nodes)})
			o.Point, o.Repeat, o.Kind, o.Epochs = fmt.Sprint("p", nodes), i+1, "serve", nil
			rate := 125 * float64(nodes) * (1 + 0.04*(float64(i)-2.5)) // 90 to 110 % of it
			o.Values = map[string]float64{measure.StartupSeconds: 2}
			o.Places = []measure.Place{
				{At: map[string]any{measure.Batch: 1.0}, Values: map[string]float64{measure.RateWithinLimit: rate}},
				{At: map[string]any{measure.Batch: 8.0}, Values: map[string]float64{measure.RateWithinLimit: rate / 4}},
			}
			if i == 5 && nodes == 2 { // one search found no rate at batch 8
				o.Places[1].Values = map[string]float64{measure.ModelP50: 0.001}
			}
			list = append(list, o)
		}
	}
	configurations, _, err := tariff.Configurations(list, MillionClock, rateWithinLimit(t), false)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := cost.Compare(configurations, cost.Options{Work: cost.Work{Million: true}, Baseline: []scaling.Condition{{Key: "workers", Value: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		series          string
		workers, values int
		cost, low, over float64
	}
	var got []row
	round := func(x float64) float64 { return math.Round(x*1000) / 1000 }
	for i, r := range rows {
		if i == 3 { // with six runs no figure may be missing
			if r.Cost != nil || r.Time != nil || !strings.Contains(r.Why, "1 of 6 runs lack it") {
				t.Errorf("cost %+v, %q; want none", r.Cost, r.Why)
			}
			continue
		}
		one := row{r.Series, r.Workers, r.Cost.Runs, round(r.Cost.Value), 0, round(r.CostNormalised.Value)}
		if r.Cost.Interval != nil {
			one.low = round(r.Cost.Interval.Low)
		}
		got = append(got, one)
	}
	// The median of six costs is between the third and the fourth, 1/0.98 and 1/1.02 of
	// 3.333; the cheapest is 1/1.1 of it.
	even, cheapest := round(10./3*(1/0.98+1/1.02)/2), round(10./3/1.1)
	want := []row{{"native batch=1", 1, 6, even, cheapest, 1}, {"native batch=1", 2, 6, even, cheapest, 1},
		{"native batch=8", 1, 6, round(4 * 10. / 3 * (1/0.98 + 1/1.02) / 2), round(4 * 10. / 3 / 1.1), 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func rateWithinLimit(t *testing.T) measure.Measure {
	t.Helper()
	m, err := measure.Find(measure.RateWithinLimit)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
