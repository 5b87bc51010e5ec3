package sharedfs

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A process can take a lease again that it released itself, even if the file's date was changed
// since.
func TestRetakeOfAReleasedLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	for _, date := range []time.Time{time.Now().Add(2 * time.Hour), time.Now()} {
		l, err := TakeLease(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, date, date); err != nil {
			t.Fatal(err)
		}
		again, err := TakeLease(t.Context(), path, 0)
		if err != nil {
			t.Fatalf("dated %v: %v", date, err)
		}
		if err := again.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// If the reply to a rename was lost, the process believes that its attempt failed, although its
// file is now the lease. It must not wait for itself.
func TestLostReplyToRename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	held, err := TakeLease(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	late := &Lease{path: path, owner: held.owner}
	if holder, err := late.try(); holder == nil || err != nil {
		t.Fatalf("a lease that is held was taken: %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, late.owner.text(), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := TakeLease(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
