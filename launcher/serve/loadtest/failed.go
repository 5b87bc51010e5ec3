package loadtest

import (
	"fmt"
)

// A run fails if all answers of a load were wrong, if more than mostRefused of a load's connections
// were refused, or if more than mostWrong of all requests got a wrong answer or lost their
// connection. Late answers do not make a run fail: finding overload is the purpose of loads.
const (
	mostRefused = 0.01
	mostWrong   = 0.5
)

// A tally counts the requests of all loads of a run.
type tally struct {
	requests, wrong int64
	first           error // the first wrong answer's error; nil if there was none
}

// add counts a load. It returns an error if the load makes the run fail.
func (t *tally) add(l Load, r *Result) error {
	total := Merge(r.Windows)
	t.requests += total.Requests()
	t.wrong += total.Wrong
	if t.first == nil && total.Wrong > 0 {
		t.first = r.FirstError
	}
	switch n := total.Requests(); {
	case total.Good == 0 && total.Wrong > 0:
		return fmt.Errorf("%v: none of %d requests had a right answer; the first: %w", l, n, r.FirstError)
	case float64(r.Refused) > mostRefused*float64(n):
		return fmt.Errorf("%v: %d of %d requests were refused a connection (at most %.0f %% may be); the first error: %w", l, r.Refused, n, 100*mostRefused, r.FirstError)
	}
	return nil
}

// end returns an error if the loads together make the run fail.
func (t *tally) end() error {
	if share := float64(t.wrong) / float64(max(1, t.requests)); share > mostWrong {
		return fmt.Errorf("%.0f %% of %d requests had a wrong answer or lost their connection (at most %.0f %% may); the first: %w", 100*share, t.requests, 100*mostWrong, t.first)
	}
	return nil
}
