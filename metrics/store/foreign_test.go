package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A journal next to the database that another user owns is refused, even for
// reading.
func TestStrangersJournal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const stranger = 1<<31 - 7
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		for _, whose := range []int{os.Geteuid(), stranger} { // the database's owner
			path := filepath.Join(t.TempDir(), "h.db")
			db, err := Open(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Close(), os.Chown(path, whose, -1), os.WriteFile(path+suffix, nil, 0o644), os.Chown(path+suffix, stranger-1, -1)); err != nil {
				t.Fatal(err)
			}
			for name, open := range map[string]func(string, Options) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
				if db, err := open(path, Options{}); err == nil || !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), suffix+" belongs to user ") {
					t.Errorf("%s of a database with a stranger's %s: %v, %v", name, suffix, db, err)
				}
			}
			if err := os.Chown(path+suffix, whose, -1); err != nil {
				t.Fatal(err)
			}
			if db, err := OpenReadOnly(path, Options{}); err != nil {
				t.Errorf("a %s of the owner's: %v", suffix, err)
			} else {
				db.Close()
			}
		}
	}
}
