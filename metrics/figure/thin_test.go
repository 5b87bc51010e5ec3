package figure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// 10,000 runs at each of two positions: the dots keep the minimum, the maximum and the
// quartiles of each position within 50 ranks. A few runs all stay.
func TestThinDots(t *testing.T) {
	const runs = 10_000
	var c chart
	for i := range runs {
		value := float64(i * 7919 % runs) // every integer below runs once, in scrambled order
		c.add(Mark{Kind: Dot, Series: "many", Points: []XY{{1, value}}})
		c.add(Mark{Kind: Dot, Series: "many", Points: []XY{{2, value}}})
		if i < 5 {
			c.add(Mark{Kind: Dot, Series: "few", Points: []XY{{1, value}}})
		}
	}
	c.add(Mark{Kind: Median, Series: "many", Points: []XY{{1, runs / 2}}})
	c.thin(mostDots)
	count := map[string]int{}
	var below int
	least, greatest := float64(runs), 0.0
	for _, m := range c.marks {
		count[string(m.Kind)+m.Series]++
		if m.Kind == Dot && m.Series == "many" && m.Points[0].X == 1 {
			least, greatest = min(least, m.Points[0].Y), max(greatest, m.Points[0].Y)
			if m.Points[0].Y < runs/4 {
				below++
			}
		}
	}
	if n := count["dotmany"]; n < mostDots || n > mostDots+4 {
		t.Errorf("%d dots stay of %d", n, 2*runs)
	}
	if count["dotfew"] != 5 || count["medianmany"] != 1 {
		t.Errorf("kept %v; every dot of a small series and every median must stay", count)
	}
	if least != 0 || greatest != runs-1 {
		t.Errorf("the dots of a place go from %g to %g, want 0 to %d", least, greatest, runs-1)
	}
	if below < 50 || below > 51 {
		t.Errorf("%d of about 200 dots are in the lowest quarter of the runs, want a quarter", below)
	}
	if text := strings.Join(c.caption, " "); !strings.Contains(text, "of a series' 20000 runs") {
		t.Errorf("caption %q does not say that runs are left out", text)
	}
}

// A line and its end are kept or dropped together.
func TestThinLines(t *testing.T) {
	var c chart
	for i := range 1000 {
		end := XY{100 + float64(i), 0.5}
		kind := End
		if i%3 == 0 {
			kind = Missed
		}
		c.add(Mark{Kind: Trace, Series: "s", Points: []XY{{0, 0}, end}})
		c.add(Mark{Kind: kind, Series: "s", Points: []XY{end}})
	}
	c.thin(mostDots)
	ends := map[XY]bool{}
	traces := 0
	for _, m := range c.marks {
		if m.Kind != Trace {
			ends[m.Points[0]] = true
		}
	}
	for _, m := range c.marks {
		if m.Kind == Trace {
			if traces++; !ends[m.Points[1]] {
				t.Errorf("the line to %v has lost its end", m.Points[1])
			}
		}
	}
	if traces != mostTraces || len(ends) != mostTraces {
		t.Errorf("%d lines with %d ends stay, want %d", traces, len(ends), mostTraces)
	}
}

// Figures of a usual size are not thinned.
func TestThinLeavesFewRunsAlone(t *testing.T) {
	var c chart
	for i := range mostDots {
		c.add(Mark{Kind: Dot, Series: "s", Points: []XY{{1, float64(i)}}})
	}
	c.thin(mostDots)
	if len(c.marks) != mostDots || c.caption != nil {
		t.Errorf("%d marks, caption %q", len(c.marks), c.caption)
	}
}

// 50 series of 7 positions with 300 runs each have 40 dots each, and the extremes of each position: a picture of
// 50 · 400 dots would be many megabytes.
func TestThinManySeries(t *testing.T) {
	var obs []scaling.Observation
	for series := range 50 {
		for n := range 7 {
			for i := range 300 {
				obs = append(obs, scaling.Observation{Run: fmt.Sprint(series, "/", n, "/", i), Point: fmt.Sprint(series, "/", n), Repeat: i + 1, Framework: "csv", Workers: 1 << n, Nodes: 1,
					Parameters: map[string]any{"batch": series}, Values: map[string]float64{measure.Throughput: float64(1000*n + i + 1)}})
			}
		}
	}
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw(measure.Throughput, Data{Curves: curves}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dots, highest := map[string]int{}, map[string]float64{}
	for _, m := range f.Marks() {
		if m.Kind == Dot {
			dots[m.Series]++
			highest[m.Series] = max(highest[m.Series], m.Points[0].Y)
		}
	}
	if len(dots) != 50 {
		t.Errorf("%d series with dots", len(dots))
	}
	for series, n := range dots {
		if n < leastDots || n > leastDots+2*7 || highest[series] != 6300 {
			t.Errorf("%s: %d dots up to %g", series, n, highest[series])
		}
	}
	if !strings.Contains(f.Caption(), "of a series' 2100 runs") {
		t.Errorf("caption %q", f.Caption())
	}
}
