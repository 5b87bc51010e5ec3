package loadtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

const (
	// Windows are the stretches that a run should be cut into, and minSteady those
	// behind the warm-up that its figures need.
	Windows   = 40
	minSteady = 20

	// A window belongs to the warm-up while the median latency of the few from it on
	// is off by more than apart, and by more than far standard errors, from that of the
	// run's second half: slower while caches and compilers are cold, faster while a
	// queue is still empty.
	fewPart    = 10
	apart, far = 0.05, 3

	// independent is how many stretches, each longer than the memory of the queue, a
	// run has to have at least.
	// That only matters where the latency could be off by more than wander: every
	// machine drifts by a per cent.
	independent, wander = 10, 0.02
	// spread is into how many windows, taken evenly, the requests beyond a percentile
	// have to fall.
	spread = 5

	// hurried is the share of the wanted rate that has to have been sent and answered.
	hurried = 0.99
	// overhead is how far Little's law may be off.
	overhead = 0.05

	// busy is the share of its CPUs from which on the client may be what is measured.
	busy = 0.8

	nearCapacity = 0.9
	// ample is the part of the client's own largest rate that a load may have.
	ample = 0.8
)

// Verdict is what of a run can be measured.
type Verdict struct {
	Warmup int    // first windows that are left out
	Total  Window // all behind them
	Why    string // in words, why latency and rate are not the service's; "" where they are
	Doubts []string
	// Ours: Why is the client's, or the time's that was measured, and says nothing of
	// the service.
	Ours bool
	// Client: it is the client's, which a lower rate may not ask too much of.
	Client bool

	windows []Window // that Total is made of
	noTail  string   // why percentiles above the median are not known; "" where they are
}

// Judge finds the warm-up, and whether the service was in a steady state behind it.
//
// Percentiles of one run are of requests that waited for each other. The closer a
// queue is to its capacity ρ, the longer it remembers, with 1/(1-√ρ)² services for
// one server and random arrivals, and a run that is not many times as long shows a
// percentile that says little about the next run. The memory is measured: by the
// correlation r of neighbouring windows' mean latencies, n windows are worth
// n (1-r)/(1+r) independent ones (an autoregressive process of order one; Bayley and
// Hammersley 1946). r is taken a little higher than estimated, by its bias in short
// series, (1+3r)/n (Marriott and Pope 1954).
func (r *Result) Judge() Verdict {
	v := Verdict{Warmup: warmup(r.Windows)}
	v.windows = r.Windows[v.Warmup:]
	v.Total = Merge(v.windows)
	switch means, empty := means(v.windows), stalled(v.windows); {
	case v.Total.Good == 0:
		v.Why = "no request had a right answer in time"
		if r.FirstError != nil {
			v.Why += fmt.Sprintf("; the first: %v", r.FirstError)
		}
	case r.CPUs > 0 && r.ClientCPU > busy*float64(r.CPUs):
		v.Ours, v.Client = true, true
		v.Why = fmt.Sprintf("the client used %.0f %% of its CPUs and may be what was measured; give it more CPUs", 100*r.ClientCPU/float64(r.CPUs))
	case r.Behind.Seconds() > (1-hurried)*v.Total.Length.Seconds():
		v.Why = fmt.Sprintf("%d of %d requests found %d others without an answer, and waited; the service does not keep up with %.3g requests/s", r.Held, r.Asked, r.MaxInFlight, v.asked())
	case len(means) < minSteady:
		v.Ours = true
		v.Why = fmt.Sprintf("%d of %d windows are warm-up or have no answer; %d others are needed: measure for longer", len(r.Windows)-len(means), len(r.Windows), minSteady)
	case r.Asked > 0 && v.Total.Errors() > 1-hurried:
		v.Why = fmt.Sprintf("%.1f %% of the requests were answered in time; the service does not keep up with %.3g requests/s", 100*(1-v.Total.Errors()), v.asked())
	case empty > 0:
		v.Why = fmt.Sprintf("in %d of %d windows nothing was answered: the service stalled", empty, len(v.windows))
	default:
		v.Why = unsteady("latency", means)
		// A closed loop can lose answers and keep the latency of those that it gets: where
		// one of several replicas is silent from some time on.
		if v.Why == "" && r.Asked == 0 {
			v.Why = unsteady("rate", rates(v.windows))
		}
	}
	requests := int64(0)
	for _, w := range r.Windows {
		requests += w.Requests()
	}
	if share := float64(r.Anew) / float64(max(1, requests)); share > fewAnew {
		v.Doubts = append(v.Doubts, fmt.Sprintf("the service had closed its connection before %.0f %% of the requests; connecting again is part of their latencies", 100*share))
	}
	if _, cached, _ := v.Total.Shares(); cached > mostCached {
		v.Doubts = append(v.Doubts, fmt.Sprintf("the service had %.0f %% of the input tokens in its cache, since the requests are alike: callers with other texts wait longer for the first token", 100*cached))
	}
	if off := v.Total.Little(); math.Abs(off) > overhead && v.Total.Good > 0 {
		v.Doubts = append(v.Doubts, fmt.Sprintf("rate × mean latency is %.3g requests in flight, %.3g were counted: Little's law is off by %.0f %%", v.Total.InFlight*(1+off), v.Total.InFlight, 100*off))
	}
	return v
}

// mostCached is the share of the input tokens that may come from the service's cache
// without a word.
const mostCached = 0.05

// fewAnew is the share of requests that may need a new connection without a word.
const fewAnew = 0.01

// Beyond voids the percentiles above the median of a rate above nine tenths of the
// capacity, the best rate that a closed loop had: the queue remembers for so long there
// that no run is long enough for its slowest requests. Without a closed loop the
// capacity is 0, and nothing is known.
func (v *Verdict) Beyond(rate, capacity float64) {
	if capacity > 0 && rate > nearCapacity*capacity {
		v.noTail = fmt.Sprintf("%.3g requests/s are %.0f %% of the capacity, the most that a closed loop reached; above %.0f %% the next run would have others", rate, 100*rate/capacity, 100*nearCapacity)
	}
}

// Of is the verdict on one replica's part of the requests, for its percentiles.
func (v *Verdict) Of(i int) Verdict {
	own := replica(v.windows, i)
	return Verdict{Why: v.Why, Ours: v.Ours, Total: Merge(own), windows: own, noTail: v.noTail}
}

// WindowCV is the coefficient of variation of the windows' medians, the standard
// deviation by the mean; ok is false without two.
func (v *Verdict) WindowCV() (cv float64, ok bool) {
	var medians []float64
	for _, w := range v.windows {
		if m, ok := w.Percentile(Latency, 0.5); ok {
			medians = append(medians, m)
		}
	}
	if len(medians) < 2 {
		return 0, false
	}
	return stat.StdDev(medians, nil) / stat.Mean(medians, nil), true
}

// Outruns voids a rate above ample of the largest that the client itself reaches,
// against a server that answers at once: it may be the client's. 0 is not known.
func (v *Verdict) Outruns(rate, client float64) {
	if client > 0 && rate > ample*client && v.Total.Good > 0 {
		v.Ours, v.Client = true, true
		v.Why = fmt.Sprintf("the client may be what was measured: %.3g requests/s are %.0f %% of the %.3g that it gets from a server that answers at once, and above %.0f %% the two cannot be told apart; give it more CPUs", rate, 100*rate/client, client, 100*ample)
	}
}

// Percentile is the time in seconds that a share q of the requests (of the texts, for
// Gap) stays within; why says in words why the run has none.
//
// Slow requests come in clusters, one a stall, and a percentile is known as well as
// there are clusters from it on, not requests. With e_i such requests in window
// i they are spread over (Σe)²/Σe² windows (the participation ratio): all windows
// where they come evenly, one where they are one stall.
func (v *Verdict) Percentile(of Time, q float64) (seconds float64, why string) {
	seconds, why = v.known(of, q)
	if why == "" {
		why = v.lateAt(of, q, seconds)
	}
	if why != "" {
		return 0, why
	}
	return seconds, ""
}

// known is Percentile of a client that may have sent late.
func (v *Verdict) known(of Time, q float64) (seconds float64, why string) {
	if v.Why != "" {
		return 0, v.Why
	}
	if q > 0.5 && v.noTail != "" {
		return 0, v.noTail
	}
	seconds, ok := v.Total.Percentile(of, q)
	switch {
	case !ok && v.Total.Late == 0:
		return 0, "no answer has that time"
	case !ok:
		return 0, fmt.Sprintf("%.2g %% of the requests were not answered in time, so the latency within which %.3g %% are answered is not known", 100*float64(v.Total.Late)/float64(v.Total.Good+v.Total.Late), 100*q)
	}
	var sum, squares float64
	for _, w := range v.windows {
		e := float64(w.Late)
		if times := w.times(of); times != nil {
			for value, count := range times.ForEachBucket {
				if float64(value) >= seconds*1e9*(1-resolution) {
					e += float64(count)
				}
			}
		}
		sum += e
		squares += e * e
	}
	if squares == 0 || sum*sum/squares < spread {
		return 0, fmt.Sprintf("the slowest %.3g %% of the requests fall into the equivalent of %.1f windows, %d are needed; measure for longer", 100*(1-q), sum*sum/max(squares, 1), spread)
	}
	return seconds, ""
}

// Lag is how late the client sent, at P99, in seconds.
func (v *Verdict) Lag() float64 {
	return time.Duration(v.Total.Lag.ValueAtPercentile(99)).Seconds()
}

// seconds rounds to three digits, for people.
func seconds(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// asked is the rate at which requests were to be sent.
func (v *Verdict) asked() float64 {
	return float64(v.Total.Requests()) / v.Total.Length.Seconds()
}

// unsteady says in words why the logarithms of a quantity by window are those of no
// steady state; "" where they may be.
func unsteady(of string, values []float64) string {
	if worth := independentWindows(values); worth < independent && stat.StdDev(values, nil) > wander*math.Sqrt(worth) {
		return fmt.Sprintf("the %s is still drifting: %d windows count as %.0f independent ones, %d are needed; measure for longer, or at a lower rate", of, len(values), math.Floor(worth), independent)
	}
	if a, b := halves(values); a > b {
		return fmt.Sprintf("the %s changes by %.0f %% from the first to the second half", of, 100*a)
	}
	return ""
}

// rates are the logarithms of the windows' right answers; none counts as half of one.
func rates(list []Window) []float64 {
	values := make([]float64, len(list))
	for i, w := range list {
		values[i] = math.Log(max(float64(w.Good), 0.5) / w.Length.Seconds())
	}
	return values
}

// means are the logarithms of the windows' mean latencies, without those that have
// no answer.
func means(list []Window) []float64 {
	var values []float64
	for _, w := range list {
		if latency, _ := w.Mean(); latency > 0 {
			values = append(values, math.Log(latency))
		}
	}
	return values
}

// stalled counts windows without a right answer, where chance would leave hardly one
// empty: the others have ten or more. One in twenty may be a pause of the service's; a
// closed loop hardly notices more, since it sends nothing meanwhile.
func stalled(list []Window) int {
	var answers []float64
	for _, w := range list {
		if w.Good > 0 {
			answers = append(answers, float64(w.Good))
		}
	}
	empty := len(list) - len(answers)
	if len(answers) == 0 || median(answers) < 10 || 20*empty <= len(list) {
		return 0
	}
	return empty
}

// warmup counts the first windows that are unlike those of the second half.
func warmup(list []Window) int {
	n := len(list)
	values := means(list)
	if len(values) < n || n < minSteady { // some have no answer: there is no order to see
		return 0
	}
	second := values[n/2:]
	typical, length := median(second), max(3, n/fewPart)
	// 1.2533 is the ratio of the standard errors of median and mean of a normal sample.
	bound := max(math.Log1p(apart), far*1.2533*stat.StdDev(second, nil)/math.Sqrt(float64(length)))
	cut := 0
	for cut < n/2 && math.Abs(median(values[cut:cut+length])-typical) > bound {
		cut++
	}
	return cut
}

// independentWindows is how many independent windows so many neighbouring ones are worth.
func independentWindows(values []float64) float64 {
	n := float64(len(values))
	m := stat.Mean(values, nil)
	var with, of float64
	for i, v := range values {
		of += (v - m) * (v - m)
		if i > 0 {
			with += (v - m) * (values[i-1] - m)
		}
	}
	if of == 0 {
		return n
	}
	r := with / of
	r = min(max(r+(1+3*r)/n, 0), 0.999)
	return n * (1 - r) / (1 + r)
}

// halves is how far the second half is from the first, as a fraction, and how far it
// may be.
func halves(values []float64) (off, bound float64) {
	first, second := values[:len(values)/2], values[len(values)/2:]
	a, b := stat.Mean(first, nil), stat.Mean(second, nil)
	worth := independentWindows(values) / 2
	se := math.Sqrt((math.Pow(stat.StdDev(first, nil), 2) + math.Pow(stat.StdDev(second, nil), 2)) / worth)
	return math.Abs(math.Expm1(b - a)), max(apart, math.Expm1(far*se))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
