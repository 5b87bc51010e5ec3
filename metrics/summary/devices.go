package summary

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// windowOf returns the time range that is used for a node; ok is false if it is unknown.
type windowOf func(*SampledNode) (w Window, ok bool)

// throttling returns the share of time during which the run's worst GPU was throttled. The worst one
// counts because ranks wait for each other. It adds a warning if the share of a GPU or CPU
// package is too high.
func (r *Outcome) throttling(nodes []SampledNode, window windowOf) (worst float64, err error) {
	var all throttledDevices
	for i := range nodes {
		all.add(&nodes[i], window)
	}
	if most := all.most; most.Share > alarming {
		r.warn("the clock of %s on %s was throttled for %s of the time by its %s, so the run may be faster on other hardware", most.Of, all.on, number.Percent(most.Share), most.By)
	}
	switch {
	case all.gpus == 0 && all.unread == nil:
		return 0, errors.New("no GPU was read" + because(&nodes[0], metrics.TelemetryPresent, metrics.TelemetryPower))
	case all.unread != nil:
		return 0, first(all.unread)
	}
	return all.worst, nil
}

// throttledDevices collects how long the clocks of devices were throttled.
type throttledDevices struct {
	worst  float64    // largest share of a GPU
	most   Throttling // largest share of any device
	on     string     // host of most
	gpus   int        // number of used GPUs
	unread error      // why the share of a used GPU is unknown
}

// add adds the devices of a node.
func (d *throttledDevices) add(n *SampledNode, window windowOf) {
	w, ok := window(n)
	if !ok {
		d.unread = errors.Join(d.unread, fmt.Errorf("%s was sampled once: the run was too short", n.Host))
		return
	}
	list, err := n.Throttling(w)
	if err != nil {
		d.unread = errors.Join(d.unread, fmt.Errorf("%s: %w", n.Host, err))
		return
	}
	all := n.GPUs()
	for _, h := range list {
		gpu := slices.Contains(all, h.Of)
		if gpu && !n.Used(h.Of, w) {
			continue
		}
		if gpu {
			d.worst = max(d.worst, h.Share)
		}
		if h.Share > d.most.Share {
			d.most, d.on = h, n.Host
		}
	}
	for _, gpu := range all {
		if !n.Used(gpu, w) {
			continue
		}
		d.gpus++
		if !slices.ContainsFunc(list, func(h Throttling) bool { return h.Of == gpu }) {
			d.unread = errors.Join(d.unread, fmt.Errorf("%s: %s does not report for how long its clock was throttled%s", n.Host, gpu, because(n, metrics.TelemetryHeld)))
		}
	}
}

// first returns the first of several joined errors.
func first(err error) error {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		return first(list.Unwrap()[0])
	}
	return err
}

func because(n *SampledNode, columns ...string) string {
	for _, c := range columns {
		if why := n.Missing[c]; why != "" {
			return ": " + why
		}
	}
	return ""
}

// A device whose value is below the median of similar devices by this fraction causes a warning.
// Clocks of equal GPUs agree within one or two per cent; power varies with the chip and its
// position in the rack.
const (
	slowClock = 0.10
	lowPower  = 0.25
)

// uneven adds a warning about a GPU or node that ran more slowly, or used much less power, than
// the others. A limit on a GPU shows only in its clock and its power, not in a log.
func (r *Outcome) uneven(nodes []SampledNode, window windowOf) {
	type one struct {
		of, host string
		value    float64
	}
	for _, q := range []struct {
		column, what, of, unit string
		scale, below           float64
	}{
		{metrics.TelemetryDeviceClock, "ran at", "GPU", "GHz", 1e-9, slowClock},
		{metrics.TelemetryPower, "drew", "GPU", "W", 1, lowPower},
		{metrics.TelemetryClock, "ran its CPUs at", "node", "GHz", 1e-9, slowClock},
	} {
		var list []one
		for i := range nodes {
			n := &nodes[i]
			w, ok := window(n)
			if !ok {
				continue
			}
			devices := n.GPUs()
			if q.of == "node" {
				devices = []string{""}
			}
			for _, of := range devices {
				v, ok := n.MeanOf(q.column, of, w)
				switch {
				case !ok:
				case of == "":
					list = append(list, one{n.Host, n.Host, v * q.scale})
				case n.Used(of, w):
					list = append(list, one{of + " on " + n.Host, n.Host, v * q.scale})
				}
			}
		}
		if len(list) < 2 {
			continue
		}
		slices.SortStableFunc(list, func(a, b one) int { return cmp.Compare(a.value, b.value) })
		middle := list[len(list)/2].value // with two GPUs, the larger value is the reference
		slow := 0
		for slow < len(list) && list[slow].value < (1-q.below)*middle {
			slow++
		}
		if slow == 0 {
			continue
		}
		more := ""
		if slow > 1 {
			more = fmt.Sprintf("; %s more than %s below it", number.Count(slow, q.of), number.Percent(q.below))
		}
		r.warn("%s %s %s %s on average, the median of %s is %s %s%s: if the others wait for it, the rates are too low; check or exclude %s",
			list[0].of, q.what, number.Short(list[0].value, 3), q.unit, number.Count(len(list), q.of), number.Short(middle, 3), q.unit, more, list[0].host)
		return
	}
}

// broken adds warnings about GPUs that stopped answering, and about memory errors.
func (r *Outcome) broken(nodes []SampledNode, window windowOf) {
	for i := range nodes {
		n := &nodes[i]
		for _, s := range n.Named(metrics.TelemetryPresent) {
			if slices.ContainsFunc(s.Samples, func(x NodeSample) bool { return x.Value == 0 }) {
				r.warn("%s on %s did not answer%s", s.Of, n.Host, because(n, metrics.TelemetryPresent))
			}
		}
		w, ok := window(n)
		if !ok {
			continue
		}
		for _, s := range n.Named(metrics.TelemetryErrors) {
			of, kind, _ := strings.Cut(s.Of, ": ")
			if more, err := s.Rise(w); err == nil && more > 0.5 && kind == "uncorrected" {
				r.warn("the memory of %s on %s had %s, so results may be wrong; exclude the node", of, n.Host, number.Count(int(more+0.5), "uncorrected error"))
			}
		}
	}
}

// idle adds a warning if the energy includes GPUs that the run did not use, or shared with
// others.
func (r *Outcome) idle(nodes []SampledNode, window windowOf) {
	var divided string
	count, unused := 0, 0
	for i := range nodes {
		n := &nodes[i]
		w, ok := window(n)
		if !ok {
			continue
		}
		for _, gpu := range n.GPUs() {
			count++
			if !n.Used(gpu, w) {
				unused++
			}
		}
		if d := n.Named(metrics.TelemetryDivided); len(d) > 0 && divided == "" {
			divided = d[0].Of + " on " + n.Host
		}
	}
	if unused > 0 {
		r.warn("power and energy include %s of %d that did not compute, so both are too high for this run", number.Count(unused, "GPU"), count)
	}
	if divided != "" {
		r.warn("power and energy include the whole of %s, which is divided into instances (MIG): both are too high if other jobs used it", divided)
	}
}
