package target

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// replica is a connection to one server. It is written to and read by hand of
// fasthttp's clients, which send some requests again when a connection is lost. A server
// may close a connection that it has answered on, at any time (RFC 9112, section 9.5):
// the next request then goes over a new one, on the clock of its latency. It is sent
// again only if not one byte of an answer came.
type replica struct {
	dial   func() (net.Conn, error) // a new connection to the server; nil: there is none
	used   bool                     // it was answered on
	closed bool                     // the server has said that it closes it
	anew   bool                     // the last request took a new one

	connection *metered
	in         *bufio.Reader
	out        *bufio.Writer
	request    fasthttp.Request
	response   fasthttp.Response
	last       loadtest.Stream // of the last right answer that came text by text
}

func newReplica(c net.Conn, u *url.URL, h *HTTP) *replica {
	connection := newMetered(c, answers)
	r := &replica{connection: connection, in: bufio.NewReaderSize(connection, 64<<10), out: bufio.NewWriterSize(connection, 64<<10)}
	r.request.SetRequestURI(u.RequestURI()) // some servers know no other form
	r.request.Header.SetHost(u.Host)
	r.request.Header.SetUserAgent("scalebench")
	for name, value := range h.Headers {
		r.request.Header.Set(name, value)
	}
	if h.Token != "" {
		r.request.Header.Set("Authorization", "Bearer "+h.Token)
	}
	if len(h.Bodies) > 0 {
		r.request.Header.SetMethod(fasthttp.MethodPost)
		r.request.Header.SetContentType(h.ContentType)
	}
	return r
}

// send sends one of the requests, over a new connection if the server has closed the one
// that there is. On any error the replica is of no more use.
func (r *replica) send(deadline time.Time, h *HTTP, request int) error {
	sent := time.Now()
	r.anew = false
	if r.closed {
		if err := r.connect(); err != nil {
			return err
		}
	}
	err := r.exchange(sent, deadline, h, request)
	if err != nil && r.used && !r.anew && r.dial != nil && r.connection.read.Load() == 0 && time.Now().Before(deadline) {
		if err := r.connect(); err != nil {
			return err
		}
		err = r.exchange(sent, deadline, h, request)
	}
	r.used = r.used || err == nil
	return err
}

// connect makes a new connection in place of one that the server has closed.
func (r *replica) connect() error {
	if r.dial == nil {
		return errors.New("the service has closed the connection")
	}
	c, err := r.dial()
	if err != nil {
		return fmt.Errorf("the service has closed the connection, and takes no new one: %w", err)
	}
	_ = r.connection.Close() // of no more use
	r.connection = newMetered(c, answers)
	r.in.Reset(r.connection)
	r.out.Reset(r.connection)
	r.used, r.closed, r.anew = false, false, true
	return nil
}

// exchange writes one of the requests and reads the answer; on any error the connection
// is of no more use.
func (r *replica) exchange(sent, deadline time.Time, h *HTTP, request int) error {
	if len(h.Bodies) > 0 {
		r.request.SetBodyRaw(h.Bodies[request])
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
		return h.Judge(request, &r.response)
	}
	return nil
}

// mostInterim bounds the interim answers (status 1xx) before an answer.
const mostInterim = 16

// read reads an answer. It reserves the announced length first, because fasthttp
// allocates that much before any of it has come.
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
	if length == -1 { // in chunks
		return r.response.Header.ReadTrailer(r.in)
	}
	return nil
}

// because says at what an error came; one that the deadline made is os.ErrDeadlineExceeded,
// which fasthttp replaces by an error of its own.
func because(at string, err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() || errors.Is(err, fasthttp.ErrTimeout) {
		err = os.ErrDeadlineExceeded
	}
	return fmt.Errorf("%s: %w", at, err)
}
