// Package target starts services (server.go) and sends them requests. Each kind of service implements the
// connections that package loadtest sends over.
package target

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/prompts"
	"github.com/scalebench/scalebench/launcher/study"
)

// HTTP is a service that is queried over HTTP. Requests are distributed over the replicas by Routing, by default in
// turn. Each of the load generator's connections consists of one HTTP connection to every replica.
type HTTP struct {
	URLs        []string // of the replicas
	Bodies      [][]byte // sent in turn to each replica; nil: GET, else POST
	ContentType string   // of Bodies
	// Headers holds further headers by name.
	Headers map[string]string
	// Private holds headers that only these servers get. Errors do not show their values.
	Private map[string]string
	// Token is a bearer token that only these servers get; "" for none.
	Token string
	// Expect is text that a right answer contains; nil accepts any answer with a 2xx status.
	Expect []byte
	// Judge returns an error if the answer to one of the Bodies is wrong; nil accepts every answer. Several
	// goroutines may call it, and it may keep the answer.
	Judge func(request int, r *fasthttp.Response) error
	// Streams is set if answers are streamed by OpenAI's protocol ("stream": true). Judge is then not used.
	Streams bool
	// Prompts makes the bodies, instead of Bodies; nil for none.
	Prompts *prompts.Source
	// Routing is a value of study.Serve.Routing; "" is study.RoundRobin.
	Routing string

	fewConnections bool          // the servers serve only a few connections at once, as Warm found
	turn           atomic.Uint64 // counts requests, or sessions of Prompts
	routed         atomic.Uint64 // counts requests of Prompts
	once           sync.Once
	choosing       sync.Mutex
	inFlight       []atomic.Int64 // requests in flight, by replica, for study.LeastBusy; made by the first Dial
}

// posts reports whether requests have a body.
func (h *HTTP) posts() bool { return len(h.Bodies) > 0 || h.Prompts != nil }

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

// Dial connects to every replica, unless that would keep other connections waiting.
func (h *HTTP) Dial() (loadtest.Sender, error) {
	h.once.Do(func() { h.inFlight = make([]atomic.Int64, len(h.URLs)) })
	s := &sender{of: h}
	for _, text := range h.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		r := newReplica(u, h)
		r.dial = func() (net.Conn, error) { return connect(u) }
		if !h.fewConnections {
			if err := r.connect(); err != nil {
				_ = s.Close()
				return nil, err
			}
		}
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

// InputTokens sends the first request and returns the number of input tokens that the service counts; 0 if it
// does not count them.
func (h *HTTP) InputTokens(deadline time.Time) (int, error) {
	connection, err := h.Dial()
	if err != nil {
		return 0, err
	}
	s := connection.(*sender)
	defer s.Close()
	if err := s.Send(deadline); err != nil {
		return 0, err
	}
	if h.Streams {
		return s.asked.last.Input, nil
	}
	var answer struct {
		Usage struct {
			Input int `json:"prompt_tokens"`
		}
	}
	_ = json.Unmarshal(s.asked.response.Body(), &answer) // 0 if it is another protocol's
	return answer.Usage.Input, nil
}

// Like returns the same requests to other servers, without checking their answers. It leaves out the token and
// the private headers.
func (h *HTTP) Like(servers ...string) *HTTP {
	like := &HTTP{URLs: servers, Bodies: h.Bodies, ContentType: h.ContentType, Headers: h.Headers, Streams: h.Streams}
	if h.Prompts != nil {
		body, _ := h.Prompts.Session().Ask()
		like.Bodies = [][]byte{body}
	}
	return like
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
	asked    *replica         // replica asked last
	turn     int              // index of the replica
	session  *prompts.Session // current session of Prompts; nil before the first request
	home     int              // replica of the session, for study.Sticky
}

// Send queries a replica.
func (s *sender) Send(deadline time.Time) error {
	var turn, request int
	if h := s.of; h.Prompts == nil {
		turn, request = next(&h.turn, len(s.replicas), len(h.Bodies))
	}
	body, err := s.body(request)
	if err != nil {
		return err
	}
	s.turn = s.route(turn)
	s.asked = s.replicas[s.turn]
	if s.of.Routing == study.LeastBusy && len(s.replicas) > 1 {
		defer s.of.inFlight[s.turn].Add(-1)
	}
	err = s.asked.send(deadline, s.of, call{request, body})
	if err == nil && s.session != nil {
		s.session.Answer(s.asked.text())
	}
	return s.of.redacted(err)
}

// shortestSecret is the length from which the value of a private header is left out of errors.
const shortestSecret = 6

// redacted returns the error without values of private headers, which a server may repeat.
func (h *HTTP) redacted(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, value := range h.Private {
		value = strings.TrimPrefix(value, "Bearer ")
		if len(value) >= shortestSecret {
			text = strings.ReplaceAll(text, value, "[secret]")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// body returns the body of the next request, which may begin a session; nil if it is empty.
func (s *sender) body(request int) ([]byte, error) {
	switch h := s.of; {
	case h.Prompts == nil && len(h.Bodies) == 0:
		return nil, nil
	case h.Prompts == nil:
		return h.Bodies[request], nil
	}
	if s.session != nil {
		if body, ok := s.session.Ask(); ok {
			return body, nil
		}
	}
	s.session, s.home = s.of.Prompts.Session(), int(s.of.turn.Add(1)-1)%len(s.replicas)
	body, ok := s.session.Ask()
	if !ok {
		return nil, errors.New("a session of workload.prompts has no turn")
	}
	return body, nil
}

// More implements loadtest.Converser.
func (s *sender) More() (think time.Duration, ok bool) {
	if s.session == nil {
		return 0, false
	}
	return s.session.More()
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

// Reconnected implements loadtest.Reconnecter.
func (s *sender) Reconnected() bool { return s.asked != nil && s.asked.anew }

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
		err = errors.Join(err, r.close())
	}
	return err
}
