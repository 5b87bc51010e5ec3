package target

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// mostLine bounds a line of a stream: 1 MiB.
const mostLine = 1 << 20

// chunk is an event of /v1/completions, or of /v1/chat/completions.
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

// delta is what one event of a chat adds. Servers name the reasoning of a model in one
// of two ways (DeepSeek's and OpenRouter's).
type delta struct {
	Content          string
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string
	ToolCalls        []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// reasoning is what the model thinks before it answers.
func (d delta) reasoning() string { return d.ReasoningContent + d.Reasoning }

// output is what the model answers: text, or the calls of tools.
func (d delta) output() string {
	text := d.Content
	for _, call := range d.ToolCalls {
		text += call.Function.Name + call.Function.Arguments
	}
	return text
}

// stream reads an answer to a request that was sent at a time.
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
	case length < -1: // to the end of the connection
		body, r.closed = r.in, true
	}
	s, text, err := readStream(bufio.NewReaderSize(body, 4<<10), sent)
	if err != nil {
		return because("the stream", err)
	}
	if h.Expect != nil && !bytes.Contains(text, h.Expect) {
		return fmt.Errorf("the answer does not contain the expected text: %.200q", text)
	}
	r.last = s
	return nil
}

// chunks reads a body that comes in chunks (RFC 9112, section 7.1). The standard
// library's reader holds back what it has of one chunk until all of the next is there,
// if that has begun, so that an event would be late.
type chunks struct {
	in    *bufio.Reader
	begun bool
	left  int // of the chunk
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

// next goes on to a chunk, or behind the last one and what follows it.
func (c *chunks) next() error {
	line, err := c.line()
	if err == nil && c.begun { // that was the end of the chunk before
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
	for c.ended && len(line) > 0 { // fields may follow, and an empty line
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

var errCutOff = errors.New("it ends without [DONE]")

// readStream reads server-sent events to the end.
func readStream(in *bufio.Reader, sent time.Time) (s loadtest.Stream, text []byte, err error) {
	var data, line []byte
	texts, finished, done := 0, "", false
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > mostLine || len(data) > mostLine:
			return s, nil, fmt.Errorf("an event of over %d bytes", mostLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && done && len(line) == 0:
			return whole(s, texts, finished, text)
		case errors.Is(err, io.EOF):
			return s, nil, errCutOff
		case err != nil:
			return s, nil, err
		}
		at := time.Since(sent) // of the event's last line that is not empty
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		ends := len(line) == 0 && len(data) > 0
		line = line[:0]
		if !ends {
			continue
		}
		if done {
			return s, nil, errors.New("an event follows [DONE]")
		}
		if done = string(data) == "[DONE]"; !done {
			var c chunk
			if err := json.Unmarshal(data, &c); err != nil {
				return s, nil, fmt.Errorf("an event is not JSON of OpenAI's protocol: %w: %.200q", err, data)
			}
			if len(c.Error) > 0 && string(c.Error) != "null" {
				return s, nil, fmt.Errorf("it breaks off with an error: %.200s", c.Error)
			}
			if len(c.Choices) > 1 {
				return s, nil, errors.New(`several answers at once; ask for one ("n": 1)`)
			}
			if u := c.Usage; u != nil {
				s.Tokens, s.Counted = u.Tokens, true
				s.Input, s.Cached, s.Reasoning = u.Input, u.Of.Cached, u.Made.Reasoning
			}
			for _, choice := range c.Choices {
				if choice.Finish != "" {
					finished = choice.Finish
				}
				thought, own := choice.Delta.reasoning(), choice.Text+choice.Delta.output()
				if thought == "" && own == "" {
					continue
				}
				if own != "" && s.FirstOutput == 0 {
					s.FirstOutput = at
				}
				if texts++; texts == 1 {
					s.First = at
				} else {
					s.Gaps = append(s.Gaps, at-s.Last)
				}
				s.Last, text = at, append(text, own...)
			}
		}
		data = data[:0]
	}
}

// whole ends a stream of so many texts.
func whole(s loadtest.Stream, texts int, finished string, text []byte) (loadtest.Stream, []byte, error) {
	switch {
	case texts == 0:
		return s, nil, errors.New("it has no text")
	case finished == "":
		return s, nil, errors.New("it does not say why it ended (finish_reason)")
	case !s.Counted:
		s.Tokens = texts
	case s.Tokens < 1:
		return s, nil, fmt.Errorf("the answer has text, but the service counts %d tokens", s.Tokens)
	}
	return s, text, nil
}
