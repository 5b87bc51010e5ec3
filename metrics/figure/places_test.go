package figure

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Captions name points by their axis.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		axis, kind string
		at         []scaling.Value
		want       string
	}{
		{scaling.Workers, "train", []scaling.Value{scaling.At(1)}, "1 worker"},
		{scaling.Workers, "train", []scaling.Value{scaling.At(1), scaling.At(4)}, "1 and 4 workers"},
		{scaling.Workers, "serve", []scaling.Value{scaling.At(1)}, "1 replica"},
		{scaling.Workers, "serve", []scaling.Value{scaling.At(1), scaling.At(4)}, "1 and 4 replicas"},
		{"threads", "serve", []scaling.Value{scaling.At(2)}, "threads 2"},
		{"workload.batch", "train", []scaling.Value{scaling.At(1), scaling.At(2), scaling.At(8)}, "batch 1, 2 and 8"},
		{"variant", "train", []scaling.Value{{Word: "cpu"}, {Word: "gpu"}}, "variant cpu and gpu"},
	} {
		if got := places(scaling.Curve{Axis: tt.axis, Kind: tt.kind}, tt.at); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.axis, got, tt.want)
		}
	}
}
