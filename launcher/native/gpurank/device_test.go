//go:build cgo

package gpurank

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/world"
)

func TestOrdinal(t *testing.T) {
	for _, test := range []struct {
		gpus, localRank, localSize int
		want                       int // -1: an error
	}{
		{1, 0, 1, 0}, {1, 3, 4, 0}, {4, 3, 4, 3}, {8, 3, 4, 3}, {2, 3, 4, -1}, {3, 0, 4, -1},
	} {
		got, err := ordinal(test.gpus, world.World{LocalRank: test.localRank, LocalSize: test.localSize})
		if err != nil {
			got = -1
		}
		if got != test.want {
			t.Errorf("%+v: %d, %v", test, got, err)
		}
	}
}
