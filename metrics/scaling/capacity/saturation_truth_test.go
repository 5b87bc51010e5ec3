package capacity

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// closed is a service under a closed loop: m servers that take 1/mu on the average (exponential),
// and a delay of z outside them (network, client), exponential too. This is the machine repair
// model M/M/m//N, whose throughput is known exactly.
type closed struct {
	servers int
	mu, z   float64
}

// throughput returns X(N), from the birth-death process of the k requests at the servers: (N-k)/z
// arrive per second, and min(k, m)·mu leave.
func (s closed) throughput(n int) float64 {
	p := make([]float64, n+1)
	p[0] = 1
	sum, rate := 1.0, 0.0
	for k := 1; k <= n; k++ {
		p[k] = p[k-1] * float64(n-k+1) / s.z / (float64(min(k, s.servers)) * s.mu)
		sum += p[k]
		rate += p[k] * float64(min(k, s.servers)) * s.mu
	}
	return rate / sum
}

// play simulates this number of requests in virtual time, after a tenth as many for warm-up, and
// returns the throughput.
func (s closed) play(n, requests int, r *rand.Rand) float64 {
	k, clock, done := 0, 0.0, -requests/10
	begun := 0.0
	for done < requests {
		come, leave := float64(n-k)/s.z, float64(min(k, s.servers))*s.mu
		clock += r.ExpFloat64() / (come + leave)
		if r.Float64()*(come+leave) < come {
			k++
			continue
		}
		k--
		if done++; done == 0 {
			begun = clock
		}
	}
	return float64(requests) / (clock - begun)
}

// A study is a service and how it is measured.
type study struct {
	closed
	threads  []int
	requests int
	runs     int
	machine  float64 // scatter of a whole run, as a share
	load     float64 // scatter of each load within it
}

func drawn(r *rand.Rand) study {
	s := study{closed: closed{servers: 1 << r.IntN(4), mu: math.Exp(r.Float64()*6 - 2)}, requests: []int{300, 1000, 5000}[r.IntN(3)], runs: []int{6, 10, 20}[r.IntN(3)],
		machine: []float64{0, 0.03, 0.1}[r.IntN(3)], load: []float64{0, 0.01, 0.03, 0.06}[r.IntN(4)]}
	s.z = math.Exp(r.Float64()*math.Log(100)) / 10 / s.mu // 0.1 to 10 times the service
	for n := 1; n <= []int{16, 32, 64, 128}[r.IntN(4)]; n *= 2 {
		s.threads = append(s.threads, n)
		if step := n + n/2; n >= 2 && r.IntN(3) == 0 {
			s.threads = append(s.threads, step)
		}
	}
	return s
}

// truth returns the smallest measured number that reaches 95 % of the maximum over the measured
// ones, by the exact throughputs.
func (s study) truth() int {
	most := s.throughput(s.threads[len(s.threads)-1]) // it never falls
	for _, n := range s.threads {
		if s.throughput(n) >= enough*most {
			return n
		}
	}
	return 0
}

func (s study) observe(r *rand.Rand) []scaling.Observation {
	var obs []scaling.Observation
	for i := range s.runs {
		machine := math.Exp(s.machine * r.NormFloat64())
		var places measure.Places
		for _, n := range s.threads {
			x := s.play(n, s.requests, r) * machine * math.Exp(s.load*r.NormFloat64())
			at := map[string]any{measure.Batch: 1.0, measure.Threads: float64(n)}
			places.Add(at, measure.RequestsPerSecond, x)
			places.Add(at, measure.LatencyMean, float64(n)/x) // Little's law
		}
		obs = append(obs, scaling.Observation{Run: fmt.Sprint("s/", i), Study: "s", Point: "p", Repeat: i + 1, Kind: "serve", Framework: "native", Workers: 1,
			BeganUnix: 1.8e9 + 100*float64(i), Places: places.List(), Parameters: map[string]any{"workload.kind": "serve", "workers": int64(1)}})
	}
	return obs
}

func curveOf(t *testing.T, obs []scaling.Observation, axis string) scaling.Curve {
	t.Helper()
	m, err := measure.Find(measure.RequestsPerSecond)
	if err != nil {
		t.Fatal(err)
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: m, Axis: axis})
	if err != nil || len(curves) != 1 {
		t.Fatal(err, len(curves))
	}
	return curves[0]
}

// For services with known throughput, the true knee lies in the reported range. With the knees of
// single runs, it does less often.
func TestTruthOfKnees(t *testing.T) {
	studies := 1000
	if testing.Short() {
		studies = 100
	}
	r := rand.New(rand.NewPCG(20, 26))
	type count struct{ asked, could, given, inside, exact, early, each int }
	of := map[string]*count{}
	var all count
	tell := map[string]*count{"all": &all}
	m, _ := measure.Find(measure.RequestsPerSecond)
	for range studies {
		s := drawn(r)
		truth := float64(s.truth())
		obs := s.observe(r)
		k := findSaturation(curveOf(t, obs, measure.Threads), m)
		name := fmt.Sprintf("%d runs, load scatter %g", s.runs, s.load)
		if of[name] == nil {
			of[name] = &count{}
			tell[name] = of[name]
		}
		for _, c := range []*count{&all, of[name]} {
			c.asked++
			if saturationRange*truth <= float64(s.threads[len(s.threads)-1]) {
				c.could++
			}
			if k.At == 0 {
				continue
			}
			c.given++
			if k.AtLeast <= truth && truth <= k.At {
				c.inside++
			}
			if k.AtLeast == k.At {
				c.exact++
			}
			if k.At < truth {
				c.early++
			}
			if in := kneesOfRuns(obs); in.Low <= truth && truth <= in.High {
				c.each++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tell)) {
		c := tell[name]
		t.Logf("%-26s of %3d studies %3d bend within the data, %3d knees given: %5.1f %% hold the truth, %5.1f %% are one number, %4.1f %% too small; of single runs' knees %5.1f %% hold it",
			name, c.asked, c.could, c.given, 100*saturationShare(c.inside, c.given), 100*saturationShare(c.exact, c.given), 100*saturationShare(c.early, c.given), 100*saturationShare(c.each, c.given))
	}
	if got := saturationShare(all.inside, all.given); got < 0.95 {
		t.Errorf("the range holds the truth in %.1f %%, want 95 %%", 100*got)
	}
	if got := saturationShare(all.early, all.given); got > 0.025 {
		t.Errorf("the number that is called enough is too small in %.1f %%, want 2.5 %% at most", 100*got)
	}
}

// kneesOfRuns is the obvious method, for comparison: the knee of each run, and the exact interval
// of their median.
func kneesOfRuns(obs []scaling.Observation) scaling.Interval {
	var knees []float64
	for _, o := range obs {
		most := 0.0
		for _, p := range o.Places {
			most = max(most, p.Values[measure.RequestsPerSecond])
		}
		at := math.Inf(1)
		for _, p := range o.Places {
			if p.Values[measure.RequestsPerSecond] >= enough*most {
				at = min(at, p.At[measure.Threads].(float64))
			}
		}
		knees = append(knees, at)
	}
	e, err := scaling.Median(knees, 0)
	if err != nil || e.Interval == nil {
		return scaling.Interval{Low: math.NaN()}
	}
	return *e.Interval
}

func saturationShare(k, n int) float64 { return float64(k) / float64(max(n, 1)) }
