package store

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident returns the largest resident size of this process so far, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// An expression that needs too much memory fails with an error instead of exhausting the machine.
func TestWhereMemory(t *testing.T) {
	s := historyStore(t)
	s.limit = time.Minute // so that the memory limit ends the query even on a busy machine
	before := resident(t)
	for text, words := range map[string]string{
		"length((SELECT group_concat(a . run || b . run || c . run || d . run) FROM runs a, runs b, runs c, runs d, runs e, runs f)) > 3": "too much memory",
		strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000):                                                                       "",
		strings.Repeat("abs(", 500) + "1" + strings.Repeat(")", 500):                                                                      "maximum depth",
		"run LIKE '" + strings.Repeat("%a", 2000) + "'":                                                                                   "pattern too complex",
		"'" + strings.Repeat("x", 2<<20) + "' = run":                                                                                      "",
	} {
		_, err := s.Runs(t.Context(), Filter{Where: text})
		var where *WhereError
		if !errors.As(err, &where) || !strings.Contains(err.Error(), words) {
			t.Errorf("%.60s: %.300v; want a WhereError with %q", text, err, words)
		}
	}
	// The expected memory is far below: 16 MB for the sorter and the page caches, and twice
	// the longest value while it grows.
	if more := resident(t) - before; more > heapLimit+64<<20 {
		t.Errorf("it took %d MiB", more>>20)
	}
	// Ordinary queries still work.
	if list, err := s.Runs(t.Context(), Filter{Where: "(SELECT group_concat(a . run) FROM runs a) LIKE '%p1-%'"}); err != nil || len(list) != 12 {
		t.Errorf("%d runs, %v", len(list), err)
	}
}
