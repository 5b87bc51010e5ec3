package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"p95=50ms":                          {map[string]float64{LatencyP95: 0.05}, 0.001},
		"errors=0.01 p99=1.5s ttft_p50=2ms": {map[string]float64{LatencyP99: 1.5, TTFTP50: 0.002}, 0.01},
		"":                                  {map[string]float64{}, 0.001},
	} {
		got, err := ParseLimit(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
		again, err := ParseLimit(got.String())
		if diff := cmp.Diff(want, again); err != nil || diff != "" {
			t.Errorf("%q, written as %q: %v %s", text, got, err, diff)
		}
	}
	l, _ := ParseLimit("ttft_p99=1s p95=50ms errors=0.01")
	if got := l.TOML(); got != `limit = { p95 = "50ms", ttft_p99 = "1s", errors = 0.01 }` {
		t.Error(got)
	}
	for _, text := range []string{"p95", "p95=", "p95=50", "p95=-1ms", "p42=1ms", "latency_p95=1ms", "mean=1ms", "errors=2", "errors=x", "rate=1ms"} {
		if l, err := ParseLimit(text); err == nil {
			t.Errorf("%q is taken for %v", text, l)
		}
	}
}
