package target

import (
	"time"
)

// Warm sends two requests to each replica and returns the length of the last answer: the bytes of its body, or
// the number of texts of a stream. It ignores errors: the requests that follow report them.
//
// Warm also finds out whether the servers serve one connection at a time, like Python's http.server. Such a server
// answers on a second connection only once the first is closed. If a connection stayed open between its requests,
// the requests on all others would time out. So each request then gets a new connection, as from callers that do
// not wait for each other.
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
		// Chance may delay a second answer until the first connection is closed, but hardly twice.
		h.oneAtATime = h.oneAtATime || one.blocked(first, took, deadline) && one.blockedAgain(deadline)
	}
	return answer
}

// OneAtATime is the warning about servers for which HTTP.OneAtATime is true.
const OneAtATime = "the service serves one connection at a time, so each request uses a new one; latencies include connecting"

// OneAtATime reports whether Warm found that a server serves one connection at a time.
func (h *HTTP) OneAtATime() bool { return h.oneAtATime }

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

// blockedAgain is blocked with a new first connection.
func (h *HTTP) blockedAgain(deadline time.Time) bool {
	first, took, err := h.ask(deadline)
	return err == nil && h.blocked(first, took, deadline)
}

// A second request counts as blocked if it has no answer after blockedFor and after manyTimes the first answer's time.
const (
	blockedFor = time.Second
	manyTimes  = 5
)

// blocked reports whether a second connection gets an answer only once the first is closed. It closes both.
func (h *HTTP) blocked(first *sender, took time.Duration, deadline time.Time) bool {
	defer first.Close()
	if first.asked.closed { // the server closes each connection itself
		return false
	}
	answered := make(chan error, 1)
	go func() {
		second, _, err := h.ask(deadline)
		if err == nil {
			err = second.Close()
		}
		answered <- err
	}()
	select {
	case <-answered:
		return false
	case <-time.After(max(blockedFor, manyTimes*took)):
	}
	_ = first.Close()
	return <-answered == nil
}
