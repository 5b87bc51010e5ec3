package target

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// A replica is a connection to one server. It does its own reading and writing because fasthttp's clients
// resend some requests if a connection is lost. A server may close a connection after an answer at any time
// (RFC 9112, section 9.5). The next request then uses a new connection, which counts in its latency. A request
// is only sent again if no byte of an answer has arrived.
type replica struct {
	dial   func() (net.Conn, error) // opens a new connection to the server; nil: not possible
	used   bool                     // an answer came over it
	closed bool                     // the server announced that it closes the connection
	anew   bool                     // the last request needed a new connection

	connection *metered
	in         *bufio.Reader
	out        *bufio.Writer
	request    fasthttp.Request
	response   fasthttp.Response
	last       loadtest.Stream // of the last right answer, if streamed
	said       []byte          // text of the last right answer, if streamed
}

// A call is one request.
type call struct {
	number int    // index of HTTP.Bodies
	body   []byte // nil for GET
}

// text returns the text of the last right answer of a language model.
func (r *replica) text() string {
	if r.said != nil {
		return string(r.said)
	}
	var answer struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
		}
	}
	if json.Unmarshal(r.response.Body(), &answer) != nil || len(answer.Choices) == 0 {
		return ""
	}
	return answer.Choices[0].Text + answer.Choices[0].Message.Content
}

// newReplica returns a replica without a connection.
func newReplica(u *url.URL, h *HTTP) *replica {
	r := &replica{closed: true, in: bufio.NewReaderSize(nil, 64<<10), out: bufio.NewWriterSize(nil, 64<<10)}
	r.request.SetRequestURI(u.RequestURI()) // the only form that all servers accept
	r.request.Header.SetHost(u.Host)
	r.request.Header.SetUserAgent("scalebench")
	for name, value := range h.Headers {
		r.request.Header.Set(name, value)
	}
	for name, value := range h.Private {
		r.request.Header.Set(name, value)
	}
	if h.Token != "" {
		r.request.Header.Set("Authorization", "Bearer "+h.Token)
	}
	if h.fewConnections {
		r.request.SetConnectionClose()
	}
	if h.posts() {
		r.request.Header.SetMethod(fasthttp.MethodPost)
		r.request.Header.SetContentType(h.ContentType)
	}
	return r
}

// send sends one of the requests, over a new connection if the server has closed the old one. After an error
// the replica is unusable.
func (r *replica) send(deadline time.Time, h *HTTP, asked call) error {
	sent := time.Now()
	r.anew = false
	if r.closed {
		if err := r.reconnect(); err != nil {
			return err
		}
	}
	err := r.exchange(sent, deadline, h, asked)
	if err != nil && r.used && !r.anew && r.dial != nil && r.connection.read.Load() == 0 && time.Now().Before(deadline) {
		if err := r.reconnect(); err != nil {
			return err
		}
		err = r.exchange(sent, deadline, h, asked)
	}
	r.used = r.used || err == nil
	if h.fewConnections {
		r.closed, r.anew = true, false
	}
	if r.closed { // some servers wait for that before they serve another connection
		_ = r.connection.Close() // the answer is complete: the error is not of interest
	}
	return err
}

// reconnect replaces a connection that the server has closed.
func (r *replica) reconnect() error {
	if r.dial == nil {
		return errors.New("the service has closed the connection")
	}
	if err := r.connect(); err != nil {
		return fmt.Errorf("no new connection: %w", err)
	}
	r.anew = true
	return nil
}

// connect opens a new connection.
func (r *replica) connect() error {
	c, err := r.dial()
	if err != nil {
		return err
	}
	_ = r.close() // unusable: the error is not of interest
	r.use(c)
	return nil
}

// use makes c the replica's connection.
func (r *replica) use(c net.Conn) {
	r.connection = newMetered(c, answers)
	r.in.Reset(r.connection)
	r.out.Reset(r.connection)
	r.used, r.closed = false, false
}

// close closes the connection, if there is one.
func (r *replica) close() error {
	if r.connection == nil {
		return nil
	}
	return r.connection.Close()
}

// exchange writes one of the requests and reads the answer. After an error the connection is unusable.
func (r *replica) exchange(sent, deadline time.Time, h *HTTP, asked call) error {
	if asked.body != nil {
		r.request.SetBodyRaw(asked.body)
	}
	if err := r.connection.SetDeadline(deadline); err != nil {
		return err
	}
	r.connection.begin()
	err := r.request.Write(r.out)
	if err == nil {
		err = r.out.Flush()
	}
	if err != nil {
		return because("sending", err)
	}
	if h.Streams {
		return r.stream(sent, h)
	}
	if err := r.read(); err != nil {
		return because("no answer", err)
	}
	r.closed = r.response.ConnectionClose()
	switch status := r.response.StatusCode(); {
	case status < 200 || status > 299:
		return fmt.Errorf("status %d: %.200q", status, r.response.Body())
	case h.Expect != nil && !bytes.Contains(r.response.Body(), h.Expect):
		return fmt.Errorf("the answer does not contain the expected text: %.200q", r.response.Body())
	case h.Judge != nil:
		return h.Judge(asked.number, &r.response)
	}
	return nil
}

// mostInterim is the maximum number of interim answers (status 1xx) before an answer.
const mostInterim = 16

// read reads an answer. It reserves the announced length first, because fasthttp allocates that much before any
// of it has arrived.
func (r *replica) read() error {
	r.response.Reset()
	status := 0
	for n := 0; status < 200; n++ {
		if n > mostInterim {
			return fmt.Errorf("over %d interim answers", mostInterim)
		}
		if err := r.response.Header.Read(r.in); err != nil {
			return err
		}
		if status = r.response.StatusCode(); status < 100 || status == fasthttp.StatusSwitchingProtocols {
			break
		}
	}
	if status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified {
		return nil
	}
	length := r.response.Header.ContentLength()
	if length > meterStep {
		if err := r.connection.reserve(int64(length)); err != nil {
			return err
		}
	}
	if err := r.response.ReadBody(r.in, int(r.connection.budget.each)); err != nil {
		return err
	}
	if length == -1 { // chunked
		return r.response.Header.ReadTrailer(r.in)
	}
	return nil
}

// because adds where an error occurred. It maps timeouts to os.ErrDeadlineExceeded, which fasthttp replaces by
// its own error.
func because(at string, err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() || errors.Is(err, fasthttp.ErrTimeout) {
		err = os.ErrDeadlineExceeded
	}
	return fmt.Errorf("%s: %w", at, err)
}
