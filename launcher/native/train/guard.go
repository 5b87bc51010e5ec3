package train

import (
	"container/list"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ServerLimits limit the resources that callers can use on a server.
type ServerLimits struct {
	// Token must come with each request for logits ("Authorization: Bearer TOKEN"); "": no token is
	// needed.
	Token string
	// Connections is the maximum number of open connections that have not shown the token. For a
	// further one, the connection without an answer for the longest time is closed. 0: three
	// quarters of the file descriptors, at most 16,384.
	Connections int
	// Bodies is the maximum size of all request bodies in memory at the same time, in bytes; 0: 512
	// MiB.
	Bodies int64
}

const (
	headerTime = 10 * time.Second // from the first byte of a request to the end of its header
	bodyTime   = 30 * time.Second // to the end of its body
	answerTime = 30 * time.Second // for the client to take the answer
	// idleTime is long: a load at a low rate must not find its connections closed.
	idleTime       = 10 * time.Minute
	mostHeader     = 32 << 10
	mostConnection = 1 << 14
	mostBodies     = 512 << 20
)

// NewModelServer returns a server of ServeHandler's handler. Its timeouts and limits prevent
// callers without the token from using up memory, file descriptors or connections.
func NewModelServer(h http.Handler, o ServerLimits) *http.Server {
	if o.Connections == 0 {
		o.Connections = maxConnections()
	}
	if o.Bodies == 0 {
		o.Bodies = mostBodies
	}
	g := &connGuard{limits: o, next: h, order: list.New(), open: map[net.Conn]*list.Element{}}
	return &http.Server{
		Handler: g, ConnState: g.state,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader,
	}
}

// maxConnections returns three quarters of the limit of file descriptors. The rest is for callers with
// the token.
func maxConnections() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return mostConnection / 16
	}
	return int(min(max(limit.Cur/4*3, 16), mostConnection))
}

type connectionKey struct{} // the key of a request's connection in its context

// A connGuard decides which connections stay open and which requests are read.
type connGuard struct {
	limits ServerLimits
	next   http.Handler
	held   atomic.Int64 // bytes of request bodies in memory

	mu    sync.Mutex
	order *list.List // connections without the token, longest without an answer first
	open  map[net.Conn]*list.Element
}

func (g *connGuard) state(c net.Conn, s http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s {
	case http.StateNew:
		if g.order.Len() >= g.limits.Connections {
			oldest := g.order.Front()
			g.forget(oldest.Value.(net.Conn))
			_ = oldest.Value.(net.Conn).Close() // an error does not matter: the connection is dropped anyway
		}
		g.open[c] = g.order.PushBack(c)
	case http.StateClosed, http.StateHijacked:
		g.forget(c)
	}
}

// forget removes a connection from the list. The caller holds g.mu.
func (g *connGuard) forget(c net.Conn) {
	if e := g.open[c]; e != nil {
		g.order.Remove(e)
		delete(g.open, c)
	}
}

// ServeHTTP implements http.Handler.
func (g *connGuard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, _ := r.Context().Value(connectionKey{}).(net.Conn)
	switch shows := g.shows(r); {
	case g.limits.Token != "" && shows:
		g.mu.Lock()
		g.forget(c) // the connection may stay open
		g.mu.Unlock()
	case g.limits.Token != "" && r.Method != http.MethodGet:
		w.Header().Set("Connection", "close") // the body was not read, so the connection cannot be reused
		refuse(w, http.StatusForbidden, errors.New("this server only answers the run that started it; the request lacks the run's token"))
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // reset the deadline of the last answer
	body := &limited{guard: g, from: r.Body}
	defer body.end()
	r.Body = body
	g.next.ServeHTTP(w, r)
	g.mu.Lock()
	if e := g.open[c]; e != nil {
		g.order.MoveToBack(e)
	}
	g.mu.Unlock()
}

// shows reports whether a request contains the token.
func (g *connGuard) shows(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(g.limits.Token)) == 1
}

// limited is a body whose bytes count against the limit until its request is answered.
type limited struct {
	guard *connGuard
	from  io.ReadCloser
	held  int64
}

// A busyError reports that the bodies of requests use too much memory.
type busyError struct{ most int64 }

func (e *busyError) Error() string {
	return fmt.Sprintf("the server already holds %d MiB of requests; send fewer at once, or smaller ones", e.most>>20)
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	l.held += int64(n)
	if l.guard.held.Add(int64(n)) > l.guard.limits.Bodies {
		return n, &busyError{l.guard.limits.Bodies}
	}
	return n, err
}

func (l *limited) Close() error { return l.from.Close() }

func (l *limited) end() {
	l.guard.held.Add(-l.held)
	l.held = 0
}
