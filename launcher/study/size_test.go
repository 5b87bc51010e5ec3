package study

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/worktest"
)

func numbers(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i + 1)
	}
	return "[" + strings.Join(list, ",") + "]"
}

// A long axis and an equally long exclusion take linear time; comparing all pairs took
// minutes.
func TestLongAxis(t *testing.T) {
	worktest.New(t).Linear(t, 2500, func(n int) {
		s := parse(t, strings.Replace(minimal, "[1, 2, 4]", "[1, 2]\nbatch = "+numbers(n), 1)+"[[exclude]]\nworkers = 2\nbatch = "+numbers(n-1)+"\n")
		if p := plan(t, s, DefaultSite()); len(p.Points) != n+1 {
			t.Errorf("%d points, want %d", len(p.Points), n+1)
		}
	})
}

// Exclusions are found by value; comparing each with each point took minutes.
func TestManyExclusions(t *testing.T) {
	worktest.New(t).Linear(t, 600, func(n int) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "[[exclude]]\nworkers = 2\nbatch = %d\n", i+1)
		}
		s := parse(t, strings.Replace(minimal, "[1, 2, 4]", "[1, 2]\nbatch = "+numbers(2*n), 1)+b.String())
		if p := plan(t, s, DefaultSite()); len(p.Points) != 3*n {
			t.Errorf("%d points, want %d", len(p.Points), 3*n)
		}
	})
}

// If several exclusions match, the first one counts.
func TestExclusionsOverlap(t *testing.T) {
	s := parse(t, strings.Replace(minimal, "[1, 2, 4]", "[1, 2, 4]\nbatch = [1, 2]", 1)+"[[exclude]]\nbatch = 1\n[[exclude]]\nworkers = 4\n[[exclude]]\nworkers = 2\nbatch = 1\n")
	_, err := s.Plan(DefaultSite())
	if err == nil || !strings.Contains(err.Error(), "exclude[2]: excludes no point") || strings.Contains(err.Error(), "exclude[1]") {
		t.Error(err)
	}
}

// A message is short, and quick to build.
func TestManyProblems(t *testing.T) {
	worktest.New(t).Linear(t, 500, func(n int) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d = 1\n", i)
		}
		_, err := Parse("study.toml", []byte(minimal+"[resources]\n"+b.String()), nil)
		if err == nil || strings.Count(err.Error(), "\n") != maxShown || !strings.Contains(err.Error(), "more") {
			t.Errorf("%.300v", err)
		}
	})
}

// A key may have a million dots; not every prefix becomes a table.
func TestKeyOfManyDots(t *testing.T) {
	key, f := strings.Repeat("a.", 1<<20), flaws{}
	if f.add(key, flawed); len(f) > 1000 || !f.in(key) || f["a"] != inner {
		t.Errorf("%d paths have a flaw", len(f))
	}
	_, err := Parse("study.toml", []byte(minimal+"[resources]\n\""+key+"\" = 1\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "resources.a.a.") {
		t.Errorf("%.300v", err)
	}
}

// A grid that is far too large is rejected before any point is built.
func TestGridTooLarge(t *testing.T) {
	s := parse(t, strings.Replace(minimal, "[1, 2, 4]", numbers(1000)+"\nbatch = "+numbers(1000)+"\nreference_batch = "+numbers(1000), 1))
	_, err := s.Plan(DefaultSite())
	want := "study.toml:7: sweep: 1000000000 runs (batch: 1000 × reference_batch: 1000 × workers: 1000), and a study may have up to 100000"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	// Repeats count as well, and an axis with one value does not.
	s = parse(t, strings.Replace(minimal, "[1, 2, 4]", "[2]\nbatch = "+numbers(1000), 1))
	s.Repeats, s.First = 1000, 1
	if _, err = s.Plan(DefaultSite()); err == nil || !strings.Contains(err.Error(), "1000000 runs (batch: 1000 × repeats: 1000), and") {
		t.Errorf("with repeats: %v", err)
	}
	s.First = 901
	if p, err := s.Plan(DefaultSite()); err != nil || len(p.Points) != 100_000 {
		t.Errorf("the largest plan: %v", err)
	}
}

// Suggestions are limited to the unknown keys shown, the first of the file. Searching for
// all of 100,000 took 14 s.
func TestManyUnknownKeys(t *testing.T) {
	keys := func(form string) string {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"of a table": minimal + "[policy]\n" + keys("retrie%d = 1\n"),
		"of the top": keys("stud%d = 1\n") + minimal,
		"of a sweep": strings.Replace(minimal, "[sweep]\n", "[sweep]\n"+keys("batc%d = [1]\n"), 1),
		"of a list":  minimal + keys("[[extract]]\nnam = %d\n"),
	} {
		_, err := Parse("study.toml", []byte(text), nil)
		var wrong Problems
		if !errors.As(err, &wrong) || len(wrong) < 20_000 {
			t.Fatalf("%s: %v", name, err)
		}
		hints := 0
		for i, p := range wrong {
			if strings.Contains(p.Message, "did you mean") {
				if hints++; i >= 3*maxShown { // each entry of a list also lacks keys
					t.Errorf("%s: %s has a hint, and is number %d", name, p, i)
				}
			}
		}
		if hints == 0 || hints > maxShown {
			t.Errorf("%s: %d hints, want %d at most", name, hints, maxShown)
		}
	}
}
