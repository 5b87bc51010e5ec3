package lease

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A process that gave a lease up takes it again, whatever date somebody has
// given the file since: it knows best that it is gone itself.
func TestGivenUpAndDated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	for _, date := range []time.Time{time.Now().Add(2 * time.Hour), time.Now()} {
		l, err := Take(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, date, date); err != nil {
			t.Fatal(err)
		}
		again, err := Take(t.Context(), path, 0)
		if err != nil {
			t.Fatalf("dated %v: %v", date, err)
		}
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
