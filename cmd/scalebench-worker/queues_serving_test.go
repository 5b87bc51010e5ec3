//go:build serving && !training

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// service is the mean service time of the queues. It is long, so that the scheduler of a busy machine hardly adds to
// it.
const service = 100 * time.Millisecond

// A queue is an HTTP server with a number of servers behind one line.
type queue struct {
	draw func(*rand.Rand) float64 // service time, in means

	mu     sync.Mutex
	random *rand.Rand
	free   []time.Time // when each of the servers becomes free
}

func (q *queue) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	q.mu.Lock()
	next := slices.IndexFunc(q.free, slices.MinFunc(q.free, time.Time.Compare).Equal)
	if now := time.Now(); q.free[next].Before(now) {
		q.free[next] = now
	}
	end := q.free[next].Add(time.Duration(q.draw(q.random) * float64(service)))
	q.free[next] = end
	q.mu.Unlock()
	time.Sleep(time.Until(end))
	_, _ = w.Write([]byte("ok"))
}

// waitsMD1 returns the share of requests of M/D/1 that wait longer than t service times (Erlang 1909). Beyond 29, where
// terms of the alternating sum cancel, the share is below 0.003 up to a load of 0.9.
func waitsMD1(load, t float64) float64 {
	if t > 29 {
		return 0
	}
	sum := 0.0
	for k := range int(t) + 1 {
		x, term := load*(t-float64(k)), 1.0
		for i := range k {
			term *= -x / float64(i+1)
		}
		sum += term * math.Exp(x)
	}
	return 1 - (1-load)*sum
}

// takesMMk returns the share of requests of M/M/k that take longer than t service times (Erlang C).
func takesMMk(k int, utilisation, t float64) float64 {
	load, term, sum := utilisation*float64(k), 1.0, 0.0
	for i := range k {
		sum, term = sum+term, term*load/float64(i+1)
	}
	wait := term / (1 - utilisation) / (sum + term/(1-utilisation))
	drain := float64(k) - load
	if math.Abs(drain-1) < 1e-9 {
		return math.Exp(-t) * (1 + wait*t)
	}
	return math.Exp(-t) + wait/(1-drain)*(math.Exp(-drain*t)-math.Exp(-t))
}

// percentileOf returns where a falling share of longer times leaves 1 - share.
func percentileOf(share float64, longer func(t float64) float64) float64 {
	low, high := 0.0, 1000.0
	for range 60 {
		if middle := (low + high) / 2; longer(middle) > 1-share {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Six loads by hand, each in its own process, on each of nine queues whose percentiles queueing theory gives.
// The interval of six values must contain the truth, or be refused. A busy machine adds some milliseconds to each time,
// and more to the median of M/D/1 at 0.5, half of whose requests take the same time.
func TestServingQueues(t *testing.T) {
	const delay = 0.015
	duration := 10 * time.Minute
	if testing.Short() {
		duration = time.Minute
	}
	exponential, constant := (*rand.Rand).ExpFloat64, func(*rand.Rand) float64 { return 1 }
	var mu sync.Mutex
	cells, refused, held := 0, 0, 0
	t.Run("queues", func(t *testing.T) {
		for _, c := range []struct {
			name    string
			servers int
			draw    func(*rand.Rand) float64
			longer  func(utilisation, t float64) float64
		}{
			{"M/D/1", 1, constant, func(u, t float64) float64 {
				if t < 1 {
					return 1
				}
				return waitsMD1(u, t-1)
			}},
			{"M/M/1", 1, exponential, func(u, t float64) float64 { return takesMMk(1, u, t) }},
			{"M/M/4", 4, exponential, func(u, t float64) float64 { return takesMMk(4, u, t) }},
		} {
			for _, utilisation := range []float64{0.5, 0.8, 0.9} {
				t.Run(fmt.Sprintf("%s/%g", c.name, utilisation), func(t *testing.T) {
					t.Parallel()
					values := map[float64][]float64{}
					names := map[float64]string{0.5: measure.LatencyP50, 0.95: measure.LatencyP95, 0.99: measure.LatencyP99}
					var all sync.WaitGroup
					for seed := range 6 {
						all.Go(func() {
							q := &queue{draw: c.draw, random: rand.New(rand.NewPCG(uint64(seed), 3)), free: make([]time.Time, c.servers)}
							server := httptest.NewServer(q)
							defer server.Close()
							load := exec.Command(os.Args[0], "load", "--json", "url="+server.URL, "path=/", fmt.Sprintf("rate=[%g]", utilisation*float64(c.servers)/service.Seconds()),
								"duration="+duration.String(), "timeout=1m", fmt.Sprint("study.seed=", seed+1))
							load.Env = append(os.Environ(), "SCALEBENCH_TEST_AS_WORKER=1")
							var warnings strings.Builder
							load.Stderr = &warnings
							out, err := load.Output()
							var row map[string]any
							if err == nil {
								err = json.Unmarshal(out, &row)
							}
							mu.Lock()
							defer mu.Unlock()
							if err != nil {
								t.Errorf("%v: %s%s", err, out, &warnings)
							}
							for share, name := range names {
								if x, ok := row[name].(float64); ok {
									values[share] = append(values[share], x)
								}
							}
							t.Logf("seed %d: %s", seed+1, &warnings)
						})
					}
					all.Wait()
					for share := range names {
						truth := percentileOf(share, func(x float64) float64 { return c.longer(utilisation, x) }) * service.Seconds()
						e, err := scaling.ReachOf(values[share], nil, 6-len(values[share]), measure.Lower, false, 0)
						mu.Lock()
						switch cells++; {
						case err != nil || e.Median == nil || e.Median.Interval == nil:
							refused++
							t.Logf("P%g: refused; truth %.4g s, values %.4g", 100*share, truth, values[share])
						case e.Median.Interval.Low <= truth+delay && truth <= e.Median.Interval.High:
							held++
							t.Logf("P%g: truth %.4g s within %.4g", 100*share, truth, values[share])
						default:
							t.Logf("P%g: truth %.4g s NOT within %.4g", 100*share, truth, values[share])
						}
						mu.Unlock()
					}
				})
			}
		}
	})
	t.Logf("%d cells, %d refused, the truth within %d of %d", cells, refused, held, cells-refused)
	// If 96.9 % of the intervals contain the truth, more than 4 of 27 miss it once in a thousand tests.
	if cells-refused-held > 4 {
		t.Errorf("the truth is within %d of %d intervals", held, cells-refused)
	}
}
