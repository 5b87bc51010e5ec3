package collective

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// A squatter listens at rank 0's address, sends what a listener of another run would send, and
// records what it receives.
type squatter struct {
	net.Listener
	mu    sync.Mutex
	heard [][]byte
	calls chan struct{}
}

func squat(t *testing.T, l net.Listener) *squatter {
	s := &squatter{Listener: l, calls: make(chan struct{}, 1000)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Write(append([]byte("scalehs\n\x00\x01"), make([]byte, 64)...)) // greeting and proof, of zeros
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
				said, _ := io.ReadAll(c)
				s.mu.Lock()
				s.heard = append(s.heard, said)
				s.mu.Unlock()
				s.calls <- struct{}{}
			}()
		}
	}()
	return s
}

// If another process listens at rank 0's address, it receives nothing secret, and the error
// names it. When it stops, rank 0 is found.
func TestSquatter(t *testing.T) {
	places, l := worlds(t, 2)
	s := squat(t, l)
	o := Options{JoinTimeout: 3 * time.Second, Build: "v1.2.3"}
	_, err := Join(context.Background(), places[1], "the nonce", o)
	if want := fmt.Sprintf("rank 0 does not answer: the process listening at %s does not know this run's nonce; another program may hold the port", l.Addr()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err := Join(context.Background(), places[0], "the nonce", o); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("rank 0: %v, want that the address is in use", err)
	}
	<-s.calls
	s.mu.Lock()
	for _, said := range s.heard {
		// Greeting, and zeros where a proof would be.
		if len(said) > 42+32 || !bytes.Equal(said[42:], make([]byte, len(said)-42)) {
			t.Errorf("the squatter heard %q", said)
		}
	}
	s.mu.Unlock()

	o.JoinTimeout = 30 * time.Second
	for len(s.calls) > 0 {
		<-s.calls
	}
	joined := make(chan error)
	join := func(w world.World) {
		g, err := Join(context.Background(), w, "the nonce", o)
		if err == nil {
			err = g.Close()
		}
		joined <- err
	}
	go join(places[1])
	<-s.calls // rank 1 has met the squatter
	l.Close()
	go join(places[0])
	for range 2 {
		if err := <-joined; err != nil {
			t.Error(err)
		}
	}
}

// An overhearing listener passes the bytes of its first connection to an eavesdropper before
// rank 0 reads them.
type overhearing struct {
	net.Listener
	after int // bytes
	do    func(heard []byte)
}

type overheard struct {
	net.Conn
	l     *overhearing
	bytes []byte
	once  sync.Once
}

func (l *overhearing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &overheard{Conn: c, l: l}, nil
}

func (c *overheard) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes = append(c.bytes, b[:n]...)
	if len(c.bytes) >= c.l.after {
		c.once.Do(func() { c.l.do(c.bytes) })
	}
	return n, err
}

// An attacker records everything that ranks send to rank 0 and replays it: to rank 0 while
// another rank is still missing, and as rank 1 to rank 2 in the ring, together with hundreds
// of silent connections. The ranks still find each other and compute the right
// sum.
func TestReplayedHello(t *testing.T) {
	places, l := worlds(t, 3)
	const proven = 42 + 32 // greeting and proof
	var mu sync.Mutex
	said, rings := map[int][]byte{}, map[int]string{}
	var strangers []net.Conn
	call := func(address string, words []byte) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write(words)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		strangers = append(strangers, c)
	}
	tap := &overhearing{Listener: l, after: proven + helloBytes, do: func(heard []byte) {
		mu.Lock()
		defer mu.Unlock()
		h, err := readHello([helloBytes]byte(heard[proven:]), hello{size: 3, transport: TCP})
		if err != nil {
			return // one of the strangers below
		}
		if said[h.rank] != nil {
			t.Error("rank 0 reads what a stranger says after the handshake")
			return
		}
		said[h.rank], rings[h.rank] = bytes.Clone(heard), h.ring.String()
		if len(said) == 1 {
			for range 100 {
				call(l.Addr().String(), nil)
			}
			call(l.Addr().String(), heard)
			return
		}
		for range 100 {
			call(rings[2], nil)
			call(rings[2], said[1])
		}
	}}
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for r, w := range places {
		o := Options{JoinTimeout: 30 * time.Second, Transport: TCP}
		if r == 0 {
			o.Listener = tap
		}
		wg.Go(func() {
			g, err := Join(context.Background(), w, "nonce", o)
			if err == nil {
				v := []float32{1}
				if err = g.AllReduce(context.Background(), v); err == nil && v[0] != 3 {
					err = fmt.Errorf("the sum is %v, want 3", v)
				}
				g.Close()
			}
			errs[r] = err
		})
	}
	wg.Wait()
	noErrors(t, errs)
	if len(strangers) != 301 {
		t.Errorf("%d strangers have called, want 301", len(strangers))
	}
	for _, c := range strangers {
		// A caller that was not disconnected at once received a greeting and a proof.
		if told, _ := io.ReadAll(c); len(told) > proven {
			t.Errorf("a stranger was told %q", told[proven:])
		}
		c.Close()
	}
}

// failing is a listener whose first accepts fail.
type failing struct {
	net.Listener
	times int
}

func (l *failing) Accept() (net.Conn, error) {
	if l.times > 0 {
		l.times--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// If accepting connections fails for a while, all ranks still join; a lasting failure is reported.
func TestAcceptFails(t *testing.T) {
	for _, times := range []int{3, 1 << 30} {
		places, l := worlds(t, 2)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for r, w := range places {
			o := Options{JoinTimeout: 2 * time.Second}
			if times == 3 {
				o.JoinTimeout = 30 * time.Second
			}
			if r == 0 {
				o.Listener = &failing{l, times}
			}
			wg.Go(func() {
				var g *Group
				if g, errs[r] = Join(context.Background(), w, "nonce", o); g != nil {
					g.Close()
				}
			})
		}
		wg.Wait()
		if times == 3 {
			noErrors(t, errs)
		} else if errs[0] == nil || !strings.Contains(errs[0].Error(), "from rank 1;") || !strings.Contains(errs[0].Error(), "too many open files") {
			t.Errorf("%v, want that rank 1 is missing, and the reason", errs[0])
		}
	}
}
