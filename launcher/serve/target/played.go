package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Played is the schedule of a service that answers as a language model does, token by
// token, without any: what a client measures of it is known beforehand.
type Played struct {
	Tokens   int           // in an answer, one a text
	First    time.Duration // from the request to the first token
	PerToken time.Duration // from one token to the next
}

// Serve answers POST with a stream of OpenAI's protocol, at any path, and all else
// with 200, until the context ends or the listener fails. The times are of the
// schedule: a token that is late does not delay those behind it.
func (p Played) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: http.HandlerFunc(p.answer), ReadHeaderTimeout: dialTimeout}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (p Played) answer(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	if r.Method != http.MethodPost {
		return
	}
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
	for i := range p.Tokens {
		time.Sleep(time.Until(begun.Add(p.First + time.Duration(i)*p.PerToken)))
		if event(map[string]any{"choices": []choice{{Text: "token "}}}) != nil {
			return // the client is gone
		}
	}
	length := "length"
	if event(map[string]any{"choices": []choice{{Finish: &length}}, "usage": map[string]int{"completion_tokens": p.Tokens}}) == nil {
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}
}
