package target

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// A Served is a model on servers that describe it by the Open Inference Protocol v2.
type Served struct {
	// Token is the bearer token for servers queried over HTTP (see HTTP.Token).
	Token string

	private map[string]string // headers of requests over HTTP
	servers []string
	model   *Model
}

// overGRPC reports whether a URL names a gRPC server.
func overGRPC(url string) bool {
	return strings.HasPrefix(url, "grpc://") || strings.HasPrefix(url, "grpcs://")
}

// Find waits until every server reports that it has the model ready, or until the context ends. URLs are all
// http://HOST:PORT, or all grpc://HOST:PORT or grpcs://HOST:PORT. All requests over HTTP carry the headers.
func Find(ctx context.Context, servers []string, model string, headers map[string]string) (*Served, error) {
	var m *Model
	var err error
	if len(servers) > 0 && overGRPC(servers[0]) {
		m, err = awaitGRPC(ctx, servers, model)
	} else {
		m, err = awaitV2(ctx, servers, model, headers)
	}
	if err != nil {
		return nil, err
	}
	return &Served{servers: servers, model: m, private: headers}, nil
}

// A Question is a set of requests whose right answers are known.
type Question struct {
	Dial func() (loadtest.Sender, error)
	// Varies is Known.Varies.
	Varies bool
	// HTTP or GRPC holds the requests; both are nil for a model in this process.
	HTTP *HTTP
	GRPC *GRPC
}

// Ask prepares requests and learns the right answer, which must arrive before the deadline and before the
// context ends. expect is text that answers over HTTP must contain; nil accepts any.
func (s *Served) Ask(ctx context.Context, in Inputs, expect []byte, deadline time.Time) (*Question, error) {
	type made struct {
		question *Question
		err      error
	}
	done := make(chan made, 1)
	go func() {
		q, err := s.ask(in, expect, deadline)
		done <- made{q, err}
	}()
	select {
	case m := <-done:
		return m.question, m.err
	case <-ctx.Done(): // the goroutine ends by the deadline; mostRequest bounds its memory
		return nil, context.Cause(ctx)
	}
}

func (s *Served) ask(in Inputs, expect []byte, deadline time.Time) (*Question, error) {
	if overGRPC(s.servers[0]) {
		t, err := newGRPC(s.servers, s.model, in)
		if err != nil {
			return nil, err
		}
		if err := t.Learn(deadline); err != nil {
			return nil, fmt.Errorf("the first answers: %w", err)
		}
		return &Question{Dial: t.Dial, Varies: t.Varies, GRPC: t}, nil
	}
	p, err := s.model.Payload(in)
	if err != nil {
		return nil, err
	}
	t := newV2(s.servers, s.model, p)
	t.Expect, t.Token, t.Private = expect, s.Token, s.private
	if err := t.Learn(deadline); err != nil {
		return nil, fmt.Errorf("the first answers: %w", err)
	}
	return &Question{Dial: t.Dial, Varies: t.Varies, HTTP: &t.HTTP}, nil
}
