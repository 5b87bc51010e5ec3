package target

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// A Served is a model at servers that describe it by the Open Inference Protocol v2.
type Served struct {
	// Token is HTTP's, for servers that are asked over HTTP.
	Token string

	servers []string
	model   *Model
}

// OverGRPC reports whether a server's URL says that it is asked over gRPC.
func OverGRPC(url string) bool {
	return strings.HasPrefix(url, "grpc://") || strings.HasPrefix(url, "grpcs://")
}

// Find waits until every server (all http://HOST:PORT, or all grpc://HOST:PORT or grpcs://HOST:PORT) says
// that it has the model ready, for as long as the context lasts.
func Find(ctx context.Context, servers []string, model string) (*Served, error) {
	ready := awaitV2
	if len(servers) > 0 && OverGRPC(servers[0]) {
		ready = awaitGRPC
	}
	m, err := ready(ctx, servers, model)
	if err != nil {
		return nil, err
	}
	return &Served{servers: servers, model: m}, nil
}

// A Question is a request whose right answer is known.
type Question struct {
	Dial func() (loadtest.Sender, error)
	// Varies is Known's.
	Varies bool
	// The requests; both are nil in process.
	HTTP *HTTP
	GRPC *GRPC
}

// Ask makes a request and learns its answer, which comes until the deadline, or until the
// context ends. expect is text that answers over HTTP hold; nil: any.
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
	case <-ctx.Done(): // the rest ends by the deadline, and is bounded by mostRequest
		return nil, context.Cause(ctx)
	}
}

func (s *Served) ask(in Inputs, expect []byte, deadline time.Time) (*Question, error) {
	if OverGRPC(s.servers[0]) {
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
	t.Expect, t.Token = expect, s.Token
	if err := t.Learn(deadline); err != nil {
		return nil, fmt.Errorf("the first answers: %w", err)
	}
	return &Question{Dial: t.Dial, Varies: t.Varies, HTTP: &t.HTTP}, nil
}
