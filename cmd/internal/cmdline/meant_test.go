package cmdline

import (
	"strings"
	"testing"
)

func TestMeant(t *testing.T) {
	for _, c := range []struct{ message, hint, wrong, first string }{
		{`unknown measure "througput"; choose one of algbw, throughput, skew`, "", `unknown measure "througput"`, "Did you mean throughput?"},
		{`--format "jsn" is not known; valid: table, csv, json`, "", `--format "jsn" is not known`, "Did you mean json?"},
		{`unknown extractor "x"; valid: aiperf`, "Did you mean nanogpt?", `unknown extractor "x"`, "Did you mean nanogpt?"},
		{`--per "qqq" is not known; valid: run, epoch`, "", `--per "qqq" is not known; valid: run, epoch`, ""},
		{`s.toml:3: workload.model: "mlpp" is not known; valid: mlp`, "", `s.toml:3: workload.model: "mlpp" is not known; valid: mlp`, ""},
		{"no run has a parameter workload.dataset\n(columns: run, id; parameters: data.path, workload.model)", "", "no run has a parameter workload.dataset", "Did you mean data.path?"},
		{`unknown measure "gpu_util"; choose one of gpu_throttled_share, throughput`, "", `unknown measure "gpu_util"; choose one of gpu_throttled_share, throughput`, ""}, // another quantity
		{`study "dem": not found; studies with runs: demo, other`, "", `study "dem": not found`, "Did you mean demo?"},
	} {
		wrong, hint := Meant(c.message, c.hint)
		first, _, _ := strings.Cut(hint, "\n")
		if wrong != c.wrong || first != c.first {
			t.Errorf("%q: %q, hint %q", c.message, wrong, hint)
		}
	}
}
