package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The error for a path that the user may not read names its owner, even if the error is wrapped. Errors about
// the user's own path lack this hint.
func TestAskOwner(t *testing.T) {
	dir := t.TempDir()
	mine := &fs.PathError{Op: "open", Path: filepath.Join(dir, "gone", "plan.json"), Err: fs.ErrPermission}
	if got := AskOwner(mine); got != "" {
		t.Errorf("an own folder: %q", got)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"plain": mine, "wrapped": &Error{Err: mine}} {
		if got := AskOwner(err); !strings.HasPrefix(got, dir+" belongs to ") || !strings.Contains(got, "share = \"group\"") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := AskOwner(&fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}); got != "" {
		t.Errorf("a file that is not there: %q", got)
	}
}
