package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

func plainRuns(series string, workers int, throughputs ...float64) []scaling.Observation {
	var list []scaling.Observation
	for i := range throughputs {
		list = append(list, scaling.Observation{
			Run: fmt.Sprintf("%s/w%d-r%d", series, workers, i), Framework: series, Workers: workers,
			Parameters: map[string]any{"workload.scaling": "weak"}, Values: map[string]float64{"throughput": throughputs[i]},
		})
	}
	return list
}

// Worked out by hand: medians 100 and 150 of runs 90, 110 and 150.
func TestMarks(t *testing.T) {
	obs := append(plainRuns("native", 1, 90, 110), plainRuns("native", 2, 150)...)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{
		"throughput": {
			`ideal  (1, 100) (2, 200)`,
			`dot    "native" (1, 90)`, `dot    "native" (1, 110)`, `dot    "native" (2, 150)`,
			`line   "native" (1, 100) (2, 150)`,
			`median "native" (1, 100)`, `median "native" (2, 150)`,
			`label  "native" (2, 150) text "native"`,
			`label  (2, 200) text "ideal"`,
		},
		"speedup": {
			`ideal  (1, 1) (2, 2)`,
			`dot    "native" (1, 0.9)`, `dot    "native" (1, 1.1)`, `dot    "native" (2, 1.5)`,
			`line   "native" (1, 1) (2, 1.5)`,
			`median "native" (1, 1)`, `median "native" (2, 1.5)`,
			`label  "native" (2, 1.5) text "native"`,
			`label  (2, 2) text "ideal"`,
		},
		"efficiency": {
			`ideal  (1, 1) (2, 1)`,
			`dot    "native" (1, 0.9)`, `dot    "native" (1, 1.1)`, `dot    "native" (2, 0.75)`,
			`line   "native" (1, 1) (2, 0.75)`,
			`median "native" (1, 1)`, `median "native" (2, 0.75)`,
			`label  "native" (2, 0.75) text "native"`,
			`label  (2, 1) text "ideal"`,
		},
	} {
		f, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range f.Marks() {
			got = append(got, m.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	f, _ := Draw("throughput", Data{Curves: curves, Observations: obs}, Options{})
	want := "Weak scaling (batch per worker fixed). Base: 1 worker, 100 samples/s. Dots: runs; markers: medians. " +
		"Runs per point: 2 at 1 worker, 1 at 2 workers. Dashed: ideal. " +
		"No bar at 1 worker: too few runs for an interval (2 of 6 needed). No bar at 2 workers: too few runs for an interval (1 of 6 needed)."
	if diff := cmp.Diff(want, f.Caption()); diff != "" {
		t.Errorf("caption (-want +got):\n%s", diff)
	}
}

// longNames has three series with names that do not fit next to a plot.
func longNames() made {
	return made{workers: []int{1, 2}, batches: []int{1, 2, 3}, runs: 1, targets: []float64{0.5}, noise: 0.02, rate: 100}
}

// Labels overlap neither each other nor the plot's edge, and nothing is cut off.
func TestLabelsApart(t *testing.T) {
	all := map[string]made{"long": longNames()}
	maps.Copy(all, studies)
	hair := vg.Point{X: 0.01, Y: 0.01}
	for name, s := range all {
		for _, kind := range curveKinds() {
			obs := s.observations()
			if name == "long" {
				for i := range obs {
					obs[i].Framework = strings.Repeat("a-framework-with-a-long-name ", 3) + strings.Repeat("x", 200)
				}
			}
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{Title: strings.Repeat("A long title ", 12)})
			if err != nil {
				t.Fatal(err)
			}
			l := f.panels[0].layout
			for i, a := range l.labels {
				if a.box.Min.X < 0 || a.box.Max.X > l.size.X || a.box.Min.Y < 0 || a.box.Max.Y > l.size.Y {
					t.Errorf("%s %s: label %q is cut off: %v in %v", name, kind, a.lines, a.box, l.size)
				}
				for _, b := range l.labels[:i] {
					// Neighbours in a stack touch, up to rounding.
					if tighter := b.box; overlaps(a.box, vg.Rectangle{Min: tighter.Min.Add(hair), Max: tighter.Max.Sub(hair)}) {
						t.Errorf("%s %s: labels %q and %q overlap", name, kind, a.lines, b.lines)
					}
				}
			}
			for i, text := range []struct {
				lines []string
				size  float64
			}{{l.title, titleSize}, {l.caption, captionSize}} {
				for _, s := range text.lines {
					if w := textStyle(text.size).Width(s); w > l.size.X-2*margin {
						t.Errorf("%s %s: text %d is %v wide: %q", name, kind, i, w, s)
					}
				}
			}
			right := math.Inf(-1)
			style := textStyle(tickSize)
			for _, tick := range l.xTicks {
				if tick.label == "" {
					continue
				}
				x, half := l.at(&f.panels[0].chart, XY{tick.value, 1}).X.Points(), style.Width(tick.label).Points()/2
				if x-half < right {
					t.Errorf("%s %s: tick %s runs into the one before", name, kind, tick.label)
				}
				right = x + half
			}
		}
	}
}

// Text from users stays data in every format.
func TestHostileText(t *testing.T) {
	hostile := "</text><script>alert(1)</script> & \"'; style=\"font-family:Liberation Sans;\" \x00\x1b[31m\xff\n%s $x ]]> 日本 \u202e\u2066\u200b"
	obs := plainRuns(hostile, 1, 100)
	for i := range obs {
		obs[i].Parameters = map[string]any{"workload.scaling": hostile}
	}
	obs = append(obs, plainRuns(hostile, 1, 120)...)
	obs[1].Run = "another"
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw("throughput", Data{Curves: curves, Observations: obs}, Options{Title: hostile, Width: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range Formats() {
		var b bytes.Buffer
		if err := f.Write(&b, format); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if format != "svg" {
			continue
		}
		text := svgText(t, b.Bytes())
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }) {
			t.Errorf("text in the SVG steers its viewer: %q", text)
		}
		if !strings.Contains(text, "</text><script>alert(1)</script>") || !strings.Contains(text, `style="font-family:Liberation Sans;"`) {
			t.Errorf("the title is not in the SVG as it was given: %q", text)
		}
	}
}

// svgText returns the text in an SVG, which must be well-formed and contain only the
// elements of a drawing.
func svgText(t *testing.T, svg []byte) string {
	t.Helper()
	var text strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !slices.Contains([]string{"svg", "title", "desc", "g", "path", "circle", "text"}, token.Name.Local) {
				t.Errorf("element <%s> in the SVG", token.Name.Local)
			}
		case xml.CharData:
			text.Write(token)
			text.WriteByte(' ')
		}
	}
}

// Every possible measurement can be drawn: no panic, no NaN.
func TestExtremes(t *testing.T) {
	for name, obs := range map[string][]scaling.Observation{
		"far apart": append(plainRuns("a", 1, 1e-100), plainRuns("a", 1<<40, 1e100)...),
		"tiny":      append(plainRuns("a", 1, math.SmallestNonzeroFloat64), plainRuns("a", 2, 1e-320)...),
		"huge":      append(plainRuns("a", 1, math.MaxFloat64), plainRuns("a", 2, math.MaxFloat64)...),
		"equal":     append(plainRuns("a", 1, 5), plainRuns("a", 2, 5)...),
		"a decline": append(plainRuns("a", 1, 5), plainRuns("a", 2, 0.001)...),
		"neighbours": slices.Concat(plainRuns("a", 60, 1), plainRuns("a", 61, 1), plainRuns("a", 62, 1),
			plainRuns("a", 63, 1), plainRuns("a", 64, 1), plainRuns("a", 1000000, 2)),
		"at once": {{Run: "r", Framework: "a", Workers: 1, Values: map[string]float64{"throughput": 0, "to_0.5": 0},
			Evaluations: []scaling.Evaluation{{Seconds: 0, Accuracy: 0}, {Seconds: math.NaN(), Accuracy: 2}}}},
	} {
		curves, err := scaling.Analyse(obs, scaling.Options{})
		var noBase *scaling.NoBaseError
		if err != nil && !errors.As(err, &noBase) {
			t.Fatal(name, err)
		}
		for _, kind := range curveKinds() {
			f, err := Draw(kind, Data{Curves: curves, Observations: obs}, Options{})
			if err != nil {
				continue // with a reason, which another test checks
			}
			var b bytes.Buffer
			if err := f.Write(&b, "svg"); err != nil {
				t.Errorf("%s %s: %v", name, kind, err)
			}
			if svg := b.String(); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%s %s: a coordinate is not a number", name, kind)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	obs := append(plainRuns("native", 1, 100), plainRuns("native", 2, 190)...)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	baseless, err := scaling.Analyse(obs, scaling.Options{Base: &scaling.Value{Number: 4}})
	var noBase *scaling.NoBaseError
	if !errors.As(err, &noBase) {
		t.Fatal(err)
	}
	unreached := slices.Clone(obs)
	unreached[0].Values = map[string]float64{"throughput": 100, "to_0.9": math.Inf(1)}
	missed, err := scaling.Analyse(unreached, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind   string
		curves []scaling.Curve
		o      Options
		want   string
	}{
		{"pie", curves, Options{}, `unknown figure "pie"; choose one of ` + strings.Join(Names(), ", ") + ", or a measure"},
		{"speedup", nil, Options{}, "nothing to draw"},
		{"speedup", baseless, Options{}, `no base point for series "native"`},
		{"efficiency", baseless, Options{}, `no base point for series "native"`},
		{"throughput", baseless, Options{}, `no base point for series "native"`},
		{"accuracy", curves, Options{}, "no run has an evaluation"},
		{"tta", curves, Options{}, "no run has a target"},
		{"tta", missed, Options{}, "no run reached any of its targets"},
		{"speedup", slices.Repeat(curves, 800), Options{}, " inches high; draw fewer series"},
		{"speedup", curves, Options{Width: -1}, "a size of -1 inches"},
		{"speedup", curves, Options{Height: math.NaN()}, "a size of NaN inches"},
		{"speedup", curves, Options{Width: 2}, "2 inches wide leaves no room"},
		{"speedup", curves, Options{Height: 1}, "1 inches high leaves no room"},
	} {
		if _, err := Draw(tt.kind, Data{Curves: tt.curves, Observations: obs}, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: got %v, want %q", tt.kind, tt.o, err, tt.want)
		}
	}
}

func put(path string, content []byte) error { return sharedfs.Write(path, content, sharedfs.ModeOpen) }

func TestSave(t *testing.T) {
	dir := t.TempDir()
	f := studies["small"].draw(t, "speedup", Options{})
	for name, magic := range map[string]string{"a.png": "\x89PNG\r\n", "a.SVG": "<?xml", "a.pdf": "%PDF-"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.Save(path, put); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(data, []byte(magic)) {
			t.Errorf("%s begins %.10q, %v", name, data, err)
		}
	}
	for _, name := range []string{"a.jpg", "a", "png", "no/such/folder/a.png"} {
		if err := f.Save(filepath.Join(dir, name), put); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.Save("a.gif", put); err == nil || !strings.Contains(err.Error(), ".png, .svg, .pdf") {
		t.Errorf("an unknown extension: %v", err)
	}
	// No partial file remains, even if the last step fails.
	if err := os.Mkdir(filepath.Join(dir, "folder.png"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(filepath.Join(dir, "folder.png"), put); err == nil {
		t.Error("a folder was overwritten")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".figure-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Too many kinds of line become one kind per series.
func TestAccuracyLooks(t *testing.T) {
	for name, want := range map[string]int{"small": 3 + 1, "two": 8 + 2, "twelve": 12 + 2} { // lines, and targets of each panel
		labels := 0
		for _, m := range studies[name].draw(t, "accuracy", Options{}).Marks() {
			if m.Kind == Label {
				labels++
			}
		}
		if labels != want {
			t.Errorf("%s: %d labels, want %d", name, labels, want)
		}
	}
}

// Spread is never written as ±, and bars are only drawn for intervals.
func TestNoInventedIntervals(t *testing.T) {
	for name, s := range studies {
		for _, kind := range curveKinds() {
			f := s.draw(t, kind, Options{})
			bars := 0
			for _, m := range f.Marks() {
				if m.Kind == Bar {
					bars++
				}
			}
			if s.runs < 4 && bars > 0 {
				t.Errorf("%s %s: %d bars of %d runs", name, kind, bars, s.runs)
			}
			if strings.Contains(f.Caption(), "±") {
				t.Errorf("%s %s: %s", name, kind, f.Caption())
			}
			if kind != "accuracy" && kind != "samples" && kind != "breakdown" && name != "one" && bars == 0 && !strings.Contains(f.Caption(), "too few runs for an interval") {
				t.Errorf("%s %s: neither bars nor a reason: %s", name, kind, f.Caption())
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		got, want []float64
	}{
		{binaryTicks(0.8, 9), []float64{1, 2, 4, 8}},
		{binaryTicks(0.8, 1100), []float64{1, 4, 16, 64, 256, 1024}},
		// 1, 2 and 5 would give three ticks, so the next finer series is used.
		{decimalTicks(900, 9000), []float64{1000, 1500, 2000, 3000, 4000, 5000, 7000}},
		{decimalTicks(700, 90000), []float64{1000, 3000, 10000, 30000}},
		{linearTicks(0, 1.1), []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
	} {
		if diff := cmp.Diff(tt.want, tt.got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// No tick is between one worker and two.
func TestTicksOfCounts(t *testing.T) {
	for _, tt := range []struct {
		least, most float64
		want        []string
	}{
		{1, 2, []string{"1", "2"}},
		{10, 12, []string{"10", "11", "12"}},
		{0, 15, []string{"0", "5", "10", "15"}},
	} {
		a := newAxis("workers")
		a.whole = true
		a.include(tt.least)
		a.include(tt.most)
		if err := a.pad(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tick := range a.ticks() {
			got = append(got, tick.label)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%g to %g (-want +got):\n%s", tt.least, tt.most, diff)
		}
	}
}

// All numbers of an axis have the same format.
func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   []string
	}{
		{[]float64{0, 5e6, 1e7, 1.5e7}, []string{"0", "5M", "10M", "15M"}},
		{[]float64{1e5, 1e6, 1e7, 1e9}, []string{"100k", "1M", "10M", "1G"}},
		{[]float64{0, 2e6, 4e6}, []string{"0", "2,000,000", "4,000,000"}},
		{[]float64{-0.001, 0, 5e-4, 0.001, 3 * 5e-4}, []string{"-0.001", "0", "0.0005", "0.001", "0.0015"}},
		{[]float64{1e-5, 1e-3, 10}, []string{"0.00001", "0.001", "10"}},
		{[]float64{1e-5, 1e-4}, []string{"1e-5", "1e-4"}},
		{[]float64{1e14, 1e15}, []string{"1e14", "1e15"}},
		{[]float64{0.1, 1, 1000}, []string{"0.1", "1", "1,000"}},
		{nil, nil},
	} {
		var got []string
		for _, v := range tt.values {
			got = append(got, labels(tt.values)(v))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func BenchmarkFigure(b *testing.B) {
	for _, format := range Formats() {
		b.Run(format, func(b *testing.B) {
			s := studies["twelve"]
			obs := s.observations()
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				f, err := Draw("throughput", Data{Curves: curves, Observations: obs}, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Write(io.Discard, format); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(300e6, "target-ns/op")
		})
	}
}
