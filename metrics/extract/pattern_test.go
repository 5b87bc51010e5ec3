package extract

import (
	"strings"
	"testing"
)

// A figure of the run stands in one line, unless the user says how to make one
// of several.
func TestPatternOfTheRun(t *testing.T) {
	read := func(log, reduce string) (Content, error) {
		e, err := Patterns([]Pattern{{Name: "throughput", Pattern: `^rate (?P<value>\d+)$`, Unit: "img/s", Reduce: reduce}})
		if err != nil {
			t.Fatal(err)
		}
		return e.Extract(strings.NewReader(log), Options{File: "log", Workers: 1})
	}
	for _, c := range []struct {
		log, reduce string
		want        float64
	}{{"rate 3\n", "", 3}, {"rate 3\nrate 5\n", "last", 5}, {"rate 3\nrate 5\n", "mean", 4}} {
		r, err := read(c.log, c.reduce)
		if err != nil || len(r.Findings) != 1 || r.Findings[0].Event.Figure.Value != c.want {
			t.Errorf("%q by %q: %+v, %v; want %g", c.log, c.reduce, r.Findings, err, c.want)
		}
	}
	if r, err := read("rate 3\nwarm\nrate 5\n", ""); err == nil || !strings.Contains(err.Error(), "log:3: a second throughput; the first is on line 1") {
		t.Errorf("%+v, %v of a second figure of the run", r, err)
	}
}
