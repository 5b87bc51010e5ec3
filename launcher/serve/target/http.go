// Package target knows how to start (server.go) and ask services: each kind of service
// makes connections that package loadtest sends requests over. What models are asked
// is read from .npy files (npy.go).
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

// HTTP is a service that answers requests. Replicas are asked in turns:
// every connection has one of its own to each of them.
type HTTP struct {
	URLs        []string // of the replicas
	Bodies      [][]byte // sent in turn to each replica; nil: GET, else POST
	ContentType string   // of the bodies
	// Headers are further ones, by name.
	Headers map[string]string
	// Token is a bearer token for these servers alone; "": none.
	Token string
	// Expect is what a right answer holds; nil: any with a status of 2xx is right.
	Expect []byte
	// Judge says what is wrong with an answer of that kind to one of the bodies; nil:
	// nothing. Several goroutines call it, and the answer is the caller's.
	Judge func(request int, r *fasthttp.Response) error
	// Streams says that answers come text by text, by OpenAI's protocol
	// ("stream": true). Judge is not used then.
	Streams bool

	turn atomic.Uint64
}

// Check says what is wrong with the addresses.
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

// connect makes a connection to the server of a URL.
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

// Warm asks each replica once and says how long the last answer was: the bytes of its
// body, or its texts where it comes text by text. What is wrong, those tell who ask
// in earnest.
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
		_ = s.Close() // of no more use
	}
	return answer
}

// Like is the same request to other servers, of whose answers any will do. They do not
// get the token.
func (h *HTTP) Like(servers ...string) *HTTP {
	return &HTTP{URLs: servers, Bodies: h.Bodies, ContentType: h.ContentType, Headers: h.Headers, Streams: h.Streams}
}

// trusting is TLS with a server of that name ("": the one that is dialled), which the
// system's authorities vouch for, or those in the file SSL_CERT_FILE.
func trusting(server string) *tls.Config {
	return &tls.Config{ServerName: server, MinVersion: tls.VersionTLS12}
}

const dialTimeout = 10 * time.Second

// sender is one connection to each replica.
type sender struct {
	of       *HTTP
	replicas []*replica
	asked    *replica // last
	turn     int      // whose that was
}

// Send asks the replica whose turn it is.
func (s *sender) Send(deadline time.Time) error {
	turn, request := next(&s.of.turn, len(s.replicas), len(s.of.Bodies))
	s.turn, s.asked = turn, s.replicas[turn]
	return s.asked.send(deadline, s.of, request)
}

// next is which of so many replicas has its turn, and with which of so many requests:
// every replica gets each of them.
func next(turn *atomic.Uint64, replicas, requests int) (replica, request int) {
	if replicas == 1 && requests < 2 {
		return 0, 0
	}
	n := turn.Add(1) - 1
	return int(n % uint64(replicas)), int(n / uint64(replicas) % uint64(max(requests, 1)))
}

// Asked is the replica that was asked last.
func (s *sender) Asked() int { return among(s.turn, len(s.replicas)) }

// among is loadtest.Chooser's word for one of so many replicas.
func among(turn, replicas int) int {
	if replicas == 1 {
		return -1
	}
	return turn
}

// Anew reports whether the last request needed a new connection, since the server had
// closed the one before.
func (s *sender) Anew() bool { return s.asked != nil && s.asked.anew }

// Streamed is the times of the last answer.
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
