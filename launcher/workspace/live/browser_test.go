//go:build browser

package live

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/report/browsertest"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// The page in a real Chromium. With the build tag a missing browser fails.

// visit opens the page of the site's study at a width.
func visit(t *testing.T, s *Site, width int64, features ...*emulation.MediaFeature) *browsertest.Tab {
	t.Helper()
	server := httptest.NewServer(s.Handler(token, nil))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	own := server.URL + "/" + token + "/"
	return browsertest.Open(t, browsertest.Start(t), width, own+"study/demo/index.html", own, features...)
}

// demo returns a site whose study has text everywhere, and a real figure.
func demo(t *testing.T, text string) (*Site, *board) {
	t.Helper()
	st, r := full(text)
	var obs []scaling.Observation
	for _, n := range []int{1, 2, 4} {
		for repeat := range 6 {
			obs = append(obs, scaling.Observation{Run: fmt.Sprint(n, repeat), Framework: text, Workers: n, Values: map[string]float64{"throughput": 100*float64(n) + float64(repeat)}})
		}
	}
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := figure.Draw("throughput", figure.Data{Curves: curves, Observations: obs}, figure.Options{NoCaption: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Figures[0].Wide, err = inline(f); err != nil {
		t.Fatal(err)
	}
	return siteOf(t, st, r)
}

// Nothing is wider than the screen; text in figures is drawn; the policy forbids nothing that the page
// has.
func TestWidths(t *testing.T) {
	for _, width := range []int64{360, 1440} {
		s, _ := demo(t, "native")
		b := visit(t, s, width)
		b.Until(`document.getElementById("live").textContent.startsWith("Live")`)
		if wide := browsertest.Eval[float64](b, `document.documentElement.scrollWidth`); wide > float64(width) {
			t.Errorf("at %d px the page is %.0f px wide", width, wide)
		}
		if size := browsertest.Eval[string](b, `getComputedStyle(document.querySelector("figure svg text")).fontSize`); size == "16px" {
			t.Error("the figure's text has the page's size: its attributes have no effect")
		}
		if edge := browsertest.Eval[string](b, `getComputedStyle(document.querySelector(".states td.done")).borderLeftColor`); edge != "rgb(0, 158, 115)" {
			t.Errorf("a done run has the edge %s", edge)
		}
		if n := browsertest.Eval[int](b, `document.querySelectorAll("figure svg circle title").length`); n != 21 { // 18 runs, 3 medians
			t.Errorf("%d values under the pointer, want 21", n)
		}
		b.Quiet()
	}
}

// A change appears without reloading; focus and scroll position stay. Nothing moves if the user wants
// less motion.
func TestChanges(t *testing.T) {
	for motion, animation := range map[string]string{"reduce": "none", "no-preference": "changed"} {
		s, board := demo(t, "native")
		b := visit(t, s, 360, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: motion})
		b.Until(`document.getElementById("live").textContent.startsWith("Live")`)
		browsertest.Eval[bool](b, `(() => { window.kept = true; document.querySelector(".states a").focus(); document.querySelector(".states").scrollLeft = 40; return true; })()`)
		board.mu.Lock()
		board.states.Progress = "5 runs: 5 done"
		board.states.Grid.Rows[0].Cells[1].Status = metrics.Done
		board.bump()
		board.mu.Unlock()
		b.Until(`document.querySelector(".progress").textContent === "5 runs: 5 done"`)
		if n := browsertest.Eval[int](b, `document.querySelectorAll(".states td.done").length`); n != 2 {
			t.Errorf("%d runs are done, want 2", n)
		}
		if !browsertest.Eval[bool](b, `window.kept && document.activeElement === document.querySelector(".states a") && document.querySelector(".states").scrollLeft === 40`) {
			t.Error("the page was loaded again, or lost its focus or scroll position")
		}
		if got := browsertest.Eval[string](b, `getComputedStyle(document.getElementById("progress")).animationName`); got != animation {
			t.Errorf("%s: animation %q, want %q", motion, got, animation)
		}
		b.Quiet()
	}
}

// A filter leaves the rows that have all its words, also after a change.
func TestFilter(t *testing.T) {
	s, board := demo(t, "native")
	board.states.Grid.Rows = append(board.states.Grid.Rows, query.GridRow{Values: []string{"pytorch", "16"}, Cells: make([]query.GridCell, 5)})
	b := visit(t, s, 360)
	b.Until(`document.getElementById("live").textContent.startsWith("Live")`)
	left := `[...document.querySelectorAll("#grid tbody tr")].filter(e => e.checkVisibility()).map(e => e.cells[0].textContent).join()`
	b.Do(chromedp.Focus("input[data-filter]"))
	b.Press("Torch 16")
	b.Until(left + ` === "pytorch" && document.getElementById("grid-left").textContent === "1 of 4 rows"`) // 2 rows, 2 listed runs
	board.mu.Lock()
	board.states.Grid.Rows = append(board.states.Grid.Rows, query.GridRow{Values: []string{"torchrun", "160"}, Cells: make([]query.GridCell, 5)})
	board.bump()
	board.mu.Unlock()
	b.Until(left + ` === "pytorch,torchrun" && document.getElementById("grid-left").textContent === "2 of 5 rows"`)
	if !browsertest.Eval[bool](b, `document.activeElement.value === "Torch 16"`) {
		t.Error("the filter lost its text or the focus")
	}
	b.Quiet()
}

// The keyboard reaches every link and scrolling region, and shows where it is.
func TestKeyboardOnly(t *testing.T) {
	s, _ := demo(t, "native")
	b := visit(t, s, 360)
	want := browsertest.Eval[int](b, `[...document.querySelectorAll("a[href], summary, input, [tabindex='0']")].filter(e => e.checkVisibility()).length`)
	seen := map[string]bool{}
	for range want {
		b.Press(kb.Tab)
		at := browsertest.Eval[string](b, `(() => { const e = document.activeElement; return e.tagName + [...document.querySelectorAll("*")].indexOf(e); })()`)
		seen[at] = true
		if outline := browsertest.Eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("%s does not show that it has the focus", at)
		}
	}
	if len(seen) != want || want < 8 {
		t.Errorf("%d stops, want %d", len(seen), want)
	}
	b.Quiet()
}

// Text has the contrast that WCAG 2 requires, 4.5, in both colour schemes.
func TestContrast(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		s, _ := demo(t, "native")
		b := visit(t, s, 1440, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
		for _, selector := range []string{"#live", ".progress", ".note", ".states td.planned", ".states td.failed a", ".states small", ".answer p", "nav a", "footer p", "figcaption", ".filter label", ".filter input"} {
			contrast := b.Contrast(selector)
			if contrast < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f", scheme, selector, contrast)
			}
		}
		b.Quiet()
	}
}

// Hostile text stays text, also after a change.
func TestHostileTextInBrowser(t *testing.T) {
	s, board := demo(t, hostile)
	b := visit(t, s, 360)
	b.Until(`document.getElementById("live").textContent.startsWith("Live")`)
	board.mu.Lock()
	board.states.Progress = "now " + hostile
	board.bump()
	board.mu.Unlock()
	b.Until(`document.querySelector(".progress").textContent.startsWith("now")`)
	if got := browsertest.Eval[string](b, `document.querySelector(".progress").textContent`); got != "now "+hostile {
		t.Errorf("%q", got)
	}
	if n := browsertest.Eval[int](b, `document.querySelectorAll("script:not([src='../../live.js']), img, iframe, object, embed, form, style").length`); n != 0 {
		t.Errorf("%d elements that the page does not have", n)
	}
	if handlers := browsertest.Eval[[]string](b, `[...document.querySelectorAll("*")].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith("on") || a.name === "style").map(a => a.name)`); len(handlers) > 0 {
		t.Errorf("handlers or styles: %q", handlers)
	}
	b.Quiet()
}
