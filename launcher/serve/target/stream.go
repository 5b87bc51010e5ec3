package target

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// mostLine is the maximum length of a line in a stream of answers: 1 MiB.
const mostLine = 1 << 20

// A chunk is an event of /v1/completions or /v1/chat/completions.
type chunk struct {
	Choices []struct {
		Text   string
		Delta  delta
		Finish string `json:"finish_reason"`
	}
	Usage *struct {
		Input  int `json:"prompt_tokens"`
		Tokens int `json:"completion_tokens"`
		Of     struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Made struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	Error json.RawMessage
}

// A delta is the part that one event adds to a chat answer. Servers name the reasoning in one of two ways (DeepSeek's
// and OpenRouter's).
type delta struct {
	Content          string
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string
	ToolCalls        []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// reasoning returns the text of the model's reasoning.
func (d delta) reasoning() string { return d.ReasoningContent + d.Reasoning }

// output returns the text of the answer itself, including tool calls.
func (d delta) output() string {
	text := d.Content
	for _, call := range d.ToolCalls {
		text += call.Function.Name + call.Function.Arguments
	}
	return text
}

// stream reads the answer to a request sent at the given time.
func (r *replica) stream(sent time.Time, h *HTTP) error {
	r.response.Reset()
	if err := r.response.Header.Read(r.in); err != nil {
		return because("no answer", err)
	}
	kind := string(r.response.Header.ContentType())
	status, length := r.response.StatusCode(), r.response.Header.ContentLength()
	if status < 200 || status > 299 || !strings.HasPrefix(kind, "text/event-stream") {
		if err := r.response.ReadBody(r.in, mostLine); err != nil {
			return because(fmt.Sprintf("status %d", status), err)
		}
		if status < 200 || status > 299 {
			return fmt.Errorf("status %d: %.200q", status, r.response.Body())
		}
		return fmt.Errorf(`the answer is %q, not a stream; the request needs "stream": true: %.200q`, kind, r.response.Body())
	}
	r.closed = r.response.ConnectionClose()
	body := io.LimitReader(r.in, int64(length))
	switch {
	case length == -1:
		body = &chunks{in: r.in}
	case length < -1: // until the connection closes
		body, r.closed = r.in, true
	}
	s, text, err := readStream(bufio.NewReaderSize(body, 4<<10), sent)
	if err != nil {
		return because("the stream", err)
	}
	if h.Expect != nil && !bytes.Contains(text, h.Expect) {
		return fmt.Errorf("the answer does not contain the expected text: %.200q", text)
	}
	r.last, r.said = s, text
	return nil
}

// chunks reads a chunked body (RFC 9112, section 7.1). The standard library's reader holds back the data of one
// chunk until the whole next chunk is there, if that has begun, which would make an event late.
type chunks struct {
	in    *bufio.Reader
	begun bool
	left  int // bytes left of the current chunk
	ended bool
}

func (c *chunks) Read(b []byte) (int, error) {
	if c.left == 0 && !c.ended {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.in.Read(b[:min(len(b), c.left)])
	if c.left -= n; err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads the header of the next chunk, or the trailer after the last one.
func (c *chunks) next() error {
	line, err := c.line()
	if err == nil && c.begun { // the line break that ends the previous chunk
		if len(line) > 0 {
			return errors.New("a chunk is longer than it says")
		}
		line, err = c.line()
	}
	if err != nil {
		return err
	}
	text, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 16, 31)
	if err != nil {
		return fmt.Errorf("%.40q is not the length of a chunk", text)
	}
	c.begun, c.left, c.ended = true, int(size), size == 0
	for c.ended && len(line) > 0 { // trailer fields may follow, then an empty line
		if line, err = c.line(); err != nil {
			return err
		}
	}
	return nil
}

func (c *chunks) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return bytes.TrimRight(line, "\r\n"), err
}

var (
	errCutOff  = errors.New("it ends without [DONE]")
	errTooLong = fmt.Errorf("an event of over %d bytes", mostLine)
)

// An eventReader splits a stream into server-sent events.
type eventReader struct {
	in         *bufio.Reader
	line, data []byte // reused
}

// next returns the data of the next event, which are valid until the next call. The error
// is io.EOF at the end of the stream, unless that cuts off a line.
func (r *eventReader) next() ([]byte, error) {
	r.data = r.data[:0]
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 && len(r.data) > 0 {
			return r.data, nil
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(r.data) > 0 {
				r.data = append(r.data, '\n')
			}
			r.data = append(r.data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		if len(r.data) > mostLine {
			return nil, errTooLong
		}
	}
}

func (r *eventReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case len(r.line) > mostLine:
			return nil, errTooLong
		case err == nil:
			return bytes.TrimRight(r.line, "\r\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(r.line) > 0:
			return nil, errCutOff
		default:
			return nil, err
		}
	}
}

// readStream reads an answer, as server-sent events, to its end. It returns the text too.
func readStream(in *bufio.Reader, sent time.Time) (loadtest.Stream, []byte, error) {
	events := eventReader{in: in}
	var a transcript
	for done := false; ; {
		data, err := events.next()
		at := time.Since(sent)
		switch {
		case errors.Is(err, io.EOF) && done:
			err = a.check()
			return a.Stream, a.text, err
		case errors.Is(err, io.EOF):
			err = errCutOff
		case err == nil && done:
			err = errors.New("an event follows [DONE]")
		case err == nil && string(data) == "[DONE]":
			done = true
		case err == nil:
			err = a.add(data, at)
		}
		if err != nil {
			return a.Stream, nil, err
		}
	}
}

// A transcript collects the events of a stream.
type transcript struct {
	loadtest.Stream
	text   []byte
	texts  int    // events with text
	finish string // why the service ended the answer
}

// add decodes an event that arrived at a time after the request.
func (a *transcript) add(data []byte, at time.Duration) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("an event is not JSON of OpenAI's protocol: %w: %.200q", err, data)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return fmt.Errorf("it breaks off with an error: %.200s", c.Error)
	}
	if len(c.Choices) > 1 {
		return errors.New(`several answers at once; ask for one ("n": 1)`)
	}
	if u := c.Usage; u != nil {
		a.Tokens, a.Counted = u.Tokens, true
		a.Input, a.Cached, a.Reasoning = u.Input, u.Of.Cached, u.Made.Reasoning
	}
	for _, choice := range c.Choices {
		a.finish = cmp.Or(choice.Finish, a.finish)
		a.addText(choice.Delta.reasoning(), choice.Text+choice.Delta.output(), at)
	}
	return nil
}

// addText adds an event's reasoning and output; one without either is not counted.
func (a *transcript) addText(reasoning, output string, at time.Duration) {
	if reasoning == "" && output == "" {
		return
	}
	if output != "" && a.FirstOutput == 0 {
		a.FirstOutput = at
	}
	if a.texts++; a.texts == 1 {
		a.First = at
	} else {
		a.Gaps = append(a.Gaps, at-a.Last)
	}
	a.Last, a.text = at, append(a.text, output...)
}

// check completes the token count of an answer that has ended.
func (a *transcript) check() error {
	switch {
	case a.texts == 0:
		return errors.New("it has no text")
	case a.finish == "":
		return errors.New("it does not say why it ended (finish_reason)")
	case !a.Counted:
		a.Tokens = a.texts
	case a.Tokens < 1:
		return fmt.Errorf("the answer has text, but the service counts %d tokens", a.Tokens)
	}
	return nil
}
