package summary

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// Telemetry lists the telemetry columns that are read to compute results.
var Telemetry = []string{metrics.TelemetryCPU, metrics.TelemetryCPUs, metrics.TelemetryOnline, metrics.TelemetryPeriods, metrics.TelemetryThrottled,
	metrics.TelemetryPressure, metrics.TelemetryMemory, metrics.TelemetryMemoryPeak, metrics.TelemetryRead, metrics.TelemetryEnergy, metrics.TelemetryPower,
	metrics.TelemetryPresent, metrics.TelemetryDivided, metrics.TelemetryBusy, metrics.TelemetryDeviceClock, metrics.TelemetryClock,
	metrics.TelemetryHeld, metrics.TelemetryErrors}

// resources sets the measures of what the run used on its nodes. A quantity that is unknown for
// one node is unknown for the run. A measure that the program's log states is kept.
func (r *Outcome) resources(in Input) {
	if len(in.Nodes) == 0 {
		return
	}
	u := usage{Outcome: r, nodes: in.Nodes, measures: measure.ForKind(in.Kind)}
	u.clock, u.clocked = r.trainingClock(in)
	u.cpus()
	u.throttling()
	throttled, err := r.throttling(in.Nodes, u.window)
	u.put(measure.GPUThrottled, throttled, err)
	r.uneven(in.Nodes, u.window)
	r.broken(in.Nodes, u.window)
	u.energy(in)
}

// usage has the amounts of resources that a run used, added up over its nodes.
type usage struct {
	*Outcome
	nodes    []SampledNode
	measures []measure.Measure // of the kind of workload
	clock    Window            // of the training
	clocked  bool              // the clock is known
}

// declared reports whether a measure applies to the kind of workload.
func (u *usage) declared(name string) bool {
	return slices.ContainsFunc(u.measures, func(m measure.Measure) bool { return m.Name == name })
}

// put sets a measure, or the reason why it is unknown. It does nothing if the measure is set
// already or does not apply.
func (u *usage) put(name string, value float64, err error) {
	if _, stated := u.Values[name]; stated || u.Why[name] != "" || !u.declared(name) {
		return
	}
	if err != nil {
		u.Why[name] = err.Error()
		return
	}
	u.Values[name] = value
}

// window returns the time range that is used for a node: the range of the training or, if unknown,
// the range of the node's samples.
func (u *usage) window(n *SampledNode) (Window, bool) {
	w, ok := n.Span()
	if u.clocked {
		return u.clock, true
	}
	return w, ok
}

// sum adds up what the function of returns for each node in its time range. It also returns the
// total length of these ranges.
func (u *usage) sum(of func(n *SampledNode, w Window) (float64, error)) (sum, seconds float64, err error) {
	for i := range u.nodes {
		n := &u.nodes[i]
		w, ok := u.window(n)
		if !ok {
			return 0, 0, fmt.Errorf("%s was sampled once: the run was too short", n.Host)
		}
		v, err := of(n, w)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", n.Host, err)
		}
		sum += v
		seconds = max(seconds, w.Seconds())
	}
	return sum, seconds, nil
}

// total adds up a quantity of which each node has one series.
func (u *usage) total(name string, of func(*Series, Window) (float64, error)) (float64, error) {
	v, _, err := u.sum(func(n *SampledNode, w Window) (float64, error) {
		s, err := only(n, name)
		if err != nil {
			return 0, err
		}
		return of(s, w)
	})
	return v, err
}

// rise adds up the increase of a counter over the nodes.
func (u *usage) rise(name string) (float64, error) { return u.total(name, (*Series).Rise) }

// cpus sets the measures of memory, of CPU use, and of the time that the run waited for CPU and
// I/O.
func (u *usage) cpus() {
	peak, _, err := u.sum(func(n *SampledNode, _ Window) (float64, error) { return peakMemory(n) })
	u.put(measure.PeakMemory, peak, err)

	cpu, err := u.total(metrics.TelemetryCPU, (*Series).Rate)
	if err == nil {
		var cpus float64
		cpus, err = u.total(metrics.TelemetryCPUs, func(s *Series, _ Window) (float64, error) { return s.Max(), nil })
		cpu /= cpus
	}
	u.put(measure.CPUShare, cpu, err)

	for name, of := range map[string]string{measure.CPUPressure: "cpu", measure.IOPressure: "io"} {
		pressure, _, err := u.sum(func(n *SampledNode, w Window) (float64, error) { return pressureOf(n, of, w) })
		u.put(name, pressure/float64(len(u.nodes)), err)
	}
}

// pressureOf returns the share of the time in which tasks on the node waited for a
// resource.
func pressureOf(n *SampledNode, resource string, w Window) (float64, error) {
	for _, s := range n.Named(metrics.TelemetryPressure) {
		if s.Of == resource {
			return s.Rate(w)
		}
	}
	return 0, lacking(n, metrics.TelemetryPressure)
}

// throttling sets the share of scheduling periods in which a CPU quota throttled the run, and
// adds a warning if it is high.
func (u *usage) throttling() {
	throttled, err := u.rise(metrics.TelemetryThrottled)
	if err == nil && throttled > 0 {
		var periods float64
		if periods, err = u.rise(metrics.TelemetryPeriods); err == nil {
			throttled = min(1, throttled/periods)
		}
	}
	u.put(measure.ThrottledShare, throttled, err)
	if err == nil && throttled > alarming {
		u.warn("a CPU quota throttled the run in %s of its periods, so the figures measure the quota; run with more CPUs", number.Percent(throttled))
	}
}

// energy sets the power, and the energy and the bytes read per sample and to the target.
func (u *usage) energy(in Input) {
	joules, seconds, err := u.sum(func(n *SampledNode, w Window) (float64, error) {
		e, err := n.Energy(w)
		return e.Joules, err
	})
	if err == nil {
		err = sameEnergy(u.nodes)
	}
	u.put(measure.Watts, joules/seconds, err)
	if err == nil {
		u.shared(u.nodes)
		u.idle(u.nodes, u.window)
	}
	if !u.declared(measure.JoulesPerSample) {
		return
	}
	v, e := u.perSample(joules, err)
	u.put(measure.JoulesPerSample, v, e)
	v, e = u.perSample(u.rise(metrics.TelemetryRead))
	u.put(measure.BytesReadPerSample, v, e)
	u.toTargetEnergy(in, err)
}

// perSample divides an amount by the number of samples that were trained on during the time range
// of the training.
func (u *usage) perSample(v float64, err error) (float64, error) {
	if err == nil && (!u.clocked || u.Samples == 0) {
		err = errors.New("no training clock was recorded, so no samples in it")
	}
	return v / float64(u.Samples), err
}

// accounted sets the energy per sample according to the scheduler's accounting, which covers the
// programs from start to end.
func (r *Outcome) accounted() {
	joules, known := r.Values[measure.SlurmJoules]
	if _, stated := r.Values[measure.SlurmJoulesPerSample]; known && !stated && r.Samples > 0 {
		r.Values[measure.SlurmJoulesPerSample] = joules / float64(r.Samples)
	}
}

// alarming is the share of throttled time above which a warning is added.
const alarming = 0.01

// trainingClock returns the time range of the training, which end_to_end and times to targets
// also use. ok is false if it is unknown.
func (r *Outcome) trainingClock(in Input) (w Window, ok bool) {
	zero, seconds := rankZero(in), r.Values[measure.TrainSeconds]
	if zero == nil || zero.Started == nil || zero.TrainTime == nil || len(in.Steps) == 0 || !(seconds > 0) {
		return w, false
	}
	from := *zero.Started + *zero.TrainTime
	return Window{From: from, To: from + seconds}, true
}

// toTargetEnergy sets the energy from the start of the training until the hardest of the study's
// targets is reached. err is the reason if energy is unknown.
func (u *usage) toTargetEnergy(in Input, err error) {
	if len(in.Targets) == 0 {
		return
	}
	target := slices.MaxFunc(in.Targets, measure.Harder).Time()
	seconds := u.Known(target.Name)
	switch {
	case err != nil:
	case !u.clocked:
		err = errors.New("no training clock was recorded")
	case seconds == nil:
		err = fmt.Errorf("%s was not reached", target.GoalText())
	case !(*seconds > 0):
		err = fmt.Errorf("%s was reached at once", target.GoalText())
	}
	var joules float64
	for i := range in.Nodes {
		if err != nil {
			break
		}
		n := &in.Nodes[i]
		e, why := n.Energy(Window{From: u.clock.From, To: u.clock.From + *seconds})
		joules += e.Joules
		if why != nil {
			err = fmt.Errorf("%s: %w", n.Host, why)
		}
	}
	u.put(measure.JoulesToTarget, joules, err)
}

// only returns the series of a quantity on a node. It is an error if the node has several,
// because it is then unknown which one is the run's.
func only(n *SampledNode, name string) (*Series, error) {
	list := n.Named(name)
	switch {
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return nil, fmt.Errorf("%s was read from %d places", name, len(list))
	}
	return nil, lacking(n, name)
}

func lacking(n *SampledNode, name string) error {
	if why := n.Missing[name]; why != "" {
		return errors.New(why)
	}
	return fmt.Errorf("no sample of %s", name)
}

// peakMemory returns the run's peak memory on a node. With a cgroup, it is the largest sample.
// Otherwise it is the sum of the peaks of the processes. That is an upper bound, because they
// need not be at the same time.
func peakMemory(n *SampledNode) (float64, error) {
	held, err := only(n, metrics.TelemetryMemory)
	if err != nil {
		return 0, err
	}
	if peaks := n.Named(metrics.TelemetryMemoryPeak); len(peaks) == 1 && !strings.Contains(held.Source, "cgroup") {
		return max(held.Max(), peaks[0].Max()), nil
	}
	return held.Max(), nil
}

// sameEnergy returns an error if the energies of the nodes cover different devices: packages on
// one, for example, and packages and GPUs on another.
func sameEnergy(nodes []SampledNode) error {
	for i := range nodes[1:] {
		if a, b := nodes[0].EnergyOf(), nodes[i+1].EnergyOf(); a != b {
			return fmt.Errorf("energy is known of %s on %s, and of %s on %s", a, nodes[0].Host, b, nodes[i+1].Host)
		}
	}
	return nil
}

// shared adds a warning if the energy may include jobs of other users.
func (r *Outcome) shared(nodes []SampledNode) {
	for i := range nodes {
		n := &nodes[i]
		mine, online := n.Named(metrics.TelemetryCPUs), n.Named(metrics.TelemetryOnline)
		if len(mine) == 1 && len(online) == 1 && mine[0].Max() < online[0].Max() {
			r.warn("power and energy are of whole nodes, and the run may use only %s of %s CPUs of %s: both are too high if other jobs ran there",
				number.Short(mine[0].Max(), 3), number.Short(online[0].Max(), 3), n.Host)
			return
		}
	}
}
