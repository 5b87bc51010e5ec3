package measure

import (
	"fmt"
	"math"
)

// An MFUStatement is an MFU and the FLOP/s per device that it was calculated from.
type MFUStatement struct {
	MFU   float64 // fraction
	FLOPS float64 // FLOP/s; 0: not stated
}

// RestatedMFU explains in one line why a log's MFU and ours of the same run (named by
// its measure) differ: in FLOPs per token, in the peak, or in both.
func RestatedMFU(log, ours MFUStatement, name string, tokensPerSecond float64) string {
	percent := func(x float64) string { return fmt.Sprintf("%.4g %%", 100*x) }
	if !(log.FLOPS > 0) {
		if math.Abs(log.MFU/ours.MFU-1) < near {
			return fmt.Sprintf("the log's own MFU, %s, is that of %s", percent(log.MFU), name)
		}
		return fmt.Sprintf("the log's own MFU, %s, is %.3g times %s, %s: its FLOPs per token or its peak must differ, but it states neither",
			percent(log.MFU), log.MFU/ours.MFU, name, percent(ours.MFU))
	}
	of := func(s MFUStatement) string {
		return fmt.Sprintf("%s is %.4g FLOPs a token of a peak of %.4g TFLOP/s", percent(s.MFU), s.FLOPS/tokensPerSecond, s.FLOPS/s.MFU/1e12)
	}
	var why string
	flops, peak := math.Abs(log.FLOPS/ours.FLOPS-1) > near, math.Abs(log.FLOPS/log.MFU/(ours.FLOPS/ours.MFU)-1) > near
	switch {
	case flops && peak:
		why = "the counts of FLOPs differ, and the peaks"
	case flops:
		why = "the counts of FLOPs differ"
	case peak:
		why = "the peaks differ"
	default:
		why = "the same"
	}
	return fmt.Sprintf("the log's own MFU of %s; %s of %s: %s", of(log), name, of(ours), why)
}

// near is the relative difference allowed between equal figures: each is printed with
// four digits and is a median over log lines.
const near = 0.005
