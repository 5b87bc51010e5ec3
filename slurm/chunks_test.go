package slurm

import (
	"slices"
	"strings"
	"testing"
)

// Values and their commas fill parts of 100,000 bytes: two of 49,999 bytes fit exactly. A longer value gets a
// part by itself.
func TestChunksAtTheirEdges(t *testing.T) {
	half, over := strings.Repeat("a", 49_999), strings.Repeat("b", 120_000)
	for _, c := range []struct {
		name   string
		values []string
		want   []int // values in each part
	}{
		{"none", nil, nil},
		{"one", []string{"1"}, []int{1}},
		{"short ones", []string{"1", "2", "3"}, []int{3}},
		{"exactly full", []string{half, half}, []int{2}},
		{"one byte more", []string{half, half + "a"}, []int{1, 1}},
		{"one too many", []string{half, half, "1"}, []int{2, 1}},
		{"two parts exactly full", []string{half, half, half, half}, []int{2, 2}},
		{"too long alone", []string{over}, []int{1}},
		{"too long between", []string{"1", over, "2", "3"}, []int{1, 1, 2}},
	} {
		parts := chunks(c.values)
		var sizes []int
		for _, p := range parts {
			sizes = append(sizes, len(p))
		}
		if !slices.Equal(sizes, c.want) || !slices.Equal(slices.Concat(parts...), c.values) {
			t.Errorf("%s: parts of %v, want %v", c.name, sizes, c.want)
		}
	}
}
