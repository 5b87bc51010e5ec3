package world

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const nonce, purpose = "0123456789abcdef", "test"

// listen returns a listener on the loopback interface that is closed with the test.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve starts a guarded listener that passes on admitted connections.
func serve(t testing.TB, l net.Listener, nonce, purpose string) (*GuardedListener, <-chan net.Conn) {
	t.Helper()
	entered := make(chan net.Conn, 100)
	d := NewGuardedListener(l, nonce, purpose)
	ctx, cancel := context.WithCancel(context.Background())
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		d.Serve(ctx, func(c net.Conn) error { entered <- c; return nil })
	}()
	t.Cleanup(func() { cancel(); <-closed })
	return d, entered
}

func connect(t testing.TB, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // in case the listener never closes it
	return c
}

// refused checks that the listener closes the connection without a welcome.
func refused(t *testing.T, c net.Conn, entered <-chan net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(c)
	if bytes.Contains(rest, []byte{welcome}) && len(rest) == 1 {
		t.Error("a stranger was welcomed")
	}
	if os.IsTimeout(err) {
		t.Error("the door has not hung up")
	}
	select {
	case <-entered:
		t.Error("a stranger came in")
	default:
	}
}

// Both ends with the same nonce and purpose accept each other, and no byte sent afterwards is lost;
// with another nonce or purpose, neither accepts.
func TestBothProve(t *testing.T) {
	unix, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close() })
	for _, l := range []net.Listener{listen(t), unix} {
		d, entered := serve(t, l, nonce, purpose)
		c := connect(t, l)
		if err := call(t.Context(), c, nonce, purpose); err != nil {
			t.Fatal(err)
		}
		other := <-entered
		defer other.Close()
		for _, way := range [][2]net.Conn{{c, other}, {other, c}} {
			got := make([]byte, 5)
			if _, err := io.WriteString(way[0], "hello"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(way[1], got); err != nil || string(got) != "hello" {
				t.Errorf("%q, %v", got, err)
			}
		}
		for _, wrong := range [][2]string{{"another", purpose}, {nonce, "another"}} {
			c := connect(t, l)
			if err := call(t.Context(), c, wrong[0], wrong[1]); err == nil || !strings.Contains(err.Error(), "does not know this run's nonce; another program may hold the port") {
				t.Errorf("%q: %v", wrong, err)
			}
			refused(t, c, entered)
		}
		for !strings.Contains(d.Trouble(), "wrong nonce: it belongs to another run, or to another attempt at this one") {
			if t.Context().Err() != nil {
				t.Fatal(d.Trouble())
			}
			time.Sleep(time.Millisecond)
		}
		if err := call(t.Context(), connect(t, l), "", purpose); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("an empty nonce: %v", err)
		}
	}
}

// tap forwards and records the bytes between a caller and a listener.
type tap struct {
	net.Conn
	said, heard bytes.Buffer
}

func (c *tap) Write(b []byte) (int, error) { c.said.Write(b); return c.Conn.Write(b) }
func (c *tap) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard.Write(b[:n])
	return n, err
}

// A recorded handshake helps neither a caller nor a listener, even between the same addresses, as on a Unix
// socket.
func TestReplay(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		_, entered := serve(t, l, nonce, purpose)
		overheard := &tap{Conn: connect(t, l)}
		if err := call(t.Context(), overheard, nonce, purpose); err != nil {
			t.Fatal(err)
		}
		(<-entered).Close()
		if bytes.Contains(overheard.said.Bytes(), []byte(nonce)) || bytes.Contains(overheard.heard.Bytes(), []byte(nonce)) {
			t.Error("the nonce was sent")
		}

		again := connect(t, l)
		if _, err := again.Write(overheard.said.Bytes()); err != nil {
			t.Fatal(err)
		}
		refused(t, again, entered)

		l.Close()
		squat, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { squat.Close() })
		go func() {
			c, err := squat.Accept()
			if err == nil {
				_, _ = c.Write(overheard.heard.Bytes())
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}
		}()
		if err := call(t.Context(), connect(t, squat), nonce, purpose); err != errUnproven {
			t.Errorf("a replayed listener: %v", err)
		}
	}
}

// Neither end accepts its own messages as the other's.
func TestReflection(t *testing.T) {
	echo := listen(t)
	go func() {
		c, err := echo.Accept()
		if err == nil {
			first := make([]byte, greetingBytes)
			_, _ = io.ReadFull(c, first)
			_, _ = c.Write(append(first, first[:32]...))
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}()
	if err := call(t.Context(), connect(t, echo), nonce, purpose); err != errUnproven {
		t.Errorf("a mirror: %v", err)
	}

	l := listen(t)
	_, entered := serve(t, l, nonce, purpose)
	c := connect(t, l)
	if _, err := c.Write(newGreeting().encode()); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, greetingBytes+32)
	if _, err := io.ReadFull(c, said); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(said[greetingBytes:]); err != nil { // the listener's own proof
		t.Fatal(err)
	}
	refused(t, c, entered)
}

// A relay between a caller and a listener is detected by
// both.
func TestRelay(t *testing.T) {
	l, squat := listen(t), listen(t)
	_, entered := serve(t, l, nonce, purpose)
	toDoor := connect(t, l)
	go func() {
		c, err := squat.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		go func() { _, _ = io.Copy(c, toDoor) }()
		_, _ = io.Copy(toDoor, c)
		toDoor.Close()
	}()
	c := connect(t, squat)
	if err := call(t.Context(), c, nonce, purpose); err != errUnproven {
		t.Errorf("a relay: %v", err)
	}
	c.Close()
	select {
	case <-entered:
		t.Error("a relay came in")
	case <-time.After(50 * time.Millisecond):
	}
}

// The other end of a Unix socket must belong to the same user, even if it knows the nonce.
func TestAnotherUser(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer func(f func() int) { ownUser = f }(ownUser)
	ownUser = func() int { return os.Geteuid() + 1 }
	c := connect(t, l)
	if err := call(t.Context(), c, nonce, purpose); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("the caller: %v", err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := answer(t.Context(), other, nonce, purpose, func() bool { return true }); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("the listener: %v", err)
	}
}

// Dial waits for the expected listener, and reports what listened instead.
func TestDialThroughSquatter(t *testing.T) {
	for name, act := range map[string]func(net.Conn){
		"does not know this run's nonce": func(c net.Conn) {
			_, _ = c.Write(append(newGreeting().encode(), make([]byte, 32)...))
			_, _ = io.Copy(io.Discard, c)
		},
		"is not a rank of a scalebench run": func(c net.Conn) {
			_, _ = c.Write(bytes.Repeat([]byte("HTTP/1.1 400 Bad Request\r\n"), 10))
			_, _ = io.Copy(io.Discard, c)
		},
		"hung up before":        func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, greetingBytes)) },
		"did not prove in time": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			var called = make(chan struct{}, 1000)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					called <- struct{}{}
					go func() { act(c); c.Close() }()
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := Dial(ctx, net.Dialer{}, "tcp", l.Addr().String(), nonce, purpose)
			if err == nil || !strings.Contains(err.Error(), "the process listening at "+l.Addr().String()+" ") || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, want %q", err, name)
			}

			// The squatter stops, and the expected listener starts.
			dialled := make(chan error, 1)
			for len(called) > 0 {
				<-called
			}
			go func() {
				c, err := Dial(t.Context(), net.Dialer{}, "tcp", l.Addr().String(), nonce, purpose)
				if err == nil {
					c.Close()
				}
				dialled <- err
			}()
			<-called
			l.Close()
			var again net.Listener
			for again == nil {
				again, _ = net.Listen("tcp", l.Addr().String())
			}
			serve(t, again, nonce, purpose)
			if err := <-dialled; err != nil {
				t.Error(err)
			}
		})
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add(greeting{1, 2, 3}.encode())
	f.Add(append(greeting{}.encode(), "and more"...))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: somewhere.else.example\r\n\r\n"))
	f.Add([]byte("scalehs\n\x00\x02 of another version, which is long enough"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		g, err := readGreeting(r)
		if took := len(data) - r.Len(); took > greetingBytes {
			t.Fatalf("%d bytes were taken, want at most %d", took, greetingBytes)
		}
		if err == nil && !bytes.HasPrefix(data, g.encode()) {
			t.Fatalf("%q became %q", data, g.encode())
		}
	})
}

// A stranger is named after it has left, too.
func TestDialAfterSquatter(t *testing.T) {
	l := listen(t)
	go func() {
		c, err := l.Accept()
		if err == nil {
			l.Close()
			_, _ = c.Write(append(newGreeting().encode(), make([]byte, 32)...))
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := Dial(ctx, net.Dialer{}, "tcp", l.Addr().String(), nonce, purpose)
	var stranger *StrangerError
	if !errors.As(err, &stranger) || !errors.Is(err, errUnproven) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v, want the stranger and that nobody listens now", err)
	}
}

// A listener that answered without the nonce is named in the error, even if it breaks off later
// calls because it ends.
func TestDialWhileSquatterEnds(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for calls := 0; ; calls++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			switch calls {
			case 0:
				_, _ = c.Write(append(newGreeting().encode(), make([]byte, 32)...))
				_, _ = io.Copy(io.Discard, c)
			case 3: // two calls were broken off
				cancel()
			}
			c.Close()
		}
	}()
	_, err := Dial(ctx, net.Dialer{}, "tcp", l.Addr().String(), nonce, purpose)
	if !errors.Is(err, errUnproven) || !strings.Contains(err.Error(), "the last attempt ended with") {
		t.Errorf("%v, want the one without the nonce, and how the last attempt ended", err)
	}
}
