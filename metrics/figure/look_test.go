package figure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Lines that differ in two keys get the colour of the key with more values and the marker of the
// other; a key that follows from another counts once.
func TestCross(t *testing.T) {
	trends := func(of func(i, k int) map[string]any, a, b int) (list []trend) {
		for i := range a {
			for k := range b {
				list = append(list, trend{curve: scaling.Curve{Framework: "x", Parameters: of(i, k)}})
			}
		}
		return list
	}
	two := func(i, k int) map[string]any {
		return map[string]any{"batch": int64(i), "workload.precision": fmt.Sprint("p", k)}
	}
	for _, tt := range []struct {
		name    string
		list    []trend
		caption string
		want    []look
	}{
		{"more batches", trends(two, 3, 2), "Colour: batch; marker: precision.", []look{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}}},
		{"more precisions", trends(two, 2, 3), "Colour: precision; marker: batch.", []look{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}}},
		{"one key", trends(two, 4, 1), "", nil},
		{"too many colours", trends(two, 8, 2), "", nil},
		{"too many markers", trends(two, 7, 7), "", nil},
		{"a model for each batch", trends(func(i, k int) map[string]any {
			return map[string]any{"batch": int64(i), "model": fmt.Sprint("m", i), "precision": fmt.Sprint("p", k)}
		}, 2, 2), "Colour: precision; marker: batch.", []look{{0, 0}, {1, 0}, {0, 1}, {1, 1}}},
		{"keys that follow from each other", trends(func(i, _ int) map[string]any {
			return map[string]any{"batch": int64(i), "model": fmt.Sprint("m", i)}
		}, 3, 1), "", nil},
	} {
		var c chart
		c.cross(tt.list)
		if diff := cmp.Diff(tt.want, c.crossed, cmp.AllowUnexported(look{})); diff != "" || strings.Join(c.caption, " ") != tt.caption {
			t.Errorf("%s: %q, looks (-want +got):\n%s", tt.name, c.caption, diff)
		}
	}
	// Two measures of two batches: the measure is the marker.
	f, err := Draw(measure.LatencyP50+","+measure.LatencyP95, Data{Curves: served(t)}, Options{})
	if err != nil || !strings.Contains(f.Caption(), "Colour: batch; marker: measure.") {
		t.Errorf("%v: %v", f, err)
	}
}

// Panels of a parameter do not repeat it in their labels, and share those that are then equal.
func TestPanelsNameTheRest(t *testing.T) {
	var all []scaling.Curve
	for _, c := range served(t) {
		for _, precision := range []string{"fp16", "fp32"} {
			own := c
			own.Parameters = map[string]any{"batch": c.Parameters["batch"], "workload.precision": precision}
			all = append(all, own)
		}
	}
	f, err := Draw(measure.LatencyP95, Data{Curves: all}, Options{By: "workload.precision"})
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, m := range f.Marks() {
		if m.Kind == Label {
			labels = append(labels, m.Text)
		}
	}
	if diff := cmp.Diff([]string{"native batch=1", "native batch=8"}, labels); diff != "" || f.panels[1].chart.title != "precision fp32" {
		t.Errorf("panel %q, labels (-want +got):\n%s", f.panels[1].chart.title, diff)
	}
}

// Panels share a linear scale, unless the values of one would be lost on it. A log scale shows all.
func TestPanelsOfDifferentSizes(t *testing.T) {
	of := func(log bool, most ...float64) []chart {
		list := make([]chart, len(most))
		for i, y := range most {
			list[i] = chart{x: axis{min: 0, max: 1}, y: axis{log: log, min: y / 2, low: y / 2, max: y}}
		}
		return list
	}
	for name, tt := range map[string]struct {
		charts []chart
		shared bool
	}{
		"alike":     {of(false, 1, 9), true},
		"different": {of(false, 1, 11), false},
		"of three":  {of(false, 5, 11, 0.5), false},
		"log":       {of(true, 1, 1000), true},
	} {
		largest := tt.charts[0].y.max
		for _, c := range tt.charts {
			largest = max(largest, c.y.max)
		}
		shareAxes(tt.charts)
		if got := tt.charts[len(tt.charts)-1].y.max == largest && tt.charts[0].y.max == largest; got != tt.shared {
			t.Errorf("%s: shared: %v", name, got)
		}
		if says := len(tt.charts[0].caption) > 0; says == tt.shared {
			t.Errorf("%s: the caption is %q", name, tt.charts[0].caption)
		}
	}
}

// The largest load of each line always has its number; others only where it covers nothing.
func TestTags(t *testing.T) {
	x, _ := measure.Find(measure.RequestsPerSecond)
	f, err := Draw(measure.LatencyP95, Data{Curves: served(t)}, Options{Against: x})
	if err != nil {
		t.Fatal(err)
	}
	l := f.panels[0].layout
	largest := 0
	for i, p := range l.tags {
		if p.mark.Text == "8" {
			largest++
		}
		if p.mark.spare && !l.free(p.box, nil) {
			t.Errorf("tag %s lies outside the plot", p.mark.Text)
		}
		for _, other := range l.tags[:i] {
			if p.mark.spare && overlaps(p.box, other.box) {
				t.Errorf("tag %s covers %s", p.mark.Text, other.mark.Text)
			}
		}
	}
	if largest != 2 {
		t.Errorf("%d of 2 lines have their largest load, 8", largest)
	}
}

// A limit is drawn over the load, of probes too. One above three times the largest value is only
// named.
func TestLimits(t *testing.T) {
	limited := func(limit, name string) *chart {
		m, err := measure.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		c := chart{marks: []Mark{{Kind: Dot, Points: []XY{{1, 0.01}}}, {Kind: Dot, Points: []XY{{4, 0.02}}}}}
		c.caption = c.limits([]trend{{measure: m, curve: scaling.Curve{Parameters: map[string]any{"workload.limit": limit}}}})
		return &c
	}
	for _, tt := range []struct{ limit, measure, caption, line string }{
		{"p95=50ms", measure.LatencyP95, "Dashed: the limit, P95 50.0 ms.", `target (1, 0.05) (4, 0.05)`},
		{"p95=50ms", measure.Probe + measure.LatencyP95, "Dashed: the limit, P95 of a probe 50.0 ms.", `target (1, 0.05) (4, 0.05)`},
		{"p95=61ms", measure.LatencyP95, "Above the plot: the limit, P95 61.0 ms.", ""},
		{"p99=50ms", measure.LatencyP95, "", ""},
		{"", measure.LatencyP95, "", ""},
	} {
		c := limited(tt.limit, tt.measure)
		line := ""
		if m := c.marks[0]; m.Kind == Target {
			line = m.String()
		}
		if got := strings.Join(c.caption, " "); got != tt.caption || line != tt.line {
			t.Errorf("%s of %s: caption %q, line %q", tt.limit, tt.measure, got, line)
		}
	}
}

// A caption has at most four lines, and says that there is more.
func TestCaptionLines(t *testing.T) {
	sentence := "Runs per point: 6 of eight."
	for n, want := range map[int]bool{1: false, 4: false, 100: true} {
		lines := captionLines(slices.Repeat([]string{sentence}, n), 4*vg.Inch)
		for _, line := range lines {
			if w := textStyle(captionSize).Width(line); w > 4*vg.Inch {
				t.Errorf("%d sentences: %q is %v wide", n, line, w)
			}
		}
		if more := strings.HasSuffix(lines[len(lines)-1], "… (plot prints the rest)"); more != want || len(lines) > 4 {
			t.Errorf("%d sentences: %q", n, lines)
		}
	}
}

// Up to four series with different sentences are written out; of five, three.
func TestPerSeries(t *testing.T) {
	curves := make([]scaling.Curve, 5)
	for i := range curves {
		curves[i].Series = fmt.Sprint("s", i)
	}
	text := func(c scaling.Curve) string { return c.Series[1:] }
	if got := perSeries("at ", curves[:4], text); got != "At s0: 0; s1: 1; s2: 2; s3: 3." {
		t.Error(got)
	}
	if got := perSeries("at ", curves, text); got != "At s0: 0; s1: 1; s2: 2; 2 more series." {
		t.Error(got)
	}
}
