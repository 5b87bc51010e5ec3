package loadtest

import (
	"errors"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// WriteLog writes the latencies in HdrHistogram's log format 1.3, which HdrHistogram's plotters and libraries
// read: one line per window with a histogram in nanoseconds. Windows of the warm-up have the tag "warm-up". To
// get percentiles over several windows, add up their histograms.
func (r *Result) WriteLog(w io.Writer, about string, start time.Time, warmup int) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	log.SetBaseTime(start.UnixMilli())
	err := errors.Join(log.OutputLogFormatVersion(), log.OutputComment(" "+about), log.OutputStartTime(start.UnixMilli()), log.OutputLegend())
	for i, window := range r.Windows {
		if err != nil {
			return err
		}
		h := window.Latency
		h.SetStartTimeMs(start.Add(window.Begin).UnixMilli())
		h.SetEndTimeMs(start.Add(window.Begin + window.Length).UnixMilli())
		h.SetTag("")
		if i < warmup {
			h.SetTag("warm-up")
		}
		err = log.OutputIntervalPackedHistogram(h)
	}
	return err
}
