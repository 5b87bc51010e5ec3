package loadtest

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Reading the log back gives what was measured: the number of windows and answers, and the percentiles of the
// windows after the warm-up added up.
func TestWriteLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &played{service: func(n int) (time.Duration, error) {
			if n < 100 { // cold
				return 30 * time.Millisecond, nil
			}
			return time.Duration(5+n*7919%10) * time.Millisecond, nil
		}}
		start := time.Now()
		r, err := Run(context.Background(), Options{Dial: p.dial, InFlight: 1, Duration: Windows * time.Second, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		v := r.Judge()
		if v.Why != "" || v.Warmup == 0 {
			t.Fatalf("warm-up of %d windows, %s", v.Warmup, v.Why)
		}
		var text bytes.Buffer
		if err := r.WriteLog(&text, "1 in flight, batch 1", start, v.Warmup); err != nil {
			t.Fatal(err)
		}
		all := hdrhistogram.New(1, int64(time.Hour), 3)
		windows, cold := 0, 0
		for log := hdrhistogram.NewHistogramLogReader(&text); ; windows++ {
			h, err := log.NextIntervalHistogram()
			if err != nil {
				t.Fatal(err)
			}
			if h == nil {
				break
			}
			if h.Tag() == "warm-up" {
				cold++
				continue
			}
			all.Merge(h)
		}
		if windows != len(r.Windows) || cold != v.Warmup || all.TotalCount() != v.Total.Good {
			t.Errorf("%d windows of %d, %d of the warm-up of %d, %d answers of %d", windows, len(r.Windows), cold, v.Warmup, all.TotalCount(), v.Total.Good)
		}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			want, _ := v.Total.Percentile(Latency, q)
			if got := float64(all.ValueAtPercentile(100*q)) / 1e9; !near(got, want) {
				t.Errorf("P%g is %g s, measured as %g", 100*q, got, want)
			}
		}
	})
}
