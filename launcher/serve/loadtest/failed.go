package loadtest

import (
	"fmt"
)

// A run has failed, whatever figures it has, if one of its loads had no right answer for
// another reason than time, or if of the requests of a load more than mostRefused were
// refused a connection, or if of those of all its loads more than mostWrong had a wrong
// answer or lost their connection. Answers that come late are overload, which loads are
// there to find.
const (
	mostRefused = 0.01
	mostWrong   = 0.5
)

// tally counts the requests of a run's loads.
type tally struct {
	requests, wrong int64
	first           error // of a request with a wrong answer, or none
}

// add counts a load and returns why its run has failed; nil if it has not.
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

// end returns why the run has failed with all its loads.
func (t *tally) end() error {
	if share := float64(t.wrong) / float64(max(1, t.requests)); share > mostWrong {
		return fmt.Errorf("%.0f %% of %d requests had a wrong answer or lost their connection (at most %.0f %% may); the first: %w", 100*share, t.requests, 100*mostWrong, t.first)
	}
	return nil
}
