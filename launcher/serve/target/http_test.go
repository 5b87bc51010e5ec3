package target

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

func soon() time.Time { return time.Now().Add(time.Minute) }

// dial connects to a test server with the given handler.
func dial(t *testing.T, h *HTTP, handler http.HandlerFunc) loadtest.Sender {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	h.URLs = append(h.URLs, server.URL+"/v2/models/m/infer")
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	s, err := h.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Requests arrive unchanged over one connection, and the answer is checked.
func TestHTTP(t *testing.T) {
	connections := map[string]bool{}
	h := &HTTP{Bodies: [][]byte{[]byte(`{"inputs": 1}`)}, ContentType: "application/json", Expect: []byte(`"class": 3`)}
	s := dial(t, h, func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.RequestURI != "/v2/models/m/infer" || r.Header.Get("Content-Type") != "application/json" || string(body) != `{"inputs": 1}` {
			t.Errorf("%s %s %q %q", r.Method, r.URL, r.Header, body)
		}
		_, _ = io.WriteString(w, `{"class": 3}`)
	})
	for range 3 {
		if err := s.Send(soon()); err != nil {
			t.Fatal(err)
		}
	}
	if len(connections) != 1 {
		t.Errorf("%d connections for 3 requests", len(connections))
	}
}

func TestHTTPWithoutBody(t *testing.T) {
	s := dial(t, &HTTP{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.ContentLength != 0 {
			t.Errorf("%s with %d bytes", r.Method, r.ContentLength)
		}
	})
	if err := s.Send(soon()); err != nil {
		t.Fatal(err)
	}
}

// A wrong answer is never requested again: a retry would hide the error in a latency.
func TestWrongAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "model not loaded", http.StatusUnprocessableEntity)
		}, `status 422: "model not loaded`},
		"content": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"class": 7}`) }, `does not contain the expected text: "{\"class\": 7}"`},
		"lost":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "no answer: "},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			h := &HTTP{}
			if name == "content" {
				h.Expect = []byte(`"class": 3`)
			}
			s := dial(t, h, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				tt.answer(w, r)
			})
			if err := s.Send(soon()); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if calls.Load() != 1 {
				t.Errorf("the request came %d times", calls.Load())
			}
		})
	}
}

// A server may close a connection after an answer, announced or not. The next request uses a new connection and
// reaches the server once.
func TestClosedByServer(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		shut   bool // it closes the connection without announcing it
		anew   []bool
	}{
		"it says so":       {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", true, []bool{false, true, true}},
		"HTTP/1.0":         {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", true, []bool{false, true, true}},
		"without a length": {"HTTP/1.0 200 OK\r\n\r\nok", true, []bool{false, true, true}},
		"without a word":   {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true, []bool{false, true, true}},
		"kept":             {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			calls, shut := atomic.Int64{}, make(chan bool, 10)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						for in := bufio.NewReader(c); ; {
							if _, err := http.ReadRequest(in); err != nil {
								return
							}
							calls.Add(1)
							_, _ = io.WriteString(c, tt.answer)
							if tt.shut {
								_ = c.Close()
								shut <- true
								return
							}
						}
					}()
				}
			}()
			s, err := (&HTTP{URLs: []string{"http://" + l.Addr().String()}, Expect: []byte("ok")}).Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i, want := range tt.anew {
				if err := s.Send(soon()); err != nil {
					t.Fatalf("request %d: %v", i, err)
				}
				if got := s.(*sender).Reconnected(); got != want {
					t.Errorf("request %d: a new connection: %v, want %v", i, got, want)
				}
				if tt.shut {
					<-shut
				}
			}
			if n := calls.Load(); n != 3 {
				t.Errorf("3 requests came %d times", n)
			}
		})
	}
}

// If the server closes reused connections without answering, the request is sent once more and then fails.
func TestClosedWithoutAnswer(t *testing.T) {
	var calls atomic.Int64
	s := dial(t, &HTTP{}, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "ok")
	})
	if err := s.Send(soon()); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(soon()); err == nil || !strings.Contains(err.Error(), "no answer: ") {
		t.Errorf("%v, want no answer", err)
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("2 requests came %d times, want 3", n)
	}
}

// An answer that is incomplete at the deadline is late, no matter how much of it arrived.
func TestLateAnswers(t *testing.T) {
	for name, first := range map[string]string{"none": "", "headers": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "half": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "a line": "HTTP/1.1 200"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, first)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
			h := &HTTP{URLs: []string{"http://" + l.Addr().String()}}
			s, err := h.Dial()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Send(time.Now().Add(50 * time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%v is not late", err)
			}
		})
	}
}

// All connections together query the replicas in turn.
func TestReplicas(t *testing.T) {
	var calls [3]atomic.Int64
	h := &HTTP{}
	for i := range calls {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls[i].Add(1) }))
		defer server.Close()
		h.URLs = append(h.URLs, server.URL)
	}
	asksInTurns(t, h.Dial, &calls)
}

// asksInTurns checks that two connections with six requests each query every replica four times.
func asksInTurns(t *testing.T, dial func() (loadtest.Sender, error), calls *[3]atomic.Int64) {
	t.Helper()
	for range 2 {
		s, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			if err := s.Send(soon()); err != nil {
				t.Fatal(err)
			}
		}
		_ = s.Close()
	}
	for i := range calls {
		if n := calls[i].Load(); n != 4 {
			t.Errorf("replica %d was asked %d times of 12", i, n)
		}
	}
}

func TestCheck(t *testing.T) {
	for url, want := range map[string]string{
		"":                           "not the URL of a service",
		"localhost:8000":             "not the URL of a service",
		"ftp://h/x":                  "not the URL of a service",
		"http://":                    "not the URL of a service",
		"http://user:secret@h/infer": "password",
	} {
		err := (&HTTP{URLs: []string{url}}).Check()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	if err := (&HTTP{}).Check(); err == nil {
		t.Error("no URL is one")
	}
}

// The load generator, the connections and a null server together: every request is answered.
func TestNull(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- Null(l, 100) }()
	h := &HTTP{URLs: []string{"http://" + l.Addr().String()}, Bodies: [][]byte{make([]byte, 5000)}, ContentType: "application/octet-stream", Expect: make([]byte, 100)}
	var schedule []time.Duration
	for i := range 200 {
		schedule = append(schedule, time.Duration(i)*100*time.Microsecond)
	}
	r, err := loadtest.Run(context.Background(), loadtest.Options{Dial: h.Dial, Schedule: schedule, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if total := loadtest.Merge(r.Windows); total.Good != 200 || total.Requests() != 200 {
		t.Errorf("%d of %d answers are right: %v", total.Good, total.Requests(), r.FirstError)
	}
	_ = l.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
