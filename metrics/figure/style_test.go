package figure

import (
	"fmt"
	"testing"
)

// Of as many series as a figure can hold no two look alike: not as markers, not as
// lines without any, and of the first fourteen none has the colour of another, nor
// one that is near it.
func TestStylesDiffer(t *testing.T) {
	const markers, coloured = 42, 14
	marks, lines := map[string]int{}, map[string]int{}
	for i := range markers {
		mark := fmt.Sprint(colorOf(i), shapes[i%len(shapes)])
		line := fmt.Sprint(colorOf(i), dashesOf(i))
		for look, seen := range map[string]map[string]int{mark: marks, line: lines} {
			if other, taken := seen[look]; taken {
				t.Errorf("styles %d and %d look alike: %s", other, i, look)
			}
			seen[look] = i
		}
	}
	for i := range coloured {
		for j := range i {
			a, b := colorOf(i), colorOf(j)
			far := 0
			for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B)} {
				far += d * d
			}
			if far < 35*35 {
				t.Errorf("styles %d and %d have nearly one colour: %v, %v", j, i, b, a)
			}
		}
	}
}
