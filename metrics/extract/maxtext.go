package extract

import (
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
)

// maxText reads the lines of MaxText. Step 0 includes compilation. The host runs ahead of the
// device, so that step 1 seems to take no time and has an impossible rate. Rates are taken from
// later steps. total_weights is the number of tokens of a step over all devices, without padding.
var maxText = Extractor{
	Name:  "maxtext",
	Kind:  "train",
	Reads: "completed step: N, seconds: X, TFLOP/s/device: X, Tokens/s/device: X, total_weights: N, loss: X",
	read:  readMaxText,
}

var maxTextLog = stepFormat{
	program: "MaxText", starting: 2,
	line:      regexp.MustCompile(`(?:^|[\s:\]])completed step: (?P<step>\d+), (?P<fields>.+)$`),
	separator: ", ",
	needs:     []string{"loss", "seconds"}, // a line without them was cut off or belongs to a phase without rates
	losses:    []string{"loss"},
	fields:    []stepField{{"seconds", stepSeconds, 1, nil}, {"TFLOP/s/device", flopsPerGPU, 1e12, nil}, {"Tokens/s/device", tokensPerGPU, 1, nil}},
	others:    []stepLine{evaluationLine(regexp.MustCompile(`(?:^|[\s:\]])(?:eval metrics after step: |Completed eval after train step )(\d+), +loss=([^,\s]+),`))},
}

func readMaxText(l *log, r io.Reader) {
	var of []Value // the latest step's tokens, seconds, and tokens/s per device
	f := maxTextLog
	f.more = func(s *stepLog, ln line, step int, fields parts) {
		x, ok := fields["total_weights"]
		if !ok || s.lines <= s.format.starting {
			return
		}
		if texts := []string{x, fields["seconds"], fields["Tokens/s/device"]}; !slices.ContainsFunc(texts, undefinedText) {
			of = l.parseAll(ln.number, texts...)
		}
	}
	s := newStepLog(l, &f)
	l.each(r, s.read)
	// One MaxText process drives all devices of its host, so there may be fewer workers than
	// devices. A step then has more tokens than the workers account for. (Padding only makes the
	// stated number smaller.)
	if n := s.devices(); n > 0 && len(of) == 3 && of[0].Number > 1.01*n*of[1].Number*of[2].Number {
		s.undivided = fmt.Sprintf("a step has %.0f tokens, more than those of %s. Give --workers the number of devices", of[0].Number, number.Count(int(n), "device"))
	}
	s.finish()
}
