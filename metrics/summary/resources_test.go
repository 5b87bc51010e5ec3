package summary

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// trained returns a training from 1010 to 1020 s with 10 steps of 100 samples,
// which reached 0.5 after 4 s.
func trained() Input {
	at := func(v float64) *float64 { return &v }
	in := Input{Kind: "train", Workers: 1, World: 1, Targets: []measure.Target{measure.Accuracy(0.25), measure.Accuracy(0.5)}, Restarts: []int{0},
		Ranks:       []Rank{{World: 1, Started: at(1000), TrainTime: at(10), StepsTime: at(20), Train: &metrics.Train{}}},
		Evaluations: []Evaluation{{Time: 12, Epoch: 1, Step: 2, Accuracy: 0.3}, {Time: 14, Epoch: 2, Step: 4, Accuracy: 0.6}}}
	for i := range 10 {
		in.Steps = append(in.Steps, Step{Index: i, Duration: 1, Mean: 1, Samples: 100})
	}
	return in
}

// readings returns one sample per second from 1000 to 1030 s, with this value and slope.
func readings(name, of string, counter bool, value, slope float64) Series {
	s := Series{Name: name, Of: of, Counter: counter, Source: "cgroup of the run"}
	for i := range 31 {
		s.Samples = append(s.Samples, NodeSample{At: 1000 + float64(i), Value: value + slope*float64(i)})
	}
	return s
}

// Two nodes with 4 CPUs each, of which 3 and 1 were busy: half of 8. Their packages
// drew 100 W and 50 W, so 1500 J on the training clock's 10 s, 1.5 J for each of 1000
// samples, and 600 J in the 4 s to the higher target. 2000 bytes/s were read on each.
// Of 10 periods a second, 1 was throttled on the first: one in 20 of both.
func twoNodes() []SampledNode {
	node := func(host string, busy, watts, throttled float64) SampledNode {
		return SampledNode{Host: host, Series: []Series{
			readings(metrics.TelemetryCPU, "", true, 7, busy), readings(metrics.TelemetryCPUs, "", false, 4, 0), readings(metrics.TelemetryOnline, "", false, 4, 0),
			readings(metrics.TelemetryMemory, "", false, 1000, 100), readings(metrics.TelemetryMemoryPeak, "", false, 9e9, 0),
			readings(metrics.TelemetryRead, "", true, 0, 2000), readings(metrics.TelemetryPeriods, "", true, 0, 10), readings(metrics.TelemetryThrottled, "", true, 0, throttled),
			readings(metrics.TelemetryEnergy, "package-0", true, 1e6, watts)}}
	}
	return []SampledNode{node("n1", 3, 100, 1), node("n2", 1, 50, 0)}
}

func TestResources(t *testing.T) {
	in := trained()
	in.Nodes = twoNodes()
	r := Summarize(in)
	for name, want := range map[string]float64{measure.CPUShare: 0.5, measure.Watts: 150, measure.JoulesPerSample: 1.5, measure.JoulesToTarget: 600,
		measure.BytesReadPerSample: 40, measure.ThrottledShare: 0.05, measure.PeakMemory: 2 * (1000 + 30*100)} {
		if got, has := r.Values[name]; !has || math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %g, %t (%s); want %g", name, got, has, r.Why[name], want)
		}
	}
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "throttled the run in 5") {
		t.Errorf("the throttling is not told of: %s", text)
	}
}

// If one node lacks a quantity, it is unknown for the run, with a reason, and never 0.
func TestResourcesMissing(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Input)
		measure string
		why     string
	}{
		"no sampler": {func(in *Input) { in.Nodes = nil }, measure.Watts, ""},
		"a node without": {func(in *Input) {
			in.Nodes[1].Series = in.Nodes[1].Series[:8]
			in.Nodes[1].Missing = map[string]string{"energy": "x/energy_uj: permission denied"}
		}, measure.Watts, "n2: no energy counter or power sensor: x/energy_uj: permission denied"},
		"per sample too": {func(in *Input) { in.Nodes[1].Series = in.Nodes[1].Series[:8] }, measure.JoulesPerSample, "n2: no energy"},
		"of other things": {func(in *Input) {
			in.Nodes[1].Series = append(in.Nodes[1].Series, readings(metrics.TelemetryEnergy, "package-1", true, 0, 1))
		}, measure.Watts, "energy is known of package × 1 on n1, and of package × 2 on n2"},
		"target missed": {func(in *Input) { in.Targets = []measure.Target{measure.Accuracy(0.9)} }, measure.JoulesToTarget, "accuracy 0.9 was not reached"},
		"no steps":      {func(in *Input) { in.Steps = nil }, measure.JoulesPerSample, "no training clock"},
		"too short": {func(in *Input) {
			for i := range in.Nodes {
				for j := range in.Nodes[i].Series {
					in.Nodes[i].Series[j].Samples = in.Nodes[i].Series[j].Samples[:15]
				}
			}
		}, measure.Watts, "n1: energy of package-0: the samples of energy cover 4.0 s of 10.0 s"},
		"two of them": {func(in *Input) {
			in.Nodes[0].Series = append(in.Nodes[0].Series, readings(metrics.TelemetryCPU, "", true, 0, 1))
		}, measure.CPUShare, "cpu was read from 2 places"},
		"a reset": {func(in *Input) { in.Nodes[0].Series[8].Samples[15].Value = 3 }, measure.Watts, "went back"},
	} {
		in := trained()
		in.Nodes = twoNodes()
		c.change(&in)
		r := Summarize(in)
		if v, has := r.Values[c.measure]; has || !strings.Contains(r.Why[c.measure], c.why) || c.why == "" && r.Why[c.measure] != "" {
			t.Errorf("%s: %s is %g, %t, because %q; want none, because %q", name, c.measure, v, has, r.Why[c.measure], c.why)
		}
	}
}

// If the memory of processes was added up, each one's peak is known. A measure stated in a
// log is kept. A warning says that the energy may include other users' jobs.
func TestResourcesOtherwise(t *testing.T) {
	in := trained()
	in.Nodes = twoNodes()[:1]
	in.Nodes[0].Series[3].Source = "the run's processes, VmRSS"
	in.Nodes[0].Series[1] = readings(metrics.TelemetryCPUs, "", false, 1.5, 0)
	in.Figures = []metrics.Figure{{Name: measure.Watts, Unit: "W", Value: 7, File: "log"}}
	r := Summarize(in)
	if r.Values[measure.PeakMemory] != 9e9 || r.Values[measure.Watts] != 7 {
		t.Error(r.Values)
	}
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "only 1.5 of 4 CPUs of n1") {
		t.Errorf("nothing is said of energy that is shared: %s", text)
	}
	// A service has no samples, and its time is the run time of its programs: 3 s of CPU time per
	// second on 1.5 CPUs.
	in.Kind, in.Figures, in.Steps = "serve", nil, nil
	r = Summarize(in)
	if r.Values[measure.Watts] != 100 || r.Values[measure.CPUShare] != 2 || r.Why[measure.JoulesPerSample] != "" {
		t.Error(r.Values, r.Why)
	}
}
