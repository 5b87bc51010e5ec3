package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// curve returns a curve with runs at each number of replicas. Their largest rates within the
// limit are spread evenly around a value, up to 5 % to either side.
func curve(t *testing.T, carry map[int]float64, runs int) scaling.Curve {
	t.Helper()
	var obs []scaling.Observation
	for replicas, rate := range carry {
		for i := range runs {
			value := rate * (1 + 0.1*(float64(i)/5-0.5))
			obs = append(obs, scaling.Observation{Run: fmt.Sprintf("r%d-%d", replicas, i), Study: "s", Point: fmt.Sprint("p", replicas), Repeat: i + 1,
				Kind: "serve", Framework: "native", Workers: replicas, Parameters: map[string]any{"workload.limit": "p95=50ms"},
				Places: []measure.Place{{At: map[string]any{measure.Batch: 1.0}, Values: map[string]float64{measure.RateWithinLimit: value}}}})
		}
	}
	m, err := measure.Find(measure.RateWithinLimit)
	if err != nil {
		t.Fatal(err)
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: m})
	if err != nil || len(curves) != 1 {
		t.Fatal(err, len(curves))
	}
	return curves[0]
}

// Six runs from 95 to 105 have a median of 100, between 95 and 105.
func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		carry                     map[int]float64
		demand                    float64
		replicas, atLeast, from   int
		doubt, why, inTheSentence string
	}{
		{"one carries it", map[int]float64{1: 100, 2: 190}, 90, 1, 1, 1, "", "", "Use 1 replica of native for 90 requests/s within p95=50ms (over 99 % likely to carry it): 1 replica carried 100 [95.0, 105] requests/s in 6 runs."},
		// 98 is half way from 100 to the lower end: log(100/98)/(log(100/95)/1.96) = 0.77 deviations, 78 %.
		{"the interval straddles", map[int]float64{1: 100, 2: 190}, 98, 2, 1, 2, "", "", "Provisional: use 2 replicas of native for 98 requests/s within p95=50ms (over 99 % likely to carry it): 2 replicas carried 190 [180, 200] requests/s in 6 runs. Provisional because 1 may be enough (78 % likely)."},
		// A second replica brings half of what the first does: more may bring nothing, or less.
		{"two do not carry twice as much", map[int]float64{1: 100, 2: 150}, 160, 0, 0, 2, "", "2 replicas carried 150 requests/s, and not even 8, 4 times as many, are sure to carry 160 (", "no answer"},
		// With a power of at least 0.85 − 0.25·log(2)/log(3) = 0.692 it takes 2·(400/190)^(1/0.692) = 5.9 replicas;
		// with one of at most 1 + 1.7/2 = 1.85, 2·(400/210)^(1/1.85) = 2.8.
		{"beyond, and it straddles", map[int]float64{2: 200}, 400, 6, 3, 2, "", "", "at least 3 are needed): 2 replicas carried 200 [190, 210] requests/s in 6 runs. Provisional because 6 replicas were not measured, at most 2 were"},
		{"far beyond", map[int]float64{2: 200}, 2000, 0, 0, 2, "", "2 replicas carried 200 requests/s, and not even 8, 4 times as many, are sure to carry 2000", "no answer"},
	} {
		a := Estimate(curve(t, tt.carry, 6), Load{Rate: tt.demand}, func(n int) (float64, error) { return 3.6 * float64(n), nil })
		if a.Replicas != tt.replicas || a.AtLeast != tt.atLeast || a.From != tt.from {
			t.Errorf("%s: %+v", tt.name, a)
		}
		if text := strings.Join(a.Caveats, "\n"); !strings.Contains(text, tt.doubt) || tt.doubt == "" && text != "" {
			t.Errorf("%s: doubts %q", tt.name, text)
		}
		if !strings.Contains(a.Why, tt.why) || tt.why == "" && a.Why != "" || !strings.Contains(a.Sentence(), tt.inTheSentence) {
			t.Errorf("%s: why %q, %q", tt.name, a.Why, a.Sentence())
		}
		// 3.6 an hour for one are 0.001 a second: at 90 requests/s, 1e6/90 s for a million.
		if a.Replicas > 0 {
			if want := float64(tt.replicas) * 1000 / tt.demand; *a.CostPerMillion < 0.999*want || *a.CostPerMillion > 1.001*want {
				t.Errorf("%s: a million cost %g, want %g", tt.name, *a.CostPerMillion, want)
			}
		}
	}
}

func TestNoAnswer(t *testing.T) {
	few := Estimate(curve(t, map[int]float64{1: 100}, 3), Load{Rate: 50}, nil)
	if few.Replicas != 0 || !strings.Contains(few.Why, "no interval at 1 replica: ") {
		t.Errorf("%+v", few)
	}
	if none := Estimate(scaling.Curve{Series: "native"}, Load{Rate: 50}, nil); none.Replicas != 0 || !strings.Contains(none.Why, "set workload.limit") {
		t.Errorf("%+v", none)
	}
}

func TestCompare(t *testing.T) {
	cheap, dear := 1.0, 2.0
	list := []Answer{{Series: "none"}, {Series: "dear", Replicas: 1, CostPerHour: &dear}, {Series: "cheap", Replicas: 4, CostPerHour: &cheap}, {Series: "unpriced", Replicas: 1}}
	slices.SortStableFunc(list, Compare)
	for i, want := range []string{"cheap", "dear", "unpriced", "none"} {
		if list[i].Series != want {
			t.Errorf("%d: %s, want %s", i, list[i].Series, want)
		}
	}
}

// One replica carries 100 requests/s of one sample, or 30 of 8, which replace 240 of one. A demand
// of 220 are 27.5 of 8, which it carries by the lower end (28.5); with requests of one sample it
// takes 3, which carry 285. By requests/s alone the first would come out at eight replicas.
func TestBatches(t *testing.T) {
	one, eight := curve(t, map[int]float64{1: 100, 2: 200, 3: 300}, 6), curve(t, map[int]float64{1: 30}, 6)
	one.Parameters[measure.Batch], eight.Parameters[measure.Batch] = 1.0, 8.0
	load := Load{Rate: 220, Samples: 1}
	list := []Answer{Estimate(one, load, flat(1)), Estimate(eight, load, flat(1))}
	slices.SortStableFunc(list, Compare)
	best := list[0]
	if best.Batch != 8 || best.SeriesDemand != 27.5 || best.Replicas != 1 || *best.CostPerHour != 1 || list[1].Replicas != 3 {
		t.Errorf("%+v", list)
	}
	if want := 1 / 3600. / 220 * 1e6; *best.CostPerMillion < 0.999*want || *best.CostPerMillion > 1.001*want {
		t.Errorf("a million requests of the demand cost %g, want %g", *best.CostPerMillion, want)
	}
	// Seven more samples come in 7/220 s, within 50 ms; at 100 a second in 70 ms.
	if text := strings.Join(best.Caveats, " "); !strings.Contains(text, "take 31.8 ms to come together") || strings.Contains(text, "limit") {
		t.Error(text)
	}
	if text := strings.Join(Estimate(eight, Load{Rate: 100, Samples: 1}, nil).Caveats, " "); !strings.Contains(text, "70.0 ms") || !strings.Contains(text, "more than the limit") {
		t.Error(text)
	}
	if single := Unbatched(list); single == nil || single.Batch != 1 || Unbatched(list[1:]) != nil {
		t.Errorf("%+v", single)
	}
	unknown := curve(t, map[int]float64{1: 30}, 6)
	delete(unknown.Parameters, measure.Batch)
	if a := Estimate(unknown, load, nil); a.Replicas != 0 || !strings.Contains(a.Why, "do not say how many samples") {
		t.Errorf("%+v", a)
	}
	// The lines of cost are over the same demand, at which both begin with one replica.
	lines := []Line{Demand(one, load, flat(1)), Demand(eight, load, flat(1))}
	lines[0].Series, lines[1].Series = "one", "eight"
	if b := BreakEvens(lines); len(b) != 1 || b[0].From != "eight" || !b[0].Never {
		t.Errorf("%+v", b)
	}
	if end, want := lines[1].End(), 28.5*8*math.Pow(4, 0.85); math.Abs(end-want) > 1e-6 {
		t.Errorf("ends at %g", end)
	}
}

// As the demand grows, the cheapest is first one, then the middle, then the large machine, each
// from the demand above which it stays cheaper than the previous one.
func TestChain(t *testing.T) {
	of := func(name string, rate, hour float64) Line {
		l := Demand(curve(t, map[int]float64{1: rate}, 6), Load{}, flat(hour))
		l.Series = name
		return l
	}
	// An hour's price per request/s: 0.0105, 0.0042, 0.0021, and 0.0084 of the one that is
	// nowhere the best.
	list := BreakEvens([]Line{of("large", 2000, 4), of("small", 100, 1), of("middle", 500, 2), of("never", 250, 2)})
	var names []string
	for _, b := range list {
		names = append(names, b.From+"<"+b.To)
	}
	if got := strings.Join(names, " "); got != "small<middle middle<large" {
		t.Error(got)
	}
	dear := []Line{of("small", 100, 1), of("a", 100, 3), of("b", 100, 4)}
	if list = BreakEvens(dear); len(list) != 1 || !list[0].Never || !strings.Contains(list[0].Sentence(), "small stays cheaper than the 2 others") {
		t.Errorf("%+v", list)
	}
}

// A table may lack the limit of its largest rates.
func TestLimitNotStated(t *testing.T) {
	c := curve(t, map[int]float64{1: 100, 2: 190}, 6)
	delete(c.Parameters, "workload.limit")
	a := Estimate(c, Load{Rate: 90}, nil)
	if a.Limit != "" || !strings.Contains(a.Sentence(), "within a limit that the runs do not state") {
		t.Errorf("limit %q: %s", a.Limit, a.Sentence())
	}
}

// Fewer replicas that may be enough are measured at the demand if rates were measured, and
// otherwise by a search.
func TestNextRates(t *testing.T) {
	p := 0.4
	for _, byRates := range []bool{true, false} {
		measured := []carried{{replicas: 2, runs: 6, rate: 100, low: 90, high: 110, byRates: byRates}, {replicas: 4, runs: 6, rate: 200, low: 190, high: 210}}
		a := Answer{Replicas: 4, Undecided: []Contender{{2, &p}}}
		a.next(measured, 105)
		if a.Next == nil || a.Next.Replicas != 2 || byRates != (len(a.Next.Rates) == 1 && a.Next.Rates[0] == 105) || a.Next.Why != "2 replicas may be enough (40 % likely)" {
			t.Errorf("by rates %v: %+v", byRates, a.Next)
		}
	}
	a := Answer{Replicas: 8}
	a.next([]carried{{replicas: 4, runs: 6, rate: 200, low: 190, high: 210}}, 300)
	if a.Next == nil || a.Next.Replicas != 8 || !slices.Equal(a.Next.Neighbours, []int{4}) {
		t.Errorf("not measured: %+v", a.Next)
	}
	a = Answer{Replicas: 4}
	if a.next([]carried{{replicas: 4, runs: 6, rate: 200, low: 190, high: 210}}, 100); a.Next != nil {
		t.Errorf("decided: %+v", a.Next)
	}
}

func TestSentenceNamesSamples(t *testing.T) {
	high := 110.0
	for _, tt := range []struct {
		a    Answer
		want string
	}{
		{Answer{Series: "s", Replicas: 1, Demand: 5, Samples: 1, Batch: 1, From: 1, Rate: 100, Low: 90, High: &high, Runs: 6}, "for 5 requests/s of 1 sample within a limit"},
		{Answer{Series: "s", Replicas: 1, Demand: 5, From: 1, Rate: 100, Low: 90, High: &high, Runs: 6}, "for 5 requests/s within a limit"},
		{Answer{Series: "s", Replicas: 1, Demand: 5, From: 1, Rate: 100, Low: 90, Runs: 6}, "carried 100 [90.0 or more] requests/s in 6 runs"},
		{Answer{Series: "s", Replicas: 1, Demand: 40, Samples: 1, Batch: 8, SeriesDemand: 5, From: 1, Rate: 100, Low: 90, High: &high, Runs: 6}, "for 40 requests/s of 1 sample (5.00/s of 8) within"},
	} {
		if got := tt.a.Sentence(); !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// A warning that can change an answer makes it provisional, with the first thing to do. Without
// an answer, it has no effect.
func TestAddCaveats(t *testing.T) {
	a := Answer{Replicas: 2, From: 2}
	a.AddCaveats([]string{"1 of 12 runs could not be read"})
	if !a.Provisional || a.Next == nil || a.Next.Replicas != 2 || !strings.Contains(a.Sentence(), "Provisional: use 2 replicas") || !strings.Contains(a.Sentence(), "Provisional because 1 of 12 runs could not be read.") {
		t.Errorf("%+v: %s", a, a.Sentence())
	}
	for _, a := range []Answer{{}, {Replicas: 2}} {
		because := []string{"x"}
		if a.Replicas > 0 {
			because = nil
		}
		if a.AddCaveats(because); a.Provisional || a.Next != nil {
			t.Errorf("%+v", a)
		}
	}
}

// Equal runs of imported tables have no interval.
func TestEqualRatesCaveat(t *testing.T) {
	c := curve(t, map[int]float64{1: 100}, 6)
	a := Estimate(c, Load{Rate: 50}, nil)
	if a.AddEqualRatesCaveat(c); a.Provisional || a.Keeps == nil {
		t.Errorf("runs that differ: %+v", a)
	}
	var obs []scaling.Observation
	for i := range 6 {
		obs = append(obs, scaling.Observation{Run: fmt.Sprint("r", i), Study: "s", Point: "p", Repeat: i + 1, Kind: "serve", Framework: "native", Workers: 1, Parameters: map[string]any{"workload.limit": "p95=50ms"},
			Places: []measure.Place{{At: map[string]any{measure.Batch: 1.0}, Values: map[string]float64{measure.RateWithinLimit: 100}}}})
	}
	m, _ := measure.Find(measure.RateWithinLimit)
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: m})
	if err != nil {
		t.Fatal(err)
	}
	a = Estimate(curves[0], Load{Rate: 50}, nil)
	if a.AddEqualRatesCaveat(curves[0]); !a.Provisional || a.Keeps != nil || !strings.Contains(a.Sentence(), "all runs of 1 replica have exactly the same rate") {
		t.Errorf("equal runs: %+v", a)
	}
}
