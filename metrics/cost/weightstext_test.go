package cost

import "testing"

// Slurm counts memory in MB: a weight of 0.25G is 0.25 a GB, and one without a unit is
// of a MB, which is 1024 times as much of a GB.
func TestWeightsAsText(t *testing.T) {
	for _, c := range []struct {
		weights string
		max     bool
		want    string
	}{
		{"CPU=1.0,Mem=0.25G", true, "max of cpu=1, mem=0.25G"},
		{"Mem=0.25G,CPU=1.0", false, "sum of cpu=1, mem=0.25G"},
		{"mem=.25", false, "sum of mem=256G"},
		{"mem=1M", false, "sum of mem=1024G"},
		{"mem=1T", false, "sum of mem=0.0009765625G"},
		{"gres/gpu:a100=4,cpu=0.5,node=2", false, "sum of cpu=0.5, gres/gpu:a100=4, node=2"},
	} {
		w, err := ParseWeights(c.weights, c.max)
		if err != nil {
			t.Errorf("%s: %v", c.weights, err)
			continue
		}
		if got := w.String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.weights, got, c.want)
		}
	}
}
