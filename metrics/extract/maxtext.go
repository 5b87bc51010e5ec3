package extract

import (
	"fmt"
	"io"
	"regexp"

	"github.com/scalebench/scalebench/metrics/number"
)

// maxText reads the lines of MaxText. Step 0 compiles; since the host runs ahead of
// the device, step 1 seems to take no time, with a rate that no device has. The next
// ones are measured. total_weights counts the tokens of a step over all devices,
// padding left out.
var maxText = Extractor{
	Name:  "maxtext",
	Kind:  "train",
	Reads: "completed step: N, seconds: X, TFLOP/s/device: X, Tokens/s/device: X, total_weights: N, loss: X",
	read:  readMaxText,
}

var (
	maxTextStep = regexp.MustCompile(`(?:^|[\s:\]])completed step: (\d+), (.+)$`)
	maxTextEval = regexp.MustCompile(`(?:^|[\s:\]])(?:eval metrics after step: |Completed eval after train step )(\d+), +loss=([^,\s]+),`)
)

func readMaxText(l *log, r io.Reader) error {
	s := newStepLog(l, "MaxText", 2)
	var step [3]float64 // the latest one's tokens, time and tokens/s of a device
	err := l.each(r, func(ln line) error {
		if m := maxTextEval.FindStringSubmatch(ln.text); m != nil {
			return s.evaluationAt(ln, m[1], m[2])
		}
		m := maxTextStep.FindStringSubmatch(ln.text)
		if m == nil {
			return nil
		}
		fields, err := l.fieldsOf(ln.number, m[2], ", ")
		if err != nil {
			return err
		}
		loss, ok := fields["loss"]
		if _, timed := fields["seconds"]; !ok || !timed {
			return nil // a line that was cut, or of a phase without rates
		}
		n, err := l.whole(ln.number, m[1])
		if err != nil {
			return err
		}
		if ok, err := s.takes(ln, n); !ok {
			return err
		}
		for _, f := range []struct {
			theirs, ours string
			scale        float64
		}{{"seconds", stepSeconds, 1}, {"TFLOP/s/device", flopsPerGPU, 1e12}, {"Tokens/s/device", tokensPerGPU, 1}} {
			if x, ok := fields[f.theirs]; ok {
				if err := s.number(ln.number, f.ours, x, f.scale); err != nil {
					return err
				}
			}
		}
		if x, ok := fields["total_weights"]; ok && s.lines > s.starting {
			for i, text := range []string{x, fields["seconds"], fields["Tokens/s/device"]} {
				v, err := l.parse(ln.number, text)
				if err != nil {
					return err
				}
				step[i] = v.Number
			}
		}
		return s.lossOf(ln.number, "step", float64(n), loss)
	})
	if err != nil {
		return err
	}
	// A process of MaxText's drives all devices of its host, so that workers may be
	// fewer than devices. Padding makes a step's tokens fewer, never more.
	if n := s.devices(); step[0] > 1.01*n*step[1]*step[2] && n > 0 {
		s.undivided = fmt.Sprintf("a step has %.0f tokens, more than those of %s. Give --workers the number of devices", step[0], number.Count(int(n), "device"))
	}
	return s.finish()
}
