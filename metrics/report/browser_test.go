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
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// The page in a real Chromium. With the build tag a missing browser fails.

var widths = []int64{360, 1440}

// tab is a page in the browser and everything forbidden that it did.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // requests for anything but the page and its data
	console  []string // messages, exceptions and dialogs
}

// browser starts a Chromium for the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"))
	if os.Getuid() == 0 { // Chromium refuses its sandbox to root, as in a container
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start (Debian's package chromium): %v", err)
	}
	return ctx
}

// open writes the page to a file and opens it at a width.
func open(t *testing.T, browser context.Context, width int64, text string) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	address := (&url.URL{Scheme: "file", Path: file}).String()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(width, 800))
	note := func(list *[]string, text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*list = append(*list, text)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if a := e.Request.URL; a != address && !strings.HasPrefix(a, "data:") {
				note(&b.requests, a)
			}
		case *runtime.EventConsoleAPICalled:
			note(&b.console, fmt.Sprintf("console.%s", e.Type))
		case *runtime.EventExceptionThrown:
			note(&b.console, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			note(&b.console, e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			note(&b.console, "dialog: "+e.Message)
			go func() { // a dialog blocks the page, but must not block this function
				_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
			}()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(address))
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// quiet fails the test if the page requested or reported anything.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		b.t.Errorf("the page asks for %s", r)
	}
	for _, c := range b.console {
		b.t.Errorf("the console says %s", c)
	}
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
	chromium := browser(t)
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
		figures := eval[[]seen](b, `[...document.querySelectorAll("figure")].map(f => {
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
		if wide := eval[float64](b, `document.documentElement.scrollWidth`); wide > float64(width) {
			t.Errorf("at %d px the page is %.0f px wide", width, wide)
		}
		b.quiet()
	}
}

// The keyboard reaches everything, in page order.
func TestKeyboard(t *testing.T) {
	chromium := browser(t)
	b := open(t, chromium, 360, html(t, full(t, "native")))
	press := func(key string) { b.do(chromedp.KeyEvent(key)) }
	const where = `(() => { const e = document.activeElement; return e.tagName + " " + (e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent).slice(0, 12); })()`
	press(kb.Tab)
	if at := eval[string](b, where); at != "A #answer" {
		t.Fatalf("the first stop is %q, want the link to the answer", at)
	}
	if left := eval[float64](b, `document.activeElement.getBoundingClientRect().left`); left < 0 {
		t.Error("the link to the answer is not seen when it has the focus")
	}
	press(kb.Enter)
	if id := eval[string](b, `document.activeElement.id`); id != "answer" {
		t.Errorf("the link to the answer leads to %q", id)
	}
	want := eval[[]string](b, `[...document.querySelectorAll("main a[href], main summary, main [tabindex='0']")].filter(e => e.checkVisibility())
		.map(e => e.tagName + " " + (e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent).slice(0, 12))`)
	if len(want) < 4 {
		t.Fatalf("only %d stops: %q", len(want), want)
	}
	var stops []string
	for range want {
		press(kb.Tab)
		at := eval[string](b, where)
		stops = append(stops, at)
		if outline := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("%s does not show that it has the focus", at)
		}
		switch {
		case strings.HasPrefix(at, "SUMMARY"):
			press(kb.Enter)
			if !eval[bool](b, `document.activeElement.parentElement.open`) {
				t.Errorf("%s does not open", at)
			}
			press(kb.Enter) // close it again, so that the tab stops stay the same
		case at == "DIV Points":
			// A browser that is late with its frames may drop a key.
			deadline := time.Now().Add(time.Minute)
			for press(kb.ArrowRight); eval[float64](b, `document.activeElement.scrollLeft`) == 0; press(kb.ArrowRight) {
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
	b.quiet()
}

// Hostile text stays text.
func TestHostileTextIsInert(t *testing.T) {
	chromium := browser(t)
	for _, width := range widths {
		b := open(t, chromium, width, html(t, full(t, hostile)))
		if n := eval[int](b, `document.querySelectorAll("script, img, iframe, object, embed, form, body style").length`); n != 0 {
			t.Errorf("%d px: %d elements that the page does not have", width, n)
		}
		if handlers := eval[int](b, `[...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name.startsWith("on"))).length`); handlers != 0 {
			t.Errorf("%d px: %d elements with handlers", width, handlers)
		}
		if title := eval[string](b, `document.title`); title != hostile {
			t.Errorf("%d px: the title is %q", width, title)
		}
		if heading := eval[string](b, `document.querySelector("h1").textContent`); heading != hostile {
			t.Errorf("%d px: the heading is %q", width, heading)
		}
		b.quiet()
	}
}

// The checks above can fail: they catch a page that breaks the rules.
func TestBrowserChecksCanFail(t *testing.T) {
	chromium := browser(t)
	b := open(t, chromium, 360, `<!DOCTYPE html><title>x</title><img src="http://127.0.0.1:9/x.png"><script>console.error("no"); alert("no")</script>`)
	deadline := time.Now().Add(time.Minute)
	for {
		b.mu.Lock()
		requests, console := slices.Clone(b.requests), slices.Clone(b.console)
		b.mu.Unlock()
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
	chromium := browser(t)
	b := open(t, chromium, 1440, html(t, full(t, "native")))
	if eval[bool](b, `document.querySelector("#long table").checkVisibility()`) {
		t.Error("the folded table is seen")
	}
	media := func(p emulation.SetEmulatedMediaParams) {
		t.Helper()
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, p); err != nil {
			t.Fatal(err)
		}
	}
	media(emulation.SetEmulatedMediaParams{Media: "print"})
	if !eval[bool](b, `document.querySelector("#long table").checkVisibility()`) {
		t.Error("the folded table is not on paper")
	}
	if n := eval[int](b, `[...document.querySelectorAll("nav, .skip, .data")].filter(e => e.getClientRects().length > 0).length`); n != 0 {
		t.Errorf("%d parts for the screen are on paper", n)
	}
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	if err != nil || !strings.HasPrefix(string(pdf), "%PDF") {
		t.Errorf("printing: %v", err)
	}
	for _, scheme := range []string{"light", "dark"} {
		media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		// Contrast as defined by WCAG 2, which requires 4.5 for text.
		for _, selector := range []string{".answer p", "figcaption", "nav a", "td", "th", "footer p", "summary"} {
			contrast := eval[float64](b, fmt.Sprintf(`(() => {
				const light = c => { const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
				const e = document.querySelector(%q);
				let behind = e;
				while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
				const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(behind).backgroundColor)].sort((x, y) => y - x);
				return (a + 0.05) / (b + 0.05);
			})()`, selector))
			if contrast < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f", scheme, selector, contrast)
			}
		}
	}
	if behind := eval[string](b, `getComputedStyle(document.body).backgroundColor`); behind == "rgb(255, 255, 255)" {
		t.Error("the dark page is white")
	}
	b.quiet()
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
