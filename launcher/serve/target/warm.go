package target

import (
	"time"
)

// Warm sends two requests to each replica and returns the length of the last answer: the bytes of its body, or
// the number of texts of a stream. It ignores errors: the requests that follow report them.
//
// Warm also finds out whether the servers serve only a few connections at once, like Python's http.server (one) or a
// pool of threads that keep their connections. Such a server answers on a further connection only once another is
// closed. If connections stayed open between their requests, the requests on all others would time out. So each
// request then gets a new connection, as from callers that do not wait for each other.
func (h *HTTP) Warm(deadline time.Time) (answer int) {
	for _, at := range h.URLs {
		one := h.Like(at)
		one.Token, one.Private = h.Token, h.Private
		first, took, err := one.ask(deadline)
		if err != nil {
			continue
		}
		if answer = len(first.asked.response.Body()); h.Streams {
			answer = len(first.asked.last.Gaps) + 1
		}
		closed := first.asked.closed // the server closes each connection itself
		_ = first.Close()
		// Chance may delay an answer until other connections are closed, but hardly twice.
		h.fewConnections = h.fewConnections || !closed && one.blocked(took, deadline) && one.blocked(took, deadline)
	}
	return answer
}

// FewConnections is the warning about servers for which HTTP.FewConnections is true.
const FewConnections = "the service serves fewer than 9 connections at once, so each request uses a new one; latencies include connecting"

// FewConnections reports whether Warm found that a server serves only a few connections at once.
func (h *HTTP) FewConnections() bool { return h.fewConnections }

// ask sends a request over a new connection, and returns it with the time until the answer.
func (h *HTTP) ask(deadline time.Time) (s *sender, took time.Duration, err error) {
	connection, err := h.Dial()
	if err != nil {
		return nil, 0, err
	}
	s, start := connection.(*sender), time.Now()
	if err := s.Send(deadline); err != nil {
		_ = s.Close() // unusable: the error is not of interest
		return nil, 0, err
	}
	return s, time.Since(start), nil
}

const (
	manyConnections = 9
	// Requests count as blocked if no answer comes for blockedFor and for manyTimes the time of an answer.
	blockedFor = time.Second
	manyTimes  = 5
)

// blocked reports whether some of several connections get an answer only once the others are closed. It closes all.
func (h *HTTP) blocked(took time.Duration, deadline time.Time) bool {
	// Of a slow service, ask no more than it can answer one by one.
	n := min(manyConnections, max(2, int(time.Until(deadline)/max(took, 1))))
	wait := max(blockedFor, manyTimes*took)
	deadline = time.Now().Add(3 * wait)
	answers := make(chan *sender, n) // nil for an error
	for range n {
		go func() {
			s, _, _ := h.ask(deadline)
			answers <- s
		}()
	}
	var held []*sender
	release := func() {
		for _, s := range held {
			_ = s.Close()
		}
		held = nil
	}
	waited, answered := false, true
	for range n {
		var s *sender
		select {
		case s = <-answers:
		case <-time.After(wait):
			waited = waited || len(held) > 0
			release()
			s = <-answers
		}
		switch {
		case s == nil:
			answered = false
		case waited:
			_ = s.Close()
		default:
			held = append(held, s)
		}
	}
	release()
	return waited && answered
}
