package live

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/table"
)

const (
	token   = "0123456789abcdef0123456789abcdef"
	hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)> ' & javascript:alert(3)`
)

// siteOf returns a site with one study, whose content is given.
func siteOf(t *testing.T, st states, r *results) (*Site, *board) {
	t.Helper()
	dir := t.TempDir()
	s := New(Options{Workspace: &workspace.Workspace{Runs: dir, DB: filepath.Join(dir, "db"), Version: "1"}, Interval: time.Minute})
	e := entry{name: "demo", arg: "demo", folder: rundir.OpenStudy(dir, "demo")}
	s.entries, s.listed = []entry{e}, time.Now().Add(time.Hour)
	b := newBoard(s, e)
	t.Cleanup(b.stop)
	st.begun = true
	b.states, b.results = st, r
	b.full.Do(func() {}) // nothing reads results
	s.boards[e.name] = b
	return s, b
}

// full returns content in every part of a study's page; text is everywhere.
func full(text string) (states, *results) {
	long := table.Text{Columns: []table.Title{{Title: "workers", Right: true}, {Title: text}}, Notes: []string{text}}
	for range 3 {
		long.Rows = append(long.Rows, []string{"8", text})
	}
	cells := []query.GridCell{{Status: metrics.Done, Run: "p-r1-a1"}, {Status: metrics.Running, Run: "p-r2-a1", Detail: text}, {Status: metrics.Failed, Run: "p-r3-a1", Detail: text}, {Status: metrics.Planned}, {}}
	st := states{Progress: text, Troubles: []string{text}, Grid: &query.Grid{Heads: []string{"framework", "workers"}, Columns: []string{"1", "2", "3", "4", "5"},
		Rows: []query.GridRow{{Values: []string{text, "8"}, Cells: cells}}, Notable: cells[1:3]}}
	st.runs = map[string]*launcher.State{}
	return st, &results{Lead: text, Reasons: []string{text}, Candidates: tableOf("c", text, long), Decision: []string{text}, Looks: tableOf("l", text, long),
		NotDrawn: []report.Fact{{Name: text, Values: []string{text}}}, Tables: []report.Table{*tableOf("t", text, long)}, Warnings: []string{text},
		Figures: []drawing{{ID: "figure-x", Title: text, Caption: text, Wide: `<svg width="50pt" viewBox="0 0 50 50"></svg>`}},
		History: tableOf("h", text, long), HistoryNotes: []string{text}}
}

// get requests a path of the site.
func get(s *Site, method, path, host string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://"+host+path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler(token, []string{"portal.example"}).ServeHTTP(w, r)
	return w
}

// Only GET and HEAD requests for a known host and with the token are answered; a prefix before the
// token is a proxy's.
func TestAdmission(t *testing.T) {
	s, _ := siteOf(t, states{Progress: "1 run: 1 done"}, &results{Lead: "Use 1 worker."})
	const study = "/" + token + "/study/demo/index.html"
	for _, tt := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", "/" + token + "/", "127.0.0.1:8080", 200},
		{"HEAD", study, "127.0.0.1", 200},
		{"GET", study, "localhost:1", 200},
		{"GET", study, "[::1]:8080", 200},
		{"GET", "/node/gpu01/8080" + study, "portal.example", 200},
		{"GET", "/node/gpu01/8080" + study, "PORTAL.example:443", 200},
		{"GET", study, "evil.example", 421},
		{"GET", study, "127.0.0.1.evil.example", 421},
		{"GET", study, "localhost.evil.example:8080", 421},
		{"GET", "/", "127.0.0.1", 403},
		{"GET", "/study/demo/index.html", "127.0.0.1", 403},
		{"GET", "/" + token[:31] + "/", "127.0.0.1", 403},
		{"GET", "/" + token + "0/", "127.0.0.1", 403},
		{"GET", "/" + strings.ToUpper(token) + "/", "127.0.0.1", 403},
		{"GET", "/?" + token, "127.0.0.1", 403},
		{"GET", strings.Repeat("/a", 9) + study, "127.0.0.1", 403},
		{"POST", study, "127.0.0.1", 405},
		{"PUT", study, "127.0.0.1", 405},
		{"DELETE", study, "127.0.0.1", 405},
		{"OPTIONS", study, "127.0.0.1", 405},
		{"GET", "/" + token + "/study/other/index.html", "127.0.0.1", 404},
		{"GET", "/" + token + "/study/demo/x.txt", "127.0.0.1", 404},
		{"GET", "/" + token + "/live.html.tmpl", "127.0.0.1", 404},
	} {
		w := get(s, tt.method, tt.path, tt.host)
		if w.Code != tt.want {
			t.Errorf("%s %s of %s: %d, want %d", tt.method, tt.path, tt.host, w.Code, tt.want)
		}
		if tt.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD has a body")
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s of %s: %s is %q, want %q", tt.path, tt.host, name, got, want)
			}
		}
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
			t.Errorf("%s: policy %q", tt.path, csp)
		}
		if w.Code != 200 && strings.Contains(w.Body.String(), "demo") {
			t.Errorf("%s %s: a refusal names a study: %s", tt.method, tt.path, w.Body)
		}
	}
}

// No path leads out of a study's folder, or to a run that the grid does not show.
func TestPathTraversal(t *testing.T) {
	s, b := siteOf(t, states{}, &results{})
	secret := filepath.Join(b.folder.Runs(), "secret-r1-a1.html")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../secret-r1-a1.html", "..%2fsecret-r1-a1.html", "%2e%2e/secret-r1-a1.html", "....//secret-r1-a1.html",
		"../../../../etc/passwd", "..%5csecret-r1-a1.html", "secret-r1-a1.html", "%2fetc%2fpasswd.html", "x%00.html", "../demo/../../secret-r1-a1.html"} {
		w := get(s, "GET", "/"+token+"/study/demo/"+path, "127.0.0.1")
		if w.Code == 200 || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A client that has the present version gets no content.
func TestETag(t *testing.T) {
	st, r := full("x")
	s, b := siteOf(t, st, r)
	for _, name := range []string{"study/demo/index.html", "study/demo/state.json", "page.css", "live.css", "live.js", "index.html"} {
		path := "/" + token + "/" + name
		first := get(s, "GET", path, "localhost")
		tag := first.Header().Get("ETag")
		if first.Code != 200 || first.Body.Len() == 0 || tag == "" {
			t.Fatalf("%s: %d, ETag %q", name, first.Code, tag)
		}
		for _, match := range []string{tag, `"old", W/` + tag, "*"} {
			if w := get(s, "GET", path, "localhost", "If-None-Match", match); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
				t.Errorf("%s with If-None-Match %s: %d with %d bytes", name, match, w.Code, w.Body.Len())
			}
		}
		b.mu.Lock()
		b.states.Progress += "!"
		b.bump()
		b.mu.Unlock()
		if w := get(s, "GET", path, "localhost", "If-None-Match", tag); (w.Code == 200) != strings.HasPrefix(name, "study/") && name != "index.html" {
			t.Errorf("%s after a change: %d", name, w.Code)
		}
	}
}

// Text from users and logs stays text.
func TestHostilePage(t *testing.T) {
	st, r := full(hostile)
	s, _ := siteOf(t, st, r)
	s.entries[0].name = "demo"
	for _, name := range []string{"study/demo/index.html", "index.html"} {
		text := get(s, "GET", "/"+token+"/"+name, "localhost").Body.String()
		if n := strings.Count(text, "<script"); n != 1 || !strings.Contains(text, `live.js" defer></script>`) {
			t.Errorf("%s: %d scripts, want its own only", name, n)
		}
		if strings.Contains(text, "<img") || strings.Contains(text, ` style="`) || strings.Contains(text, "<style") {
			t.Errorf("%s: has elements of hostile text, or styles", name)
		}
	}
	if text := get(s, "GET", "/"+token+"/study/demo/state.json", "localhost").Body.String(); strings.Contains(text, "<script") {
		t.Errorf("state.json: %s", text)
	}
	if text, err := renderStudy(s.entries[0], st, r, s.static(time.Unix(0, 0))); err != nil || strings.Contains(string(text), "<script") || strings.Contains(string(text), "p-r1-a1.html") {
		t.Errorf("the static page has a script or links to runs: %v", err)
	}
}

// An open page learns of a change at once, and the stream ends with the server.
func TestEvents(t *testing.T) {
	s, b := siteOf(t, states{Progress: "old"}, &results{})
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, s.Handler(token, nil)) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/" + token + "/study/demo/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	first, _ := b.version()
	if got := next(); got != first {
		t.Errorf("first version %q, want %q", got, first)
	}
	b.mu.Lock()
	b.bump()
	b.mu.Unlock()
	second, _ := b.version()
	if got := next(); got != second || got == first {
		t.Errorf("next version %q, want %q, not %q", got, second, first)
	}
	cancel()
	if got := next(); got != "" {
		t.Errorf("after the end: %q", got)
	}
	<-ended
}

// A socket can be opened by its owner only. A stale one is replaced; anything else stays.
func TestListenSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for range 2 { // the second time, the first one's socket is stale
		l, err := Listen("unix:" + path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, want 0600: %v", info.Mode(), err)
		}
		if _, err := Listen("unix:" + path); err == nil {
			t.Error("two servers on one socket")
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix:" + file); err == nil {
		t.Error("a file was taken for a socket")
	}
	for _, address := range []string{"", ":80", "127.0.0.1", "unix"} {
		if _, err := Listen(address); err == nil {
			t.Errorf("--listen %q is accepted", address)
		}
	}
}

// Of a long log, whole lines at its end are shown. 32 KiB are 32768 bytes; lines of 10 bytes leave
// 3276 whole ones.
func TestEndOfLog(t *testing.T) {
	run := rundir.Folder(t.TempDir())
	path := filepath.Join(string(run), "rank-00000.log")
	if err := os.WriteFile(path, []byte(strings.Repeat("012345678\n", 5000)+"last"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, size, err := endOf(run, path)
	if err != nil || size != 50004 || len(text) != 32764 || !strings.HasPrefix(text, "012345678\n") || !strings.HasSuffix(text, "\nlast") {
		t.Errorf("%d of %d bytes, %q…: %v", len(text), size, text[:min(12, len(text))], err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(string(run), "job.log")); err != nil {
		t.Fatal(err)
	}
	if text, _, err := endOf(run, filepath.Join(string(run), "job.log")); err == nil {
		t.Errorf("a link out of the folder was followed: %s", text)
	}
}
