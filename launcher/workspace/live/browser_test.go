//go:build browser

package live

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
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

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// The page in a real Chromium. With the build tag a missing browser fails.

// A tab is a page in the browser, and what it did that it must not do.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

// visit opens the page of the site's study at a width, after an emulation of media features.
func visit(t *testing.T, s *Site, width int64, features ...*emulation.MediaFeature) *tab {
	t.Helper()
	server := httptest.NewServer(s.Handler(token, nil))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"))
	if os.Getuid() == 0 { // Chromium refuses its sandbox to root, as in a container
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(width, 800))
	note := func(text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bad = append(b.bad, text)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if a := e.Request.URL; !strings.HasPrefix(a, server.URL+"/"+token+"/") && !strings.HasPrefix(a, "data:") {
				note("request " + a)
			}
		case *runtime.EventConsoleAPICalled:
			note(fmt.Sprintf("console.%s", e.Type))
		case *runtime.EventExceptionThrown:
			note(e.ExceptionDetails.Text)
		case *log.EventEntryAdded: // also violations of the content security policy
			note(e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			note("dialog " + e.Message)
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
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(server.URL + "/" + token + "/study/demo/index.html"))
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

// until waits until an expression holds.
func (b *tab) until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); !eval[bool](b, expression); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never: %s", expression)
		}
	}
}

// quiet fails the test if the page asked for or reported anything.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.bad {
		b.t.Errorf("the page: %s", text)
	}
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
		b.until(`document.getElementById("live").textContent.startsWith("Live")`)
		if wide := eval[float64](b, `document.documentElement.scrollWidth`); wide > float64(width) {
			t.Errorf("at %d px the page is %.0f px wide", width, wide)
		}
		if size := eval[string](b, `getComputedStyle(document.querySelector("figure svg text")).fontSize`); size == "16px" {
			t.Error("the figure's text has the page's size: its attributes have no effect")
		}
		if edge := eval[string](b, `getComputedStyle(document.querySelector(".states td.done")).borderLeftColor`); edge != "rgb(0, 158, 115)" {
			t.Errorf("a done run has the edge %s", edge)
		}
		if n := eval[int](b, `document.querySelectorAll("figure svg circle title").length`); n != 21 { // 18 runs, 3 medians
			t.Errorf("%d values under the pointer, want 21", n)
		}
		b.quiet()
	}
}

// A change appears without reloading; focus and scroll position stay. Nothing moves if the user wants
// less motion.
func TestChanges(t *testing.T) {
	for motion, animation := range map[string]string{"reduce": "none", "no-preference": "changed"} {
		s, board := demo(t, "native")
		b := visit(t, s, 360, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: motion})
		b.until(`document.getElementById("live").textContent.startsWith("Live")`)
		eval[bool](b, `(() => { window.kept = true; document.querySelector(".states a").focus(); document.querySelector(".states").scrollLeft = 40; return true; })()`)
		board.mu.Lock()
		board.states.Progress = "5 runs: 5 done"
		board.states.Grid.Rows[0].Cells[1].Status = metrics.Done
		board.bump()
		board.mu.Unlock()
		b.until(`document.querySelector(".progress").textContent === "5 runs: 5 done"`)
		if n := eval[int](b, `document.querySelectorAll(".states td.done").length`); n != 2 {
			t.Errorf("%d runs are done, want 2", n)
		}
		if !eval[bool](b, `window.kept && document.activeElement === document.querySelector(".states a") && document.querySelector(".states").scrollLeft === 40`) {
			t.Error("the page was loaded again, or lost its focus or scroll position")
		}
		if got := eval[string](b, `getComputedStyle(document.getElementById("runs")).animationName`); got != animation {
			t.Errorf("%s: animation %q, want %q", motion, got, animation)
		}
		b.quiet()
	}
}

// The keyboard reaches every link and scrolling region, and shows where it is.
func TestKeyboardOnly(t *testing.T) {
	s, _ := demo(t, "native")
	b := visit(t, s, 360)
	want := eval[int](b, `[...document.querySelectorAll("a[href], summary, [tabindex='0']")].filter(e => e.checkVisibility()).length`)
	seen := map[string]bool{}
	for range want {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, `(() => { const e = document.activeElement; return e.tagName + [...document.querySelectorAll("*")].indexOf(e); })()`)
		seen[at] = true
		if outline := eval[string](b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("%s does not show that it has the focus", at)
		}
	}
	if len(seen) != want || want < 8 {
		t.Errorf("%d stops, want %d", len(seen), want)
	}
	b.quiet()
}

// Text has the contrast that WCAG 2 requires, 4.5, in both colour schemes.
func TestContrast(t *testing.T) {
	for _, scheme := range []string{"light", "dark"} {
		s, _ := demo(t, "native")
		b := visit(t, s, 1440, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
		for _, selector := range []string{"#live", ".progress", ".note", ".states td.planned", ".states td.failed a", ".states small", ".answer p", "nav a", "footer p", "figcaption"} {
			contrast := eval[float64](b, fmt.Sprintf(`(() => {
				const light = c => { const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
				const e = document.querySelector(%q);
				let under = e;
				while (getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") under = under.parentElement;
				const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(under).backgroundColor)].sort((x, y) => y - x);
				return (a + 0.05) / (b + 0.05);
			})()`, selector))
			if contrast < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f", scheme, selector, contrast)
			}
		}
		b.quiet()
	}
}

// Hostile text stays text, also after a change.
func TestHostileTextInBrowser(t *testing.T) {
	s, board := demo(t, hostile)
	b := visit(t, s, 360)
	b.until(`document.getElementById("live").textContent.startsWith("Live")`)
	board.mu.Lock()
	board.states.Progress = "now " + hostile
	board.bump()
	board.mu.Unlock()
	b.until(`document.querySelector(".progress").textContent.startsWith("now")`)
	if got := eval[string](b, `document.querySelector(".progress").textContent`); got != "now "+hostile {
		t.Errorf("%q", got)
	}
	if n := eval[int](b, `document.querySelectorAll("script:not([src='../../live.js']), img, iframe, object, embed, form, style").length`); n != 0 {
		t.Errorf("%d elements that the page does not have", n)
	}
	if handlers := eval[[]string](b, `[...document.querySelectorAll("*")].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith("on") || a.name === "style").map(a => a.name)`); len(handlers) > 0 {
		t.Errorf("handlers or styles: %q", handlers)
	}
	b.quiet()
}
