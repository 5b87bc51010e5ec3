package study

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func numbers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i + 1)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// A long axis, and an exclusion of as many values, take time in proportion: each
// value compared with each takes minutes.
func TestLongAxis(t *testing.T) {
	started := time.Now()
	s := parse(t, strings.Replace(minimal, "[1, 2, 4]", "[1, 2]\nbatch = "+numbers(40_000), 1)+"[[exclude]]\nworkers = 2\nbatch = "+numbers(39_999)+"\n")
	if p := plan(t, s, DefaultSite()); len(p.Points) != 40_001 {
		t.Errorf("%d points, want 40,001", len(p.Points))
	}
	if took := time.Since(started); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// A grid that is far too large is refused before a point of it is made.
func TestGridTooLarge(t *testing.T) {
	s := parse(t, strings.Replace(minimal, "[1, 2, 4]", numbers(1000)+"\nbatch = "+numbers(1000)+"\nreference_batch = "+numbers(1000), 1))
	_, err := s.Plan(DefaultSite())
	want := "study.toml:7: sweep: 1000000000 runs (batch: 1000 × reference_batch: 1000 × workers: 1000), and a study may have up to 100000"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}
