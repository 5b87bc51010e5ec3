// Package target starts services (server.go) and sends them requests. Each kind of service implements the
// connections that package loadtest sends over.
package target

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// HTTP is a service that is queried over HTTP. Requests go to the replicas in turn; every connection of the
// load generator has one to each replica.
type HTTP struct {
	URLs        []string // of the replicas
	Bodies      [][]byte // sent in turn to each replica; nil: GET, else POST
	ContentType string   // of Bodies
	// Headers holds further headers by name.
	Headers map[string]string
	// Token is a bearer token that only these servers get; "" for none.
	Token string
	// Expect is text that a right answer contains; nil accepts any answer with a 2xx status.
	Expect []byte
	// Judge returns an error if the answer to one of the Bodies is wrong; nil accepts every answer. Several
	// goroutines may call it, and it may keep the answer.
	Judge func(request int, r *fasthttp.Response) error
	// Streams is set if answers are streamed by OpenAI's protocol ("stream": true). Judge is then not used.
	Streams bool

	turn atomic.Uint64
}

// Check reports an invalid URL.
func (h *HTTP) Check() error {
	if len(h.URLs) == 0 {
		return errors.New("no URL")
	}
	for _, text := range h.URLs {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return err
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			return fmt.Errorf("%q is not the URL of a service; one is http://HOST:PORT/PATH", text)
		case u.User != nil:
			return fmt.Errorf("the URL of %s contains a password, which would appear in records", u.Host)
		}
	}
	return nil
}

// Dial connects to every replica.
func (h *HTTP) Dial() (loadtest.Sender, error) {
	s := &sender{of: h}
	for _, text := range h.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		connection, err := connect(u)
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		r := newReplica(connection, u, h)
		r.dial = func() (net.Conn, error) { return connect(u) }
		s.replicas = append(s.replicas, r)
	}
	return s, nil
}

// connect opens a connection to the server of a URL.
func connect(u *url.URL) (net.Conn, error) {
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	connection, err := net.DialTimeout("tcp", address, dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", address, err)
	}
	if u.Scheme != "https" {
		return connection, nil
	}
	secured := tls.Client(connection, trusting(u.Hostname()))
	if err := secured.Handshake(); err != nil {
		_ = connection.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return secured, nil
}

// Warm sends one request to each replica and returns the length of the last answer: the bytes of its body, or
// the number of texts of a stream. It ignores errors: the requests that follow report them.
func (h *HTTP) Warm(deadline time.Time) (answer int) {
	for _, at := range h.URLs {
		one := h.Like(at)
		one.Token = h.Token
		connection, err := one.Dial()
		if err != nil {
			continue
		}
		s := connection.(*sender)
		if err := s.Send(deadline); err == nil && h.Streams {
			answer = len(s.asked.last.Gaps) + 1
		} else if !h.Streams {
			answer = len(s.asked.response.Body())
		}
		_ = s.Close() // unusable: the error is not of interest
	}
	return answer
}

// Like returns the same requests to other servers, without checking their answers. It leaves out the token.
func (h *HTTP) Like(servers ...string) *HTTP {
	return &HTTP{URLs: servers, Bodies: h.Bodies, ContentType: h.ContentType, Headers: h.Headers, Streams: h.Streams}
}

// trusting returns the TLS configuration for a server of that name ("" means the name dialled). It trusts the
// system's certificate authorities, or those in the file SSL_CERT_FILE.
func trusting(server string) *tls.Config {
	return &tls.Config{ServerName: server, MinVersion: tls.VersionTLS12}
}

const dialTimeout = 10 * time.Second

// A sender holds one connection to each replica.
type sender struct {
	of       *HTTP
	replicas []*replica
	asked    *replica // replica asked last
	turn     int      // its index
}

// Send queries the next replica.
func (s *sender) Send(deadline time.Time) error {
	turn, request := next(&s.of.turn, len(s.replicas), len(s.of.Bodies))
	s.turn, s.asked = turn, s.replicas[turn]
	return s.asked.send(deadline, s.of, request)
}

// next returns the replica and the request whose turn it is. Every replica gets each request.
func next(turn *atomic.Uint64, replicas, requests int) (replica, request int) {
	if replicas == 1 && requests < 2 {
		return 0, 0
	}
	n := turn.Add(1) - 1
	return int(n % uint64(replicas)), int(n / uint64(replicas) % uint64(max(requests, 1)))
}

// Asked implements loadtest.Chooser.
func (s *sender) Asked() int { return among(s.turn, len(s.replicas)) }

// among returns the index of a replica as loadtest.Chooser reports it: -1 if there is only one.
func among(turn, replicas int) int {
	if replicas == 1 {
		return -1
	}
	return turn
}

// Anew implements loadtest.Reconnecter.
func (s *sender) Anew() bool { return s.asked != nil && s.asked.anew }

// Streamed implements loadtest.Streamer.
func (s *sender) Streamed() (loadtest.Stream, bool) {
	if !s.of.Streams || s.asked == nil {
		return loadtest.Stream{}, false
	}
	return s.asked.last, true
}

func (s *sender) Close() error {
	var err error
	for _, r := range s.replicas {
		err = errors.Join(err, r.connection.Close())
	}
	return err
}
