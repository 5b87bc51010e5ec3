// Package browsertest opens pages in a real Chromium, for tests with the build tag browser. A missing
// browser fails a test.
package browsertest

import (
	"context"
	"fmt"
	"os"
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
)

// A Tab is a page in the browser, and what it did that it must not do.
type Tab struct {
	Context context.Context
	t       *testing.T

	mu       sync.Mutex
	requests []string // to other addresses than the page may ask for
	console  []string // messages, exceptions, violations of the content security policy, dialogs
}

// Start starts a Chromium for the test.
func Start(t *testing.T) context.Context {
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

// Open opens a page at a width, with an emulation of media features. The page may ask for addresses
// that begin with own.
func Open(t *testing.T, browser context.Context, width int64, address, own string, features ...*emulation.MediaFeature) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &Tab{t: t, Context: ctx}
	b.Do(chromedp.EmulateViewport(width, 800))
	note := func(list *[]string, text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		*list = append(*list, text)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if a := e.Request.URL; !strings.HasPrefix(a, own) && !strings.HasPrefix(a, "data:") {
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
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	b.Emulate(emulation.SetEmulatedMediaParams{Features: features})
	b.Do(chromedp.Navigate(address))
	return b
}

func call[P, R any](b *Tab, c cdp.Command[P, R], p P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.Context, c, p); err != nil {
		b.t.Fatal(err)
	}
}

// Emulate sets the medium or its features.
func (b *Tab) Emulate(p emulation.SetEmulatedMediaParams) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, p)
}

// Do carries out steps in the page.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.Context, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Press presses keys.
func (b *Tab) Press(keys string) {
	b.t.Helper()
	b.Do(chromedp.KeyEvent(keys))
}

// Eval returns the value of a JavaScript expression.
func Eval[T any](b *Tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Until waits until an expression holds.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); !Eval[bool](b, expression); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("never: %s", expression)
		}
	}
}

// Contrast returns the contrast of an element's text as WCAG 2 defines it, which requires 4.5.
func (b *Tab) Contrast(selector string) float64 {
	b.t.Helper()
	return Eval[float64](b, fmt.Sprintf(`(() => {
		const light = c => { const [r, g, b] = c.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
		const e = document.querySelector(%q);
		let under = e;
		while (getComputedStyle(under).backgroundColor === "rgba(0, 0, 0, 0)") under = under.parentElement;
		const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(under).backgroundColor)].sort((x, y) => y - x);
		return (a + 0.05) / (b + 0.05);
	})()`, selector))
}

// Complaints returns what the page asked for or reported and must not.
func (b *Tab) Complaints() (requests, console []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests), slices.Clone(b.console)
}

// Quiet fails the test if the page asked for or reported anything.
func (b *Tab) Quiet() {
	b.t.Helper()
	requests, console := b.Complaints()
	for _, r := range requests {
		b.t.Errorf("the page asks for %s", r)
	}
	for _, c := range console {
		b.t.Errorf("the console says %s", c)
	}
}
