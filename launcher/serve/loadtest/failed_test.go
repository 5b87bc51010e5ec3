package loadtest

import (
	"errors"
	"strings"
	"testing"
)

// counts holds the number of a load's requests by outcome.
type counts struct{ good, wrong, late, refused int64 }

// Wrong answers and refused connections make a run fail; overload does not. "" means success.
func TestTally(t *testing.T) {
	for name, c := range map[string]struct {
		loads []counts
		want  string
	}{
		"all right":                 {[]counts{{good: 100}}, ""},
		"all late":                  {[]counts{{late: 100}}, ""},
		"nothing was sent":          {[]counts{{}}, ""},
		"all wrong":                 {[]counts{{good: 100}, {wrong: 7}}, "none of 7 requests had a right answer; the first: broken"},
		"wrong or late":             {[]counts{{wrong: 1, late: 99}}, "none of 100 requests had a right answer; the first: broken"},
		"two of 100 refused":        {[]counts{{good: 98, wrong: 2, refused: 2}}, "2 of 100 requests were refused a connection (at most 1 % may be); the first error: broken"},
		"one of 100 refused":        {[]counts{{good: 99, wrong: 1, refused: 1}}, ""},
		"51 of 100":                 {[]counts{{good: 49, wrong: 51}}, "51 % of 100 requests had a wrong answer or lost their connection (at most 50 % may); the first: broken"},
		"half":                      {[]counts{{good: 50, wrong: 50}}, ""},
		"half of them late":         {[]counts{{good: 1, wrong: 49, late: 50}}, ""},
		"more than half, over both": {[]counts{{good: 35, wrong: 65}, {good: 45, wrong: 55}}, "60 % of 200 requests"},
		"one overloaded":            {[]counts{{good: 900}, {good: 30, wrong: 70}}, ""},
	} {
		var all tally
		var err error
		for _, l := range c.loads {
			r := &Result{Windows: []Window{{Good: l.good, Wrong: l.wrong, Late: l.late, Latency: Merge(nil).Latency}}, Refused: int(l.refused)}
			if l.wrong > 0 {
				r.FirstError = errors.New("broken")
			}
			if err == nil {
				err = all.add(Load{Batch: 1, Rate: 5}, r)
			}
		}
		if err == nil {
			err = all.end()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
