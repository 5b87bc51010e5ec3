//go:build browser

package report

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/report/browsertest"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// The page in a real Chromium. With the build tag a missing browser fails.

var widths = []int64{360, 1440}

// open writes the page to a file and opens it at a width.
func open(t *testing.T, browser context.Context, width int64, text string) *browsertest.Tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: file}).String()
	return browsertest.Open(t, browser, width, address, address)
}

// full returns a report with every kind of figure.
func full(t *testing.T, text string) *Report {
	t.Helper()
	r := report(t, text)
	r.Figures = nil
	var obs []scaling.Observation
	for _, framework := range []string{text, text + " other"} {
		for _, n := range []int{1, 2, 4, 8} {
			for repeat := range 6 {
				x := 100 * float64(n) * (1 - 0.03*float64(n) + 0.01*float64(repeat))
				o := scaling.Observation{Run: fmt.Sprint(framework, n, repeat), Framework: framework, Workers: n,
					Parameters: map[string]any{"workload.scaling": "weak"},
					Values:     map[string]float64{"throughput": x, "compute": 0.9 - 0.04*float64(n), "communication": 0.04 * float64(n), "data_wait": 0.02}}
				for e := range 6 {
					o.Evaluations = append(o.Evaluations, scaling.Evaluation{Seconds: 5000 * float64(e+1) / x, Epoch: e + 1, Samples: int64(5000 * (e + 1)), Accuracy: 0.15 * float64(e+1)})
				}
				o.Values["to_0.75"] = o.Evaluations[4].Seconds
				obs = append(obs, o)
			}
		}
	}
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(id string, draw func(figure.Options) (*figure.Drawing, error)) {
		f, err := drawFigure(id, draw)
		if err != nil {
			t.Fatal(err)
		}
		r.Figures = append(r.Figures, f)
	}
	data := figure.Data{Curves: curves, Observations: obs}
	for _, kind := range curveKinds() {
		add(kind, func(o figure.Options) (*figure.Drawing, error) { return figure.Draw(kind, data, o) })
	}
	add("panels", func(o figure.Options) (*figure.Drawing, error) {
		o.By = "framework"
		return figure.Draw("speedup", data, o)
	})
	add("ranks", func(o figure.Options) (*figure.Drawing, error) {
		var ranks []scaling.StepTimes
		for rank := range 16 {
			ranks = append(ranks, scaling.NewStepTimes(rank, []float64{0.01, 0.011, 0.012, 0.013 + 0.001*float64(rank%3)}))
		}
		return figure.Draw("ranks", figure.Data{Ranks: []figure.RankSteps{{Run: text, Series: text, Workers: 16, Ranks: ranks}}}, o)
	})
	add("cost", func(o figure.Options) (*figure.Drawing, error) {
		return figure.Draw("cost", figure.Data{Bill: &cost.Comparison{Currency: "EUR", Rows: []cost.Row{{Series: text, Workers: 1, Time: &scaling.Estimate{Value: 3600, Runs: 6}, Cost: &scaling.Estimate{Value: 1}, Front: true},
			{Series: text, Workers: 4, Time: &scaling.Estimate{Value: 1200, Runs: 6}, Cost: &scaling.Estimate{Value: 2}, Front: true}}}}, o)
	})
	one, half := &scaling.Estimate{Value: 1}, &scaling.Estimate{Value: 0.5, Interval: &scaling.Interval{Low: 0.4, High: 0.6, Level: 0.95}}
	add("normalised", func(o figure.Options) (*figure.Drawing, error) {
		return figure.Draw("normalised", figure.Data{Bill: &cost.Comparison{Options: cost.Options{Baseline: []scaling.Condition{{Key: "a", Value: text}}},
			Rows: []cost.Row{{Series: text, Workers: 1, TimeNormalised: one, CostNormalised: one}, {Series: text + "2", Workers: 1, TimeNormalised: half}}}}, o)
	})
	long := Table{ID: "long", Title: "Every run", Folded: true, Text: table.Text{Columns: make([]table.Title, 12)}}
	for i := range long.Columns {
		long.Columns[i] = table.Title{Title: fmt.Sprintf("column %d", i), Right: i > 0}
	}
	for range 60 {
		long.Rows = append(long.Rows, slices.Repeat([]string{"1234.5 [1200, 1300]"}, len(long.Columns)))
	}
	wide := long
	wide.ID, wide.Title, wide.Folded, wide.Rows = "wide", "Points", false, long.Rows[:3]
	r.Tables = []Table{wide, long}
	return r
}

// Every figure is visible at every width, in exactly one form, with readable text, and the
// page never scrolls sideways.
func TestFiguresAreVisible(t *testing.T) {
	chromium := browsertest.Start(t)
	r := full(t, "native batch=64")
	text := html(t, r)
	for _, width := range widths {
		b := open(t, chromium, width, text)
		type seen struct {
			ID                  string
			Shown               int
			Left, Right, Height float64
			Smallest            float64 // letters of the figure, in CSS pixels
			Outside             int     // texts outside the drawing
		}
		figures := browsertest.Eval[[]seen](b, `[...document.querySelectorAll("figure")].map(f => {
			const shown = [...f.querySelectorAll("svg")].filter(s => s.getClientRects().length > 0);
			const box = shown[0].getBoundingClientRect();
			const texts = [...shown[0].querySelectorAll("text")];
			const scale = box.width / shown[0].viewBox.baseVal.width;
			return {ID: f.id, Shown: shown.length, Left: box.left, Right: box.right, Height: box.height,
				Smallest: Math.min(...texts.map(t => scale * parseFloat(getComputedStyle(t).fontSize))),
				Outside: texts.filter(t => { const r = t.getBoundingClientRect(); return r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1; }).length};
		})`)
		if len(figures) != len(r.Figures) || len(figures) < 11 {
			t.Fatalf("%d px: %d figures, want %d", width, len(figures), len(r.Figures))
		}
		for _, f := range figures {
			if f.Shown != 1 {
				t.Errorf("%d px: %s is shown in %d forms, want one", width, f.ID, f.Shown)
			}
			if f.Left < 0 || f.Right > float64(width) || f.Right-f.Left < 300 || f.Height < 80 {
				t.Errorf("%d px: %s lies from %.0f to %.0f and is %.0f high", width, f.ID, f.Left, f.Right, f.Height)
			}
			if f.Smallest < 9 {
				t.Errorf("%d px: letters of %s are %.1f px high", width, f.ID, f.Smallest)
			}
			if f.Outside > 0 {
				t.Errorf("%d px: %d texts of %s leave the drawing", width, f.Outside, f.ID)
			}
		}
		if wide := browsertest.Eval[float64](b, `document.documentElement.scrollWidth`); wide > float64(width) {
			t.Errorf("at %d px the page is %.0f px wide", width, wide)
		}
		b.Quiet()
	}
}

// The keyboard reaches everything, in page order.
func TestKeyboard(t *testing.T) {
	chromium := browsertest.Start(t)
	b := open(t, chromium, 360, html(t, full(t, "native")))
	const where = `(() => { const e = document.activeElement; return e.tagName + " " + (e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent).slice(0, 12); })()`
	b.Press(kb.Tab)
	if at := browsertest.Eval[string](b, where); at != "A #answer" {
		t.Fatalf("the first stop is %q, want the link to the answer", at)
	}
	if left := browsertest.Eval[float64](b, `document.activeElement.getBoundingClientRect().left`); left < 0 {
		t.Error("the link to the answer is not seen when it has the focus")
	}
	b.Press(kb.Enter)
	if id := browsertest.Eval[string](b, `document.activeElement.id`); id != "answer" {
		t.Errorf("the link to the answer leads to %q", id)
	}
	want := browsertest.Eval[[]string](b, `[...document.querySelectorAll("main a[href], main summary, main [tabindex='0']")].filter(e => e.checkVisibility())
		.map(e => e.tagName + " " + (e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent).slice(0, 12))`)
	if len(want) < 4 {
		t.Fatalf("only %d stops: %q", len(want), want)
	}
	var stops []string
	for range want {
		b.Press(kb.Tab)
		at := browsertest.Eval[string](b, where)
		stops = append(stops, at)
		if outline := browsertest.Eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("%s does not show that it has the focus", at)
		}
		switch {
		case strings.HasPrefix(at, "SUMMARY"):
			b.Press(kb.Enter)
			if !browsertest.Eval[bool](b, `document.activeElement.parentElement.open`) {
				t.Errorf("%s does not open", at)
			}
			b.Press(kb.Enter) // close it again, so that the tab stops stay the same
		case at == "DIV Points":
			// A browser that is late with its frames may drop a key.
			deadline := time.Now().Add(time.Minute)
			for b.Press(kb.ArrowRight); browsertest.Eval[float64](b, `document.activeElement.scrollLeft`) == 0; b.Press(kb.ArrowRight) {
				if time.Now().After(deadline) {
					t.Errorf("%s does not scroll", at)
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	if !slices.Equal(want, stops) {
		t.Errorf("stops\n%q, want\n%q", stops, want)
	}
	b.Quiet()
}

// Hostile text stays text.
func TestHostileTextIsInert(t *testing.T) {
	chromium := browsertest.Start(t)
	for _, width := range widths {
		b := open(t, chromium, width, html(t, full(t, hostile)))
		if n := browsertest.Eval[int](b, `document.querySelectorAll("script, img, iframe, object, embed, form, body style").length`); n != 0 {
			t.Errorf("%d px: %d elements that the page does not have", width, n)
		}
		if handlers := browsertest.Eval[int](b, `[...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length`); handlers != 0 {
			t.Errorf("%d px: %d elements with handlers", width, handlers)
		}
		if title := browsertest.Eval[string](b, `document.title`); title != hostile {
			t.Errorf("%d px: the title is %q", width, title)
		}
		if heading := browsertest.Eval[string](b, `document.querySelector("h1").textContent`); heading != hostile {
			t.Errorf("%d px: the heading is %q", width, heading)
		}
		b.Quiet()
	}
}

// The checks above can fail: they catch a page that breaks the rules.
func TestBrowserChecksCanFail(t *testing.T) {
	chromium := browsertest.Start(t)
	b := open(t, chromium, 360, `<!DOCTYPE html><title>x</title><img src="http://127.0.0.1:9/x.png"><script>console.error("no"); alert("no")</script>`)
	deadline := time.Now().Add(time.Minute)
	for {
		requests, console := b.Complaints()
		if slices.Contains(requests, "http://127.0.0.1:9/x.png") && slices.Contains(console, "console.error") && slices.Contains(console, "dialog: no") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("seen: requests %q, console %q", requests, console)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// In print, folded tables are open and nothing is cut off; in dark mode, text is readable.
func TestPrintAndDark(t *testing.T) {
	chromium := browsertest.Start(t)
	b := open(t, chromium, 1440, html(t, full(t, "native")))
	if browsertest.Eval[bool](b, `document.querySelector("#long table").checkVisibility()`) {
		t.Error("the folded table is seen")
	}
	b.Emulate(emulation.SetEmulatedMediaParams{Media: "print"})
	if !browsertest.Eval[bool](b, `document.querySelector("#long table").checkVisibility()`) {
		t.Error("the folded table is not on paper")
	}
	if n := browsertest.Eval[int](b, `[...document.querySelectorAll("nav, .skip, .data")].filter(e => e.getClientRects().length > 0).length`); n != 0 {
		t.Errorf("%d parts for the screen are on paper", n)
	}
	pdf, err := chromedp.Run(b.Context, chromedp.PrintToPDF())
	if err != nil || !strings.HasPrefix(string(pdf), "%PDF") {
		t.Errorf("printing: %v", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		b.Emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		// Contrast as defined by WCAG 2, which requires 4.5 for text.
		for _, selector := range []string{".answer p", "figcaption", "nav a", "td", "th", "footer p", "summary"} {
			contrast := b.Contrast(selector)
			if contrast < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f", scheme, selector, contrast)
			}
		}
	}
	if behind := browsertest.Eval[string](b, `getComputedStyle(document.body).backgroundColor`); behind == "rgb(255, 255, 255)" {
		t.Error("the dark page is white")
	}
	b.Quiet()
}

// curveKinds lists the figures that need only curves.
func curveKinds() []string {
	var names []string
	for _, k := range figure.Presets() {
		if k.NeedsOnlyCurves() {
			names = append(names, k.Name)
		}
	}
	return names
}
