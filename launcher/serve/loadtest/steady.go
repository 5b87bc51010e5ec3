package loadtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

const (
	// Windows is the number of windows that a run is divided into; its figures need at least minSteady of them
	// after the warm-up.
	Windows   = 40
	minSteady = 20

	// A window belongs to the warm-up if the median latency of the fewPart-th part of the run that
	// starts with it differs from the second half's by more than apart and by more than far
	// standard errors. Latency is higher while caches are cold and lower while the queue is still
	// empty.
	fewPart    = 10
	apart, far = 0.05, 3

	// A run must have at least this many independent windows, each longer than the memory of the queue. The
	// test applies only if the latency could be off by more than wander: every machine drifts by about 1 %.
	independent, wander = 10, 0.02
	// spread is the number of windows over which the requests beyond a percentile must be distributed, in
	// equivalents of evenly hit windows; more times as many of the slowest must be over widely. A single larger
	// number would leave only the calm runs, so intervals would be too low (see TestTruthOfQueues).
	spread, widely, more = 3, 10, 5

	// hurried is the share of the requested rate that must have been sent and answered.
	hurried = 0.99
	// overhead is the largest accepted deviation from Little's law.
	overhead = 0.05

	// If the client uses more than this share of its CPUs, it may be the bottleneck.
	busy = 0.8

	nearCapacity = 0.9
	// ample is the largest share of the client's own maximum rate that a load may have.
	ample = 0.8
)

// A Verdict says what a run measured reliably.
type Verdict struct {
	Warmup   int    // number of windows left out at the start
	Total    Window // all windows after the warm-up
	Why      string // why latency and rate are not the service's; "" if they are
	Warnings []string
	// Ours is set if Why concerns the client or the duration, and says nothing about the service.
	Ours bool
	// Drifts is set if Why is that latency or rate were still changing.
	Drifts bool
	// Client is set if Why concerns the client; a lower rate may not overload it.
	Client bool

	windows []Window // the windows merged into Total
	noTail  string   // why percentiles above the median are unknown; "" if they are known
}

// Judge finds the end of the warm-up, and decides whether the service was in a steady state after it.
//
// Latencies within a run are correlated because requests wait for each other. The memory of a queue grows as
// utilization ρ approaches 1, as 1/(1-√ρ)² service times for one server and random arrivals. A percentile from
// a run that is not many times as long does not predict the next run. Judge measures the memory by the
// correlation r of neighbouring windows' mean latencies: n windows count as n (1-r)/(1+r) independent ones (an
// autoregressive process of order one; Bayley and Hammersley 1946). It raises the estimate of r by its bias in
// short series, (1+3r)/n (Marriott and Pope 1954).
func (r *Result) Judge() Verdict {
	measured := r.Windows[min(r.Lead, len(r.Windows)):]
	v := Verdict{Warmup: len(r.Windows) - len(measured) + warmup(measured)}
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
		v.Why = fmt.Sprintf("the client used %.0f %% of its CPUs and may limit the results; give it more CPUs", 100*r.ClientCPU/float64(r.CPUs))
	case r.Behind.Seconds() > (1-hurried)*v.Total.Length.Seconds():
		v.Why = fmt.Sprintf("%d of %d requests waited while %d others were unanswered; the service does not keep up with %.3g requests/s", r.Held, r.Asked, r.MaxInFlight, v.asked())
	case len(means) < minSteady:
		v.Ours = true
		v.Why = fmt.Sprintf("%d of %d windows are warm-up or have no answer; %d others are needed: measure for longer", len(measured)-len(means), len(measured), minSteady)
	case r.Asked > 0 && v.Total.Errors() > 1-hurried:
		v.Why = fmt.Sprintf("%.1f %% of the requests were answered in time; the service does not keep up with %.3g requests/s", 100*(1-v.Total.Errors()), v.asked())
	case empty > 0:
		v.Why = fmt.Sprintf("%d of %d windows have no answer: the service stalled", empty, len(v.windows))
	default:
		v.Why = unsteady("latency", means)
		// A closed loop can lose answers while the latency of the others stays the same, for example when one
		// of several replicas stops answering.
		if v.Why == "" && r.Asked == 0 {
			v.Why = unsteady("rate", rates(v.windows))
		}
		v.Drifts = v.Why != ""
	}
	requests := int64(0)
	for _, w := range r.Windows {
		requests += w.Requests()
	}
	if share := float64(r.Reconnects) / float64(max(1, requests)); share > maxReconnects {
		v.Warnings = append(v.Warnings, fmt.Sprintf("the service had closed the connection before %.0f %% of the requests, so their latencies include reconnecting", 100*share))
	}
	if _, cached, _ := v.Total.Shares(); cached > mostCached && !r.Shared {
		v.Warnings = append(v.Warnings, fmt.Sprintf("the service had %.0f %% of the input tokens in its cache, since requests are alike: callers with other texts wait longer for the first token", 100*cached))
	}
	if off := v.Total.LittlesLawError(); math.Abs(off) > overhead && v.Total.Good > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("rate × mean latency is %.3g requests in flight, %.3g were counted: Little's law is off by %.0f %%", v.Total.InFlight*(1+off), v.Total.InFlight, 100*off))
	}
	return v
}

// mostCached is the largest share of input tokens from the service's cache without a warning.
const mostCached = 0.05

// fewAnew is the largest share of requests that may need a new connection without a warning.
const maxReconnects = 0.01

// Beyond rejects percentiles above the median if the rate exceeds nearCapacity of the capacity, which is the
// best rate of a closed loop. There the queue's memory is too long for any run to determine its slowest
// requests. capacity is 0 if no closed loop ran; Beyond then does nothing.
func (v *Verdict) Beyond(rate, capacity float64) {
	if capacity > 0 && rate > nearCapacity*capacity {
		v.noTail = fmt.Sprintf("%.3g requests/s are %.0f %% of the closed loop's maximum; above %.0f %%, high percentiles differ from run to run", rate, 100*rate/capacity, 100*nearCapacity)
	}
}

// ForReplica returns the verdict on one replica's share of the requests, for its percentiles.
func (v *Verdict) ForReplica(i int) Verdict {
	own := replica(v.windows, i)
	return Verdict{Why: v.Why, Ours: v.Ours, Total: Merge(own), windows: own, noTail: v.noTail}
}

// WindowCV returns the coefficient of variation (standard deviation divided by mean) of the windows' median
// latencies. ok is false with fewer than two medians.
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

// Outruns rejects a rate above ample times client, the client's own maximum rate against a server that answers
// at once: the client may be the bottleneck. 0 means unknown.
func (v *Verdict) Outruns(rate, client float64) {
	if client > 0 && rate > ample*client && v.Total.Good > 0 {
		v.Ours, v.Client = true, true
		v.Why = fmt.Sprintf("the client may limit the results: %.3g requests/s are %.0f %% of the %.3g that it reaches with a null server (valid: up to %.0f %%); give it more CPUs", rate, 100*rate/client, client, 100*ample)
	}
}

// Percentile returns the time in seconds within which a share q of the requests was answered (for Gap: a share
// q of the texts arrived), or why it is unknown.
//
// Slow requests come in clusters, one per stall, so the precision of a percentile depends on the number of
// clusters beyond it, not of requests. With e_i such requests in window i, they count as (Σe)²/Σe² windows (the
// participation ratio): all windows if they are evenly distributed, one if they belong to one stall.
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

// known is Percentile without the check for a client that sent late.
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
		return 0, fmt.Sprintf("%.2g %% of the requests were not answered in time, so percentile %.3g of the latency is unknown", 100*float64(v.Total.Late)/float64(v.Total.Good+v.Total.Late), 100*q)
	}
	if why := v.clustered(of, q, spread); why != "" {
		return 0, why
	}
	if wider := 1 - more*(1-q); wider > 0 {
		if why := v.clustered(of, wider, widely); why != "" {
			return 0, why
		}
	}
	return seconds, ""
}

// clustered returns why the requests beyond a percentile are spread over too few windows, or "".
func (v *Verdict) clustered(of Time, q, least float64) string {
	seconds, _ := v.Total.Percentile(of, q)
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
	if squares == 0 || sum*sum/squares < least {
		return fmt.Sprintf("the slowest %.3g %% of the requests fall into the equivalent of %.1f windows (%g are needed); measure for longer", 100*(1-q), sum*sum/max(squares, 1), least)
	}
	return ""
}

// Lag returns the 99th percentile of how late the client sent, in seconds.
func (v *Verdict) Lag() float64 {
	return time.Duration(v.Total.Lag.ValueAtPercentile(99)).Seconds()
}

// seconds rounds to three digits for display.
func seconds(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// asked returns the rate at which requests were scheduled.
func (v *Verdict) asked() float64 {
	return float64(v.Total.Requests()) / v.Total.Length.Seconds()
}

// unsteady returns why a quantity, given by the logarithm of its value in each window, is not steady, or "" if
// it may be.
func unsteady(of string, values []float64) string {
	if worth := independentWindows(values); worth < independent && stat.StdDev(values, nil) > wander*math.Sqrt(worth) {
		return fmt.Sprintf("the %s is still drifting: %d windows count as %.0f independent ones, %d are needed; measure for longer, or at a lower rate", of, len(values), math.Floor(worth), independent)
	}
	if a, b := halves(values); a > b {
		return fmt.Sprintf("the %s changes by %.0f %% from the first to the second half", of, 100*a)
	}
	return ""
}

// rates returns the logarithms of the windows' rates of right answers. A window without one counts as having
// half an answer.
func rates(list []Window) []float64 {
	values := make([]float64, len(list))
	for i, w := range list {
		values[i] = math.Log(max(float64(w.Good), 0.5) / w.Length.Seconds())
	}
	return values
}

// means returns the logarithms of the windows' mean latencies, without windows that have no answer.
func means(list []Window) []float64 {
	var values []float64
	for _, w := range list {
		if latency, _ := w.Mean(); latency > 0 {
			values = append(values, math.Log(latency))
		}
	}
	return values
}

// stalled counts windows without a right answer, if the others have ten or more, so that chance hardly leaves
// one empty. One window in twenty may be a pause of the service: a closed loop sends nothing meanwhile, so its
// results hardly change.
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

// warmup returns the number of windows at the start that differ from the second half.
func warmup(list []Window) int {
	n := len(list)
	values := means(list)
	if len(values) < n || n < minSteady { // with windows missing, the order says nothing
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

// independentWindows returns how many independent windows these correlated ones are worth.
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

// halves returns the relative difference between the halves of a run, and the largest difference accepted.
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
