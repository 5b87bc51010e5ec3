package sensitivity

import (
	"fmt"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Bound names the resource that limits the speed of a combination's runs.
type Bound struct {
	Of  string // one of the bounds; "" if unknown
	Why string // the evidence, or what would provide it
}

// The possible bounds.
const (
	BoundCores   = "cores"
	BoundMemory  = "memory"
	BoundDisk    = "disk"
	BoundCompute = "compute"
)

// Shares above which something counts as limiting.
const (
	busy   = 0.9  // share of CPU time
	waits  = 0.1  // share of step time
	quota  = 0.05 // share of the periods of a CPU quota
	crowd  = 0.1  // share of time with some task waiting for a CPU
	spills = 2    // times the bytes that the reference reads per sample
)

// boundOf returns what limits the runs at a combination, compared with those at the
// reference, by the medians of what was recorded.
//
//   - cores: their CPUs are busy, or a CPU quota limited them;
//   - memory: it ran out, or data come from storage that the reference had in memory;
//   - disk: steps wait for data, and tasks for storage;
//   - compute: none of these. CPUs are idle, nothing waits for one and no step waits for
//     data, so that what consumes the samples is the limit: a GPU, or a part that uses
//     few cores.
func boundOf(runs, reference []*scaling.Observation) Bound {
	cpu, cpuKnown := middle(runs, measure.CPUShare)
	wait, waitKnown := middle(runs, measure.DataWait)
	read, readKnown := middle(runs, measure.BytesReadPerSample)
	throttled, throttledKnown := middle(runs, measure.ThrottledShare)
	waiting, waitingKnown := middle(runs, measure.CPUPressure)
	before, beforeKnown := middle(reference, measure.BytesReadPerSample)
	cpus := "CPU share " + number.Percent(cpu)
	io, ioKnown := middle(runs, measure.IOPressure)
	stalls := waitKnown && ioKnown && wait >= waits && io >= crowd
	waitsFor := fmt.Sprintf("steps wait for data %s of their time, and some task for storage %s of it", number.Percent(wait), number.Percent(io))
	switch {
	case throttledKnown && throttled >= quota:
		return Bound{BoundCores, "a CPU quota throttled the run in " + number.Percent(throttled) + " of its periods"}
	case cpuKnown && cpu >= busy:
		return Bound{BoundCores, cpus}
	case cpuKnown && waitingKnown && waiting >= crowd:
		return Bound{Why: fmt.Sprintf("%s, but some task waited for a CPU %s of the time, because of other work or more threads than CPUs; repeat the runs on an idle machine", cpus, number.Percent(waiting))}
	case stalls && readKnown && beforeKnown && read > spills*before:
		return Bound{BoundMemory, fmt.Sprintf("storage delivers %s of each sample, with all the memory %s; %s", number.ShortBytes(read), number.ShortBytes(before), waitsFor)}
	case stalls && cpuKnown && waitingKnown:
		return Bound{BoundDisk, fmt.Sprintf("%s, %s", cpus, waitsFor)}
	case cpuKnown && waitingKnown && waitKnown && wait < waits:
		return Bound{BoundCompute, fmt.Sprintf("%s, and steps wait for data %s of their time: neither cores nor data are the limit", cpus, number.Percent(wait))}
	}
	telemetered := []string{measure.CPUShare, measure.CPUPressure, measure.IOPressure, measure.BytesReadPerSample}
	var missing []string
	for _, m := range []struct {
		known bool
		name  string
	}{{cpuKnown, measure.CPUShare}, {waitingKnown, measure.CPUPressure}, {ioKnown, measure.IOPressure}, {readKnown, measure.BytesReadPerSample}, {waitKnown, measure.DataWait}} {
		if !m.known {
			missing = append(missing, m.name)
		}
	}
	if missing != nil {
		return Bound{Why: "not recorded: " + number.List(missing, "and") + ". Telemetry has " + number.List(telemetered, "and") + " of runs of ten seconds and more; data_wait is of programs that report their steps"}
	}
	return Bound{Why: fmt.Sprintf("%s, steps wait for data %s of their time, and hardly any task for storage: what prepares the data is the limit", cpus, number.Percent(wait))}
}

// middle returns the median of a measure over the runs that have it; ok is false if fewer
// than half have it.
func middle(runs []*scaling.Observation, name string) (value float64, ok bool) {
	var values []float64
	for _, o := range runs {
		if v, known := o.Value(name); known {
			values = append(values, v)
		}
	}
	if len(values) == 0 || 2*len(values) < len(runs) {
		return 0, false
	}
	return scaling.Middle(values), true
}

// observed returns the observations of a point's runs.
func observed(list []scaling.RunValues, runs map[string]*scaling.Observation) []*scaling.Observation {
	var of []*scaling.Observation
	for _, r := range list {
		of = append(of, runs[r.ID])
	}
	return of
}
