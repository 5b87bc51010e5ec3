package extract

import "testing"

// For the two figures in samples/s, a rate of steps is converted by the batch. Under any
// other name it keeps its unit and needs no batch.
func TestUnitOfStepRates(t *testing.T) {
	for _, c := range []struct {
		figure, unit string
		base         string
		scale        float64
		steps, each  bool
	}{
		{"throughput", "it/s", "samples/s", 1, true, false},
		{"throughput", "steps/min", "samples/s", 1 / 60., true, false},
		{"throughput", "ms/step", "samples/s", 1e-3, true, true},
		{"throughput", "img/s", "samples/s", 1, false, false},
		{"throughput", "kimg/s", "samples/s", 1e3, false, false},
		{"end_to_end", "batches/s", "samples/s", 1, true, false},
		{"end_to_end", "s/step", "samples/s", 1, true, true},
		{"end_to_end", "samples/s", "samples/s", 1, false, false},
		{"optimizer_rate", "steps/s", "steps/s", 1, false, false},
		{"optimizer_rate", "it/s", "it/s", 1, false, false},
		{"optimizer_rate", "ms/step", "ms/step", 1, false, false},
		{"decoded", "kimg/s", "samples/s", 1e3, false, false},
	} {
		p := Pattern{Name: c.figure, Pattern: `x (?P<value>\d+)`, Unit: c.unit}
		got, err := p.compile()
		if err != nil {
			t.Errorf("%s in %s: %v", c.figure, c.unit, err)
			continue
		}
		if want := (unit{base: c.base, scale: c.scale, steps: c.steps, each: c.each}); got.unit != want {
			t.Errorf("%s in %s: %+v, want %+v", c.figure, c.unit, got.unit, want)
		}
		if p.NeedsBatch() != c.steps {
			t.Errorf("%s in %s: needs the batch: %v, want %v", c.figure, c.unit, p.NeedsBatch(), c.steps)
		}
	}
}

// Units that number.ParseUnit accepts but that are not stored: a prefix alone, and the time
// of anything but a step.
func TestUnitsThatAreNotStored(t *testing.T) {
	for name, want := range map[string]bool{"s/step": true, "ms/it": true, "s/sample": false, "ms/token": false, "K": false, "M": false, "h": true, "steps/s": true} {
		if _, known := parsedUnit(name); known != want {
			t.Errorf("%s is known: %v, want %v", name, known, want)
		}
	}
}
