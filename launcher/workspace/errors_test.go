package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/rundir"
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

func TestForeign(t *testing.T) {
	folder := rundir.OpenStudy(t.TempDir(), "theirs")
	if got := Foreign(folder); got != "" {
		t.Errorf("a folder that does not exist is %q's", got)
	}
	if err := os.Mkdir(folder.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := mustBeOurs(folder, "cancel"); err != nil {
		t.Errorf("my folder: %v", err)
	}
	name, owner := "theirs", "user 54321"
	if os.Geteuid() == 0 {
		if err := os.Chown(folder.Path(), 54321, 54321); err != nil {
			t.Fatal(err)
		}
	} else { // only root can give a folder away; /usr is root's
		folder, name, owner = rundir.OpenStudy("/", "usr"), "usr", "root"
	}
	var refused *Error
	if err := mustBeOurs(folder, "cancel"); !errors.As(err, &refused) || err.Error() != "study "+name+" belongs to "+owner+", so you cannot cancel its runs" ||
		refused.Hint != "Ask "+owner+" to cancel them. You can read the results: `scalebench collect "+name+"`." {
		t.Errorf("%v, %+v", err, refused)
	}
}
