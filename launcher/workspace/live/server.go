package live

import (
	"context"
	"crypto/subtle"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/templates"
)

// Limits of the server. Strangers without the token can only use up connections, each for a short
// time.
const (
	mostListeners = 64 // open event streams
	beat          = 20 * time.Second
	writeLimit    = 30 * time.Second
)

// Handler returns the handler of a site. Only requests are answered whose path contains the token
// as a segment; what is before it may be the prefix of a proxy. names are further host names by
// which clients may reach the server.
func (s *Site) Handler(token string, names []string) http.Handler {
	h := &handler{site: s, token: token, names: names, listeners: make(chan struct{}, mostListeners)}
	if host, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(host, ".")
		h.names = append(slices.Clone(names), host, short)
	}
	return h
}

type handler struct {
	site      *Site
	token     string
	names     []string
	listeners chan struct{}
}

// newServer returns a server with the handler and with limits on the time and size of requests.
func newServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: writeLimit, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "private, no-cache")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "Only GET and HEAD: this page changes nothing.", http.StatusMethodNotAllowed)
		return
	case !h.knows(r.Host):
		http.Error(w, "Unknown host name. Use the address that `scalebench serve` printed, or give the name with --host.", http.StatusMisdirectedRequest)
		return
	}
	path, ok := h.admitted(r.URL.Path)
	if !ok {
		http.Error(w, "The address needs the token that `scalebench serve` printed.", http.StatusForbidden)
		return
	}
	h.route(w, r, path)
}

// knows reports whether a Host header names this server. A page of another site that a hostile name
// server directs here (DNS rebinding) has that site's name. Addresses need no name server.
func (h *handler) knows(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || net.ParseIP(name) != nil {
		return true
	}
	return slices.ContainsFunc(h.names, func(known string) bool { return known != "" && strings.EqualFold(known, name) })
}

// mostPrefix is the largest number of path segments before the token.
const mostPrefix = 8

// admitted returns the path after the token; ok is false without the token.
func (h *handler) admitted(path string) (rest string, ok bool) {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments[:min(len(segments), mostPrefix+1)] {
		if subtle.ConstantTimeCompare([]byte(segment), []byte(h.token)) == 1 {
			return strings.Join(segments[i+1:], "/"), len(segments) > i+1
		}
	}
	return "", false
}

// route answers a request that has the token.
func (h *handler) route(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case "", "index.html":
		h.list(w, r)
		return
	case "events":
		h.events(w, r, h.site.changes)
		return
	case templates.Style, templates.LiveStyle:
		h.file(w, r, path, "text/css; charset=utf-8")
		return
	case templates.LiveScript:
		h.file(w, r, path, "text/javascript; charset=utf-8")
		return
	}
	if parts := strings.Split(path, "/"); len(parts) == 3 && parts[0] == "study" {
		if b, ok := h.site.board(r.Context(), parts[1]); ok {
			h.study(w, r, b, parts[2])
			return
		}
	}
	http.Error(w, "There is no such page. The list of studies is at the address that `scalebench serve` printed.", http.StatusNotFound)
}

// study answers a request for a file in a study's folder.
func (h *handler) study(w http.ResponseWriter, r *http.Request, b *board, name string) {
	switch name {
	case "", "index.html":
		b.study(r.Context())
		text, version, err := b.html()
		h.send(w, r, text, version, "text/html; charset=utf-8", err)
	case "state.json":
		b.await(r.Context(), func() bool { return b.states.begun })
		text, version, err := b.json()
		h.send(w, r, text, version, "application/json", err)
	case "events":
		h.events(w, r, func() (string, <-chan struct{}) { b.view(); return b.version() })
	default:
		if run, ok := strings.CutSuffix(name, ".events"); ok {
			h.events(w, r, func() (string, <-chan struct{}) { b.view(); return b.runVersion(run) })
			return
		}
		run, ok := strings.CutSuffix(name, ".html")
		if !ok {
			http.NotFound(w, r)
			return
		}
		text, err := b.run(r.Context(), run)
		if err == nil && text == nil {
			http.Error(w, "There is no such run in this study's folder.", http.StatusNotFound)
			return
		}
		h.send(w, r, text, digest(text), "text/html; charset=utf-8", err)
	}
}

// list answers a request for the list of studies.
func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	version, _ := h.site.changes()
	studies, problem, note := h.site.rows(r.Context())
	text, err := renderList(studies, problem, note, frame{Version: version, Made: h.site.made()})
	h.send(w, r, text, digest(text), "text/html; charset=utf-8", err)
}

// rows returns the rows of the list of studies. It looks at the runs of the newest studies.
func (s *Site) rows(ctx context.Context) (rows []listed, problem, note string) {
	list, err := s.list(ctx)
	if err != nil {
		problem = explained(err)
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, e := range list {
		row := listed{Name: e.name, Href: studyHref(e.name), Progress: "Reading the runs…"}
		if i < mostFollowed {
			b := s.boardOf(e)
			b.await(limit, func() bool { return b.states.begun })
			b.mu.Lock()
			if b.states.begun {
				row.Progress = b.states.Progress
			}
			b.mu.Unlock()
		} else {
			row.Progress = "Open it to see its runs."
		}
		rows = append(rows, row)
	}
	if n := len(list) - mostFollowed; n > 0 {
		note = fmt.Sprintf("The states of the runs are shown for the %d newest of %s.", mostFollowed, number.Count(len(list), "study"))
	}
	return rows, problem, note
}

// changes returns the version of the list, which changes with any of its studies, and a channel that
// is closed at the next change.
func (s *Site) changes() (string, <-chan struct{}) {
	list, _ := s.list(context.Background())
	s.mu.Lock()
	for _, b := range s.boards {
		b.view()
	}
	s.mu.Unlock()
	number, changed := s.signal.now()
	return fmt.Sprintf("%s-%d-%d", s.base, number, len(list)), changed
}

// events sends the version of the content whenever it changes, as server-sent events.
func (h *handler) events(w http.ResponseWriter, r *http.Request, version func() (string, <-chan struct{})) {
	select {
	case h.listeners <- struct{}{}:
		defer func() { <-h.listeners }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "Too many open pages.", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // asks proxies not to hold events back
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeLimit))
		_, err := fmt.Fprint(w, text)
		return err == nil && control.Flush() == nil
	}
	last := ""
	for {
		now, changed := version()
		if now != last {
			last = now
			if !send("event: change\ndata: " + now + "\n\n") {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-time.After(beat): // a comment shows that the connection is alive
			if !send(": alive\n\n") {
				return
			}
		}
	}
}

// file answers with one of our own files.
func (h *handler) file(w http.ResponseWriter, r *http.Request, name, kind string) {
	text, err := templates.Files.ReadFile(name)
	h.send(w, r, text, digest(text), kind, err)
}

// send answers with a text, or says that the client has it already.
func (h *handler) send(w http.ResponseWriter, r *http.Request, text []byte, version, kind string, err error) {
	if err != nil {
		http.Error(w, explained(err), http.StatusInternalServerError)
		return
	}
	tag := `"` + version + `"`
	w.Header().Set("ETag", tag)
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == tag || known == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(text) // the client may have gone
}

// digest names a text's content.
func digest(text []byte) string {
	h := fnv.New128a()
	_, _ = h.Write(text)
	return fmt.Sprintf("%x", h.Sum(nil))
}
