package loadtest

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/launcher/study"
)

// Arrivals describe when an open loop sends requests.
type Arrivals struct {
	Process study.Arrivals
	Rate    float64       // requests/s on average
	Span    time.Duration // time that is filled with requests, including Ramp
	Ramp    time.Duration // first part, during which the rate grows from 0 in proportion to the time
	Seed    uint64
	Trace   []float64 // send times of a trace in seconds, for study.Trace
}

// Poisson draws the times of independent calls that arrive at rate per second on average, within d.
func Poisson(rate float64, d time.Duration, seed uint64) []time.Duration {
	return Arrivals{Process: study.Poisson, Rate: rate, Span: d, Seed: seed}.Times()
}

// processes are the arrival processes. Each returns a function that draws gaps between requests, with mean 1.
// To add one, add it here and in study.Arrivals.
var processes = map[string]func(a Arrivals, r *rand.Rand, shape float64) func() float64{
	study.Poisson: func(_ Arrivals, r *rand.Rand, _ float64) func() float64 { return r.ExpFloat64 },
	study.Constant: func(Arrivals, *rand.Rand, float64) func() float64 {
		return func() float64 { return 1 }
	},
	study.Gamma: func(_ Arrivals, r *rand.Rand, shape float64) func() float64 {
		return distuv.Gamma{Alpha: shape, Beta: shape, Src: r}.Rand
	},
	study.Trace: func(a Arrivals, _ *rand.Rand, _ float64) func() float64 { return traced(a.Trace) },
}

// traced returns the gaps of a trace at a mean rate of 1. After its last request the trace starts again, one
// mean gap later.
func traced(times []float64) func() float64 {
	span := 0.0
	if len(times) > 1 {
		span = times[len(times)-1] - times[0]
	}
	if span <= 0 {
		return func() float64 { return 1 }
	}
	scale, i := float64(len(times)-1)/span, -1
	return func() float64 {
		switch i++; {
		case i == 0:
			return 0
		case i%len(times) == 0:
			return 1
		}
		return (times[i%len(times)] - times[i%len(times)-1]) * scale
	}
}

// TraceRate returns the mean rate of a trace in requests/s; 0 if it has no duration.
func TraceRate(times []float64) float64 {
	if n := len(times); n > 1 && times[n-1] > times[0] {
		return float64(n-1) / (times[n-1] - times[0])
	}
	return 0
}

// Times draws the send times, ascending from 0. Their number is random, too: tools that stretch the times so
// that the last one falls on the end underestimate how long queues get.
func (a Arrivals) Times() []time.Duration {
	process, shape := a.Process.Of()
	r := rand.New(rand.NewPCG(a.Seed, 0x5ca1eb))
	gap := processes[process](a, r, shape)
	ramp := a.Ramp.Seconds()
	var list []time.Duration
	for n := 0.0; ; { // requests expected until then
		n += gap()
		t := n / a.Rate
		// During the ramp, Rate·t²/(2·ramp) requests are expected until t, half as many as without it.
		if n < a.Rate*ramp/2 {
			t = math.Sqrt(2 * ramp * n / a.Rate)
		} else {
			t += ramp / 2
		}
		at := time.Duration(t * float64(time.Second))
		if at >= a.Span {
			return list
		}
		list = append(list, at)
	}
}
