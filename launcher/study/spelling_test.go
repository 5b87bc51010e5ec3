package study

import (
	"fmt"
	"testing"
)

func TestNear(t *testing.T) {
	names := []string{"check", "render", "run", "runs", "--format", "learning_rate", "latency_p95", "step_p95", "sample_cpu", "joules_per_sample", "tokens_per_second", "workload.resize", "workers"}
	for word, want := range map[string]string{"chekc": "[check]", "formt": "[--format]", "rns": "[runs]", "xyzzy": "[]", "": "[]", "lr": "[learning_rate]", "LR": "[learning_rate]", "speed_up": "[]", "tokens_per_s": "[tokens_per_second]", "workres": "[workers]", "tok/s": "[tokens_per_second]", "p95": "[latency_p95 step_p95]"} {
		if got := fmt.Sprint(NearWords(word, names)); got != want {
			t.Errorf("Near(%q) = %s, want %s", word, got, want)
		}
	}
}
