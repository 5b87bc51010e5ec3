package capacity

import (
	"errors"
	"github.com/scalebench/scalebench/metrics/measure"
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

func flat(hour float64) func(int) (float64, error) {
	return func(n int) (float64, error) { return hour * float64(n), nil }
}

// Six CPU runs carry 95 to 105 requests/s a replica and cost 1 an hour, six GPU runs
// 950 to 1050 and 4. Four CPU replicas cost as much as a GPU: one that carries 95 needs
// the fourth above 3·95 = 285, one that carries 105 above 315. What a million cost at
// 285: 4/3600/285·10⁶ = 3.899. Beyond 8 replicas, of which 4 carried 400 requests/s, the power is at least
// 0.9 − 2.5/2·√(log²(100/95) + log²(105/100))/log 2 = 0.772: 32 carry 760·4^0.772.
func TestBreakEven(t *testing.T) {
	each := func(rate float64, counts ...int) scaling.Curve {
		carry := map[int]float64{}
		for _, k := range counts {
			carry[k] = rate * float64(k)
		}
		return curve(t, carry, 6)
	}
	cpu, gpu := Demand(each(100, 1, 2, 3, 4, 5, 6, 7, 8), Load{}, flat(1)), Demand(curve(t, map[int]float64{1: 1000}, 6), Load{}, flat(4))
	cpu.Series, gpu.Series = "cpu", "gpu"
	list := BreakEvens([]Line{gpu, cpu})
	if len(list) != 1 {
		t.Fatal(list)
	}
	b := list[0]
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-6*b }
	if b.From != "cpu" || !near(b.At, 285) || !near(b.Low, 285) || !near(b.High, 315) || math.Abs(b.End/(760*math.Pow(4, 0.772))-1) > 1e-3 || math.Abs(b.Million-3.899) > 0.001 {
		t.Errorf("%+v", b)
	}
	if got := b.Sentence(); got != "Break-even: above 285 [285, 315] requests/s, gpu costs no more than cpu." {
		t.Error(got)
	}
	if cpu.Measured != 8 || len(cpu.Sure) != 32 || !near(gpu.End(), 950*math.Pow(4, 0.85)) {
		t.Errorf("%+v", cpu)
	}
	// Replicas of 475 for 4 and those of 95 for 1, of which 1 and 4 to 12 were measured: four
	// take over above 95, and cost as much as one of the others. Above 475 two cost 8,
	// more than up to seven (665); above 950 three cost 12, more than eleven (1045).
	small, many := Demand(each(500, 1, 2, 3), Load{}, flat(4)), Demand(each(100, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12), Load{}, flat(1))
	small.Series, many.Series = "small", "many"
	if list = BreakEvens([]Line{many, small}); len(list) != 1 || !near(list[0].First, 95) || !near(list[0].At, 1045) || !near(list[0].Low, 665) ||
		!strings.Contains(list[0].Sentence(), "; the first time above 95.0, until it needs another replica.") {
		t.Errorf("%+v", list)
	}
	// At ten times the price a GPU request costs four times as much as a CPU's.
	dear := Demand(curve(t, map[int]float64{1: 1000}, 6), Load{}, flat(40))
	dear.Series = "dear"
	if list = BreakEvens([]Line{cpu, dear}); len(list) != 1 || !list[0].Never || !strings.Contains(list[0].Sentence(), "cpu stays cheaper than dear up to 2220 requests/s") {
		t.Errorf("%+v", list)
	}
	// At a CPU's price, the GPU is never dearer.
	cheap := Demand(curve(t, map[int]float64{1: 1000}, 6), Load{}, flat(1))
	cheap.Series = "cheap"
	if list = BreakEvens([]Line{cpu, cheap}); len(list) != 1 || list[0].From != "cheap" || !list[0].Never {
		t.Errorf("%+v", list)
	}
	// The intervals leave open whether the GPU ever becomes as cheap: at 11.5 a GPU costs less than twelve
	// CPUs, which are needed above 285·(11/3)^0.82 = 827 requests/s, and perhaps not up to 285·4^0.82 = 888.
	even := Demand(curve(t, map[int]float64{1: 2000}, 6), Load{}, flat(11.5))
	even.Series = "even"
	three := Demand(each(100, 1, 3), Load{}, flat(1))
	three.Series = "three"
	if list = BreakEvens([]Line{three, even}); len(list) != 1 || list[0].Never || list[0].High != 0 || !strings.Contains(list[0].Sentence(), "perhaps not up to 888") {
		t.Errorf("%+v: %s", list, list[0].Sentence())
	}
}

// The lines agree with Estimate at every demand.
func TestDemandIsAdvice(t *testing.T) {
	for _, carry := range []map[int]float64{{1: 100, 2: 190, 4: 300}, {2: 200}, {1: 100, 2: 90}, {3: 10}} {
		c := curve(t, carry, 6)
		l := Demand(c, Load{}, flat(3.6))
		for d := 1.0; d < 1.2*l.End(); d *= 1.003 {
			a := Estimate(c, Load{Rate: d}, flat(3.6))
			if d > l.End() {
				if a.Replicas != 0 {
					t.Fatalf("%v: %g requests/s are beyond the line, and %d replicas advised", carry, d, a.Replicas)
				}
				continue
			}
			r := at(l.Sure, d)
			if r.Replicas != a.Replicas || math.Abs(r.million(d)-*a.CostPerMillion) > 1e-9 {
				t.Fatalf("%v at %g: %+v, advised %+v", carry, d, r, a)
			}
		}
	}
}

func TestNoLine(t *testing.T) {
	if l := Demand(curve(t, map[int]float64{1: 100}, 3), Load{}, flat(1)); !strings.Contains(l.Why, "no interval at 1 replica") || l.Sure != nil {
		t.Errorf("%+v", l)
	}
	unknown := curve(t, map[int]float64{1: 100}, 6)
	delete(unknown.Parameters, measure.Batch)
	if l := Demand(unknown, Load{Samples: 1}, flat(1)); l.Why != "its runs do not say how many samples a request has" || l.Sure != nil {
		t.Errorf("%+v", l)
	}
	if l := Demand(curve(t, map[int]float64{1: 100}, 6), Load{}, func(int) (float64, error) { return 0, errors.New("no price") }); l.Why != "no price" {
		t.Errorf("%+v", l)
	}
}
