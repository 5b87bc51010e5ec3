package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A Simulated simulates a language model that streams tokens on a fixed schedule, so that the correct measurements
// are known beforehand.
type Simulated struct {
	Tokens   int           // number of tokens in an answer; each text is one token
	First    time.Duration // from the request to the first token
	PerToken time.Duration // from one token to the next
	// Counts is set if the service counts the words of a request as its tokens, generates max_tokens tokens if
	// the request has that, and reports metrics and its model, "model".
	Counts bool
}

// asked returns the number of words of a request and the number of tokens to generate.
func (p Simulated) asked(r *http.Request) (words, tokens int) {
	tokens = p.Tokens
	if !p.Counts {
		return 0, tokens
	}
	var body struct {
		Prompt   string
		Messages []struct{ Content string }
		Most     int `json:"max_tokens"`
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		return 0, tokens
	}
	words = len(strings.Fields(body.Prompt))
	for _, m := range body.Messages {
		words += len(strings.Fields(m.Content))
	}
	if body.Most > 0 {
		tokens = body.Most
	}
	return words, tokens
}

// other answers a request that is not for a completion.
func (p Simulated) other(w http.ResponseWriter, r *http.Request) {
	switch {
	case !p.Counts:
	case IsListing(r.URL.Path):
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"model"}]}`)
	case r.URL.Path == "/metrics":
		_, _ = io.WriteString(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 3\n")
	}
}

// Serve answers POST on any path with a stream of OpenAI's protocol, and all other requests with 200, until the
// context ends or the listener fails. A late token does not delay those after it.
func (p Simulated) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: http.HandlerFunc(p.answer), ReadHeaderTimeout: dialTimeout}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (p Simulated) answer(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	if r.Method != http.MethodPost {
		p.other(w, r)
		return
	}
	words, tokens := p.asked(r)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	event := func(v any) error {
		text, err := json.Marshal(v)
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		if err == nil {
			err = out.Flush()
		}
		return err
	}
	type choice struct {
		Text   string  `json:"text"`
		Finish *string `json:"finish_reason"`
	}
	for i := range tokens {
		time.Sleep(time.Until(begun.Add(p.First + time.Duration(i)*p.PerToken)))
		if event(map[string]any{"choices": []choice{{Text: "token "}}}) != nil {
			return // the client has disconnected
		}
	}
	length := "length"
	if event(map[string]any{"choices": []choice{{Finish: &length}}, "usage": map[string]int{"prompt_tokens": words, "completion_tokens": tokens}}) == nil {
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}
}
