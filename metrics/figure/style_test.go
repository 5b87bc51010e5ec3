package figure

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// No two series of a figure look alike, neither as markers nor as lines without markers.
// None of the first fourteen has a colour equal or close to another's.
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

// A line never breaks between a number and its percent sign.
func TestWrapKeepsPercents(t *testing.T) {
	style := textStyle(captionSize)
	const said = "Bars: 96.8 % intervals of the median (all of it 99 %). Efficiency 71.4 %; drift 12 %."
	for width := vg.Length(60); width < 400; width++ {
		lines := wrap(said, style, width)
		if strings.Join(lines, " ") != said {
			t.Fatalf("at %v the text became %q", width, lines)
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "%") {
				t.Errorf("at %v a line begins with %q", width, line)
			}
		}
	}
}
