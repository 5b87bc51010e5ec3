package advice

import (
	"reflect"
	"testing"
)

// Runs that wait are not suggested again. Each count needs 6.
func TestSubtract(t *testing.T) {
	for _, tt := range []struct {
		name    string
		waiting map[int]int
		want    Next
	}{
		{"none", nil, Next{Workers: 8, Runs: 6, Neighbours: []int{4, 16}}},
		{"other counts", map[int]int{1: 6}, Next{Workers: 8, Runs: 6, Neighbours: []int{4, 16}}},
		{"some of each", map[int]int{4: 2, 8: 3, 16: 4}, Next{Workers: 8, Runs: 4, Queued: 9, Neighbours: []int{4, 16}}},
		{"all of one", map[int]int{8: 6}, Next{Workers: 4, Runs: 6, Queued: 6, Neighbours: []int{16}}},
		{"all", map[int]int{4: 6, 8: 7, 16: 6}, Next{Workers: 8, Runs: 0, Queued: 19, Neighbours: []int{4, 16}}},
	} {
		n := Next{Workers: 8, Runs: 6, Neighbours: []int{4, 16}}
		if n.Subtract(tt.waiting); !reflect.DeepEqual(n, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, n, tt.want)
		}
	}
}
