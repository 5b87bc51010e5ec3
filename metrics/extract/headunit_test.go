package extract

import (
	"strings"
	"testing"
)

// A column whose name says a unit is not taken in another one without a word:
// "time (ms)" of 100 was 100 s.
func TestUnitInAColumnsName(t *testing.T) {
	for _, c := range []struct {
		ours string
		Column
		want string // "": accepted
	}{
		{"train_seconds", Column{Name: "time (ms)"}, `column "time (ms)" is in ms by its name, and train_seconds is in s: map train_seconds=time (ms):ms`},
		{"train_seconds", Column{Name: "time (ms)", Unit: "ms"}, ""},
		{"train_seconds", Column{Name: "time (ms)", Unit: "s"}, ""},
		{"train_seconds", Column{Name: "time (s)"}, ""},
		{"train_seconds", Column{Name: "time [min]"}, "train_seconds=time [min]:min"},
		{"train_seconds", Column{Name: "time"}, ""},
		{"train_seconds", Column{Name: "seconds"}, ""},
		{"train_seconds", Column{Name: "time (wall)"}, ""},
		{"elapsed", Column{Name: "elapsed_ms"}, "elapsed=elapsed_ms:ms"},
		{"elapsed", Column{Name: "Milliseconds"}, "elapsed=Milliseconds:ms"},
		{"elapsed", Column{Name: "hours"}, "elapsed=hours:h"},
		{"elapsed", Column{Name: "time (h)"}, "elapsed=time (h):h"},
		{"latency_p95", Column{Name: "p95_us"}, "latency_p95=p95_us:us"},
		{"latency_p95", Column{Name: "items"}, ""}, // no ms
		{"throughput", Column{Name: "rate (img/s)"}, ""},
		{"throughput", Column{Name: "img/s"}, ""},
		{"throughput", Column{Name: "img_per_s"}, ""},
		{"throughput", Column{Name: "rate[ms]"}, `column "rate[ms]" is in "ms" by its name, and throughput cannot be`},
		{"throughput", Column{Name: "rate (k img/s)"}, `in "k img/s" by its name, and throughput cannot be`},
		{"throughput", Column{Name: "rate (steps/s)"}, `in "steps/s" by its name, and throughput cannot be`},
		{"throughput", Column{Name: "img/min"}, `in "1/min" by its name, and throughput cannot be`},
		{"throughput", Column{Name: "images_per_hour"}, `in "1/h" by its name, and throughput cannot be`},
		{"throughput", Column{Name: "rate (k img/s)", Unit: "img/s"}, ""},
		{"accuracy", Column{Name: "top1 %"}, "accuracy=top1 %:%"},
		{"accuracy", Column{Name: "acc_pct"}, "accuracy=acc_pct:%"},
		{"errors", Column{Name: "failed (%)"}, "errors=failed (%):%"},
		{"platform", Column{Name: "disk (ms)", Label: true}, ""},
		{"workers", Column{Name: "GPUs (h)"}, ""},
	} {
		err := fits(c.ours, c.Column)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s=%s:%s: %v; want %q", c.ours, c.Name, c.Unit, err, c.want)
		}
	}
}
