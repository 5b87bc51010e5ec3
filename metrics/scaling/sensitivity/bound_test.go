package sensitivity

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// The limiting resource is found from the recorded measures, in cases that are clear to a person.
func TestBounds(t *testing.T) {
	type recorded map[string]float64
	run := func(r recorded) []*scaling.Observation { return []*scaling.Observation{{Values: r}} }
	full := recorded{measure.CPUShare: 0.4, measure.CPUPressure: 0.01, measure.IOPressure: 0.01, measure.DataWait: 0.01, measure.BytesReadPerSample: 100}
	with := func(more recorded) recorded {
		r := recorded{}
		for key, v := range full {
			r[key] = v
		}
		for key, v := range more {
			r[key] = v
		}
		return r
	}
	for _, test := range []struct {
		name     string
		runs     recorded
		of, says string
	}{
		{"its cores are busy", with(recorded{measure.CPUShare: 0.98, measure.CPUPressure: 0.5}), BoundCores, "CPU share 98.0 %"},
		{"a quota", with(recorded{measure.ThrottledShare: 0.4}), BoundCores, "40.0 % of its periods"},
		{"the data no longer fits", with(recorded{measure.BytesReadPerSample: 3000, measure.DataWait: 0.6, measure.IOPressure: 0.5}), BoundMemory, "2.93 KiB of each sample, with all the memory 100 B"},
		{"storage, as with all the memory", with(recorded{measure.DataWait: 0.5, measure.IOPressure: 0.4}), BoundDisk, "steps wait for data 50.0 %"},
		{"a consumer that uses few cores", with(nil), BoundCompute, "neither cores nor data"},
		{"others take the CPUs", with(recorded{measure.CPUPressure: 0.9}), "", "some task waited for a CPU 90.0 %"},
		{"others take the CPUs, and some bytes are read", with(recorded{measure.CPUPressure: 0.9, measure.DataWait: 0.2, measure.IOPressure: 0.2}), "", "some task waited for a CPU"},
		{"waits, and nothing is read", with(recorded{measure.DataWait: 0.5, measure.BytesReadPerSample: 0}), "", "what prepares the data"},
		{"nothing is known", recorded{}, "", "not recorded: cpu_share, cpu_pressure, io_pressure, bytes_read_per_sample and data_wait"},
	} {
		if b := boundOf(run(test.runs), run(full)); b.Of != test.of || !strings.Contains(b.Why, test.says) {
			t.Errorf("%s: %q, %s", test.name, b.Of, b.Why)
		}
	}
}
