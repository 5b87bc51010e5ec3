//go:build cgo

package gpurank

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	many := make([]int64, 20)
	for i := range many {
		many[i] = 22703
	}
	many[4] = 2804
	for _, test := range []struct {
		versions []int64
		want     string // "": equal
	}{
		{[]int64{22703}, ""},
		{[]int64{22703, 22703, 22703}, ""},
		{[]int64{22800, 22703, 22800}, "2.28.0 on rank 0, 2; 2.27.3 on rank 1; give"},
		// The fake differs from the library whose version it reports.
		{[]int64{22800, 22800 | doubleMark}, "2.28.0 on rank 0; a double of 2.28.0 on rank 1; give"},
		{many, "2.27.3 on rank 0, 1, 2, 3, 5, 6, 7, 8, 11 more; 2.8.4 on rank 4; give"},
	} {
		err := compare(test.versions)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.versions, err, test.want)
		}
	}
}
