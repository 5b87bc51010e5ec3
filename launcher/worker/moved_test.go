package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
)

// A run folder that was moved away is not recreated. Otherwise the study would seem to have no
// other runs, and its runs would be started twice.
func TestMovedRunFolderIsNotRecreated(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	run := rundir.OpenStudy(runs, "s").Run("p", 1, 1)
	if _, err := OpenEvents(run, "rank", world.World{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("events: %v", err)
	}
	if err := makeOutput(run.Output(), filepath.Join(run.Output(), "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("output: %v", err)
	}
	if _, err := os.Stat(runs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was made: %v", runs, err)
	}
}
