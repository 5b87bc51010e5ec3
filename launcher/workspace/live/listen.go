package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/workspace"
)

// Listen opens the address of a server: HOST:PORT, or unix:PATH for a socket that only this user can
// open.
func Listen(address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		host, _, err := net.SplitHostPort(address)
		if err != nil || host == "" {
			return nil, &workspace.Error{Err: fmt.Errorf("--listen %q is not an address", address), Hint: "Write HOST:PORT, such as 127.0.0.1:8080, or unix:PATH. Port 0 chooses a free one."}
		}
		l, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &workspace.Error{Err: err, Hint: "Choose another port; port 0 chooses a free one."}
		}
		return l, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	umask := syscall.Umask(0o177) // the socket gets mode 0600 when it is created, not later
	defer syscall.Umask(umask)
	return net.Listen("unix", path)
}

// removeStale removes a socket of this user on which nobody listens.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Type() != fs.ModeSocket || !ok || int(owner.Uid) != os.Geteuid() {
		return &workspace.Error{Err: fmt.Errorf("%s exists and is not a socket of yours", path), Hint: "Choose another path."}
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return &workspace.Error{Err: fmt.Errorf("another program listens on %s", path), Hint: "End it, or choose another path."}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// Serve answers requests until the context ends.
func (s *Site) Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := newServer(h)
	server.BaseContext = func(net.Listener) context.Context { return ctx } // ends the event streams
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer s.close()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		server.Close()
	}
	return context.Cause(ctx)
}

// Loopback reports whether only this machine can reach a listener.
func Loopback(l net.Listener) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	return !ok || at.IP.IsLoopback()
}
