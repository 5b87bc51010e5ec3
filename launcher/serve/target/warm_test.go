package target

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// oneAtATime answers the requests of one connection until the caller closes it, then those of the next, like Python's
// http.server.
func oneAtATime(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		for in := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(in); err != nil {
				break
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		_ = c.Close()
	}
}

// Servers of up to 8 connections: further ones wait until another is closed. Then each request gets a new one, in
// both loops, and none is an error.
func TestFewConnections(t *testing.T) {
	for _, threads := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			for range threads {
				go oneAtATime(l)
			}
			h := &HTTP{URLs: []string{"http://" + l.Addr().String()}, Expect: []byte("ok")}
			if n := h.Warm(soon()); n != 2 || !h.FewConnections() {
				t.Fatalf("an answer of %d bytes; few connections: %v", n, h.FewConnections())
			}
			schedule := make([]time.Duration, 20) // at one time: no connection may wait for another to be closed
			for _, o := range []loadtest.Options{{Schedule: schedule}, {InFlight: 12, Duration: 100 * time.Millisecond}} {
				o.Dial, o.Timeout = h.Dial, time.Minute
				r, err := loadtest.Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if total := loadtest.Merge(r.Windows); total.Good == 0 || total.Errors() > 0 || r.Reconnects > 0 {
					t.Errorf("%d right answers, errors %v (%v), %d reconnected", total.Good, total.Errors(), r.FirstError, r.Reconnects)
				}
			}
		})
	}
}

// Other servers keep their connections.
func TestSeveralConnections(t *testing.T) {
	for name, closes := range map[string]bool{"kept": false, "closed after each answer": true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if closes {
				w.Header().Set("Connection", "close")
			}
			_, _ = io.WriteString(w, "ok")
		}))
		h := &HTTP{URLs: []string{server.URL}}
		if n := h.Warm(soon()); n != 2 || h.FewConnections() {
			t.Errorf("%s: an answer of %d bytes; few connections: %v", name, n, h.FewConnections())
		}
		server.Close()
	}
}

// A server that closes its connection after each answer waits until the client has closed it too, as gunicorn does,
// before it serves the next.
func TestClosesWithTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = http.ReadRequest(bufio.NewReader(c))
		}
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err = io.Copy(io.Discard, c)
		}
		closed <- err
	}()
	s, err := (&HTTP{URLs: []string{"http://" + l.Addr().String()}}).Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(soon()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Errorf("the client keeps the connection: %v", err)
	}
}
