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

// A Played simulates a language model that streams tokens on a fixed schedule, so that the correct measurements
// are known beforehand.
type Played struct {
	Tokens   int           // in an answer, one a text
	First    time.Duration // from the request to the first token
	PerToken time.Duration // from one token to the next
}

// Serve answers POST on any path with a stream of OpenAI's protocol, and all other requests with 200, until the
// context ends or the listener fails. A late token does not delay those after it.
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
			return // the client has disconnected
		}
	}
	length := "length"
	if event(map[string]any{"choices": []choice{{Finish: &length}}, "usage": map[string]int{"completion_tokens": p.Tokens}}) == nil {
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}
}
