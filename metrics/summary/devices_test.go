package summary

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// gpu returns the samples of a GPU that computes all the time.
func gpu(of string, watts, hertz, heat, capped float64) []Series {
	return []Series{
		readings(metrics.TelemetryPresent, of, false, 1, 0), readings(metrics.TelemetryBusy, of, false, 1, 0),
		readings(metrics.TelemetryEnergy, of, true, 500, watts), readings(metrics.TelemetryPower, of, false, watts, 0),
		readings(metrics.TelemetryDeviceClock, of, false, hertz, 0),
		readings(metrics.TelemetryHeld, of+": heat", true, 0, heat), readings(metrics.TelemetryHeld, of+": power cap", true, 90, capped),
		readings(metrics.TelemetryErrors, of+": uncorrected", true, 4, 0)}
}

// withGPUs returns two nodes with two GPUs each, all equal until a case changes one.
func withGPUs() Input {
	in := trained()
	in.Nodes = twoNodes()
	for i := range in.Nodes {
		in.Nodes[i].Series = append(in.Nodes[i].Series, gpu("GPU 0", 300, 1.98e9, 0, 0)...)
		in.Nodes[i].Series = append(in.Nodes[i].Series, gpu("GPU 1", 310, 1.95e9, 0, 0.005)...)
	}
	return in
}

func TestGPUs(t *testing.T) {
	// swap puts another GPU in the place of the second node's second.
	swap := func(with []Series) func(*Input) {
		return func(in *Input) { n := &in.Nodes[1]; n.Series = append(n.Series[:len(n.Series)-8], with...) }
	}
	without := func(column string, with []Series) []Series {
		var list []Series
		for _, s := range with {
			if s.Name != column {
				list = append(list, s)
			}
		}
		return list
	}
	unused := gpu("GPU 1", 60, 0.3e9, 0.5, 0)
	unused[1] = readings(metrics.TelemetryBusy, "GPU 1", false, 0, 0)
	wrong := gpu("GPU 1", 310, 1.95e9, 0, 0)
	wrong[7] = readings(metrics.TelemetryErrors, "GPU 1: uncorrected", true, 4, 0.2)
	lost := gpu("GPU 1", 310, 1.95e9, 0, 0)
	lost[0].Samples[25].Value = 0
	for name, c := range map[string]struct {
		change    func(*Input)
		throttled float64 // NaN: unknown
		watts     float64
		why       string // why a value is unknown
		warning   string // "": none
	}{
		// 100 and 50 W of packages, and 300, 310 W of GPUs on each node.
		"all alike": {func(*Input) {}, 0.005, 150 + 1220, "", ""},
		// Reasons overlap: the larger counts, by its name.
		"hot": {swap(gpu("GPU 1", 310, 1.95e9, 0.3, 0.2)), 0.3, 1370, "", "GPU 1 on n2 was throttled for 30.0 % of the time by its heat"},
		// Capped at half the power, at a lower clock: 620 - 155 W.
		"capped":     {swap(gpu("GPU 1", 155, 1.05e9, 0, 0.009)), 0.009, 1370 - 155, "", "GPU 1 on n2 ran at 1.05 GHz on average, the median of 4 GPUs is 1.98 GHz: if the others wait for it, the rates are too low; check or exclude n2"},
		"less power": {swap(gpu("GPU 1", 155, 1.95e9, 0, 0)), 0.005, 1370 - 155, "", "GPU 1 on n2 drew 155 W on average, the median of 4 GPUs is 300 W"},
		// A GPU that the run does not use does not count as throttled, but its energy
		// is in the sum.
		"unused":     {swap(unused), 0.005, 1370 - 250, "", "power and energy include 1 GPU of 4 that did not compute, so both are too high"},
		"wrong bits": {swap(wrong), 0.005, 1370, "", "memory of GPU 1 on n2 had 2 uncorrected errors"},
		"lost":       {swap(lost), 0.005, 1370, "", "GPU 1 on n2 did not answer"},
		"no counter": {swap(without(metrics.TelemetryHeld, gpu("GPU 1", 310, 1.95e9, 0, 0))), math.NaN(), 1370, "n2: GPU 1 does not report for how long its clock was throttled", ""},
		"no energy":  {swap(without(metrics.TelemetryEnergy, without(metrics.TelemetryPower, gpu("GPU 1", 310, 1.95e9, 0, 0)))), 0.005, math.NaN(), "n2: the energy of GPU 1 was not read", ""},
		"instances": {func(in *Input) {
			in.Nodes[0].Series = append(in.Nodes[0].Series, readings(metrics.TelemetryDivided, "GPU 0", false, 1, 0))
		}, 0.005, 1370, "", "the whole of GPU 0 on n1, which is divided into instances (MIG)"},
		"hot packages": {func(in *Input) {
			in.Nodes[0].Series = append(in.Nodes[0].Series, readings(metrics.TelemetryHeld, "package-0: heat", true, 0, 0.05))
		}, 0.005, 1370, "", "package-0 on n1 was throttled for 5.00 % of the time by its heat"},
		"slow CPUs": {func(in *Input) {
			in.Nodes[0].Series = append(in.Nodes[0].Series, readings(metrics.TelemetryClock, "", false, 2.6e9, 0))
			in.Nodes[1].Series = append(in.Nodes[1].Series, readings(metrics.TelemetryClock, "", false, 1.9e9, 0))
		}, 0.005, 1370, "", "n2 ran its CPUs at 1.9 GHz on average, the median of 2 nodes is 2.6 GHz: if the others wait for it, the rates are too low; check or exclude n2"},
		"none": {func(in *Input) { in.Nodes = twoNodes() }, math.NaN(), 150, "no GPU was read", ""},
	} {
		in := withGPUs()
		c.change(&in)
		r := Summarize(in)
		for of, want := range map[string]float64{measure.GPUThrottled: c.throttled, measure.Watts: c.watts} {
			v, has := r.Values[of]
			if has == math.IsNaN(want) || has && math.Abs(v-want) > 1e-9*want {
				t.Errorf("%s: %s is %g, %t (%s), want %g", name, of, v, has, r.Why[of], want)
			}
			if math.IsNaN(want) && !strings.Contains(r.Why[of], c.why) {
				t.Errorf("%s: %s is missing because %q, want %q", name, of, r.Why[of], c.why)
			}
		}
		var devices []string
		for _, w := range r.Warnings {
			if !strings.Contains(w, "quota") { // of twoNodes
				devices = append(devices, w)
			}
		}
		if text := strings.Join(devices, "\n"); !strings.Contains(text, c.warning) || (text == "") != (c.warning == "") {
			t.Errorf("%s: warnings %q, want %q", name, text, c.warning)
		}
	}
}
