package figure

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// What a caption says of points is by the axis that they are on.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		axis string
		at   []scaling.Value
		want string
	}{
		{scaling.Workers, []scaling.Value{scaling.At(1)}, "1 worker"},
		{scaling.Workers, []scaling.Value{scaling.At(1), scaling.At(4)}, "1 and 4 workers"},
		{"threads", []scaling.Value{scaling.At(2)}, "threads 2"},
		{"workload.batch", []scaling.Value{scaling.At(1), scaling.At(2), scaling.At(8)}, "batch 1, 2 and 8"},
		{"variant", []scaling.Value{{Word: "cpu"}, {Word: "gpu"}}, "variant cpu and gpu"},
	} {
		if got := places(tt.axis, tt.at); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.axis, got, tt.want)
		}
	}
}
