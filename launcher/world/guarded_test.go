package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Many more strangers of every kind than the listener's limit do not prevent a rank of the run from
// connecting, and the listener never holds more connections than its limit.
func TestGuardedListenerAmongStrangers(t *testing.T) {
	l := listen(t)
	d, entered := serve(t, l, nonce, purpose)
	for i := range 3 * maxUnproven {
		c := connect(t, l)
		_, _ = c.Write([]byte([]string{"", "s", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 10_000), string(newGreeting().encode())}[i%5]))
	}
	flood := make(chan struct{})
	for range 4 { // more come, as fast as they can, and stay for a while
		go func() {
			var held []net.Conn
			defer func() {
				for _, c := range held {
					c.Close()
				}
			}()
			for {
				select {
				case <-flood:
					return
				default:
				}
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					return
				}
				if held = append(held, c); len(held) > 100 {
					held[0].Close()
					held = held[1:]
				}
			}
		}()
	}
	defer close(flood)
	for range 10 {
		c, err := Dial(t.Context(), net.Dialer{}, "tcp", l.Addr().String(), nonce, purpose)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for range 10 {
		(<-entered).Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unproven) > maxUnproven || len(d.noted) > maxNoted {
		t.Errorf("%d strangers are held, %d noted", len(d.unproven), len(d.noted))
	}
}

// A caller that sends one byte at a time gets no more time than a silent one.
func TestGuardedListenerAndSlowStranger(t *testing.T) {
	t.Parallel()
	l := listen(t)
	serve(t, l, nonce, purpose)
	c := connect(t, l)
	begin := time.Now()
	for _, b := range newGreeting().encode() {
		if _, err := c.Write([]byte{b}); err != nil {
			return // the listener closed the connection
		}
		time.Sleep(patience / 10)
	}
	t.Errorf("a stranger was heard for %v, want %v", time.Since(begin), patience)
}

// floodVariable makes the test program a guarded listener with few file descriptors.
const floodVariable = "HANDSHAKE_TEST_FLOOD"

func TestMain(m *testing.M) {
	if os.Getenv(floodVariable) == "" {
		os.Exit(m.Run())
	}
	if err := beFlooded(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func beFlooded() error {
	few := syscall.Rlimit{Cur: 32, Max: 32}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	d := NewGuardedListener(l, nonce, purpose)
	d.Serve(ctx, func(c net.Conn) error {
		_, err := c.Write([]byte("in"))
		cancel()
		return errors.Join(err, c.Close())
	})
	if said := d.Trouble(); !strings.Contains(said, "accepting connections failed") || !strings.Contains(said, "too many open files") {
		return fmt.Errorf("it did not run out of descriptors: %q", said)
	}
	return nil
}

// A guarded listener whose process is out of file descriptors recovers, admits the next rank, and
// reports the cause.
func TestGuardedListenerOutOfDescriptors(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), floodVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	c, err := Dial(t.Context(), net.Dialer{}, "tcp", address, nonce, purpose)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	said := make([]byte, 200)
	n, _ := out.Read(said) // an error message, or nothing
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said[:n])
	}
}

// broken is a listener whose Accept always fails.
type broken struct{ net.Listener }

func (broken) Accept() (net.Conn, error) { return nil, syscall.EMFILE }

// Serve on a listener that always fails ends with its context.
func TestGuardedListenerWithoutCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	l := listen(t)
	NewGuardedListener(broken{l}, nonce, purpose).Serve(ctx, func(net.Conn) error { return nil })
	if ctx.Err() == nil {
		t.Error("Serve returned before it was told to end")
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}
