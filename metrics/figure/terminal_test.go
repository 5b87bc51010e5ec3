package figure

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Two points on a linear axis: the line from the lower left to the upper right has its markers at the columns and rows
// that the axes say.
func TestText(t *testing.T) {
	x, y := newAxis("workers"), newAxis("rate")
	x.min, x.max, x.empty = 0, 10, false
	y.min, y.max, y.empty = 0, 10, false
	c := chart{x: x, y: y, marks: []Mark{
		{Kind: Line, Points: []XY{{0, 0}, {10, 10}}, style: 0},
		{Kind: Median, Points: []XY{{0, 0}}, style: 0}, {Kind: Median, Points: []XY{{10, 10}}, style: 0},
		{Kind: Label, Points: []XY{{10, 10}}, Text: "a – b", style: 0},
	}}
	f := &Drawing{panels: []panel{{chart: c}}}
	for _, on := range []Terminal{{Width: 60}, {Width: 60, ASCII: true}, {Width: 60, Colour: true}} {
		text := f.Text(on)
		lines := strings.Split(text, "\n")
		// The y title, 18 rows, the axis, its labels, its title, the legend. Labels up to "10" take 2
		// columns, the edge 2 more: 56 cells.
		if len(lines) != 24 || lines[0] != "rate" {
			t.Fatalf("%d lines:\n%s", len(lines), text)
		}
		marker, edge := "●", "│"
		if on.ASCII {
			marker, edge = "o", "|"
			if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
				t.Errorf("not ASCII:\n%s", text)
			}
		}
		if on.Colour {
			if !strings.Contains(lines[1], "\x1b[34m●\x1b[0m") {
				t.Errorf("no colour: %q", lines[1])
			}
			continue
		}
		top, bottom := lines[1], lines[18]
		if want := "10 " + edge + strings.Repeat(" ", 50); !strings.HasPrefix(top, want) || !strings.HasSuffix(top, marker) || utf8.RuneCountInString(top) != 60 {
			t.Errorf("top: %q", top)
		}
		if !strings.HasPrefix(bottom, " 0 "+edge+marker) {
			t.Errorf("bottom: %q", bottom)
		}
		if want := "  " + marker + " a " + map[bool]string{true: "-", false: "–"}[on.ASCII] + " b"; lines[22] != want {
			t.Errorf("legend: %q, want %q", lines[22], want)
		}
	}
}

// Labels of points that end anywhere are next to them if there is room, else in the legend.
func TestTextNamesPoints(t *testing.T) {
	x, y := newAxis("time"), newAxis("cost")
	x.min, x.max, x.empty = 0, 10, false
	y.min, y.max, y.empty = 0, 10, false
	c := chart{x: x, y: y, scattered: true}
	for at, text := range map[float64]string{0: "near", 10: "no room"} {
		p := []XY{{at, at}}
		c.add(Mark{Kind: Median, Points: p})
		c.add(Mark{Kind: Label, Points: p, Text: text})
	}
	f := &Drawing{panels: []panel{{chart: c}}}
	text := f.Text(Terminal{Width: 60})
	if !strings.Contains(text, "│● near\n") || !strings.Contains(text, "\n  ● no room\n") || strings.Count(text, "near") != 1 {
		t.Error(text)
	}
}

// Every figure of curves is drawn within the width, whatever that is.
func TestTextFits(t *testing.T) {
	for _, study := range []string{"small", "two"} {
		for _, kind := range curveKinds() {
			f := studies[study].draw(t, kind, Options{})
			for _, width := range []int{0, 40, 80, 500} {
				for line := range strings.SplitSeq(f.Text(Terminal{Width: width}), "\n") {
					if n := utf8.RuneCountInString(line); n > max(40, min(width, 120)) && strings.ContainsAny(line, "│└") {
						t.Errorf("%s %s: %d columns of %d: %q", study, kind, n, width, line)
					}
				}
			}
		}
	}
}
