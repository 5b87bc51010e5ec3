package launcher

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// resume finds the newest complete checkpoint of the attempts since the last good one, all of which failed: a
// run that is measured again starts from the beginning. It returns "" if none exists.
func (c Creator) resume(t Todo) (checkpoint string, attempt int, err error) {
	for n := t.Number - 1; n > 0; n-- {
		run := c.Folder.Run(t.Point.ID, t.Point.Repeat, n)
		var ended *Verdict
		ok, err := readJSON(run, run.State(), &ended)
		if err != nil {
			return "", 0, err
		}
		if !ok || ended == nil || ended.Status.Good() { // the attempt may still be running
			return "", 0, nil
		}
		checkpoint, err := newest(run.Checkpoints())
		if err != nil || checkpoint != "" {
			return checkpoint, n, err
		}
	}
	return "", 0, nil
}

// newest returns the latest complete checkpoint in a folder: a file or folder whose name neither starts with a
// dot nor ends in .tmp, .part or ~. Programs write under such a name and then rename, so any other name is
// complete.
func newest(folder string) (path string, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var when time.Time
	for _, e := range entries { // sorted by name, which breaks ties between equal times
		name := e.Name()
		if !e.IsDir() && !e.Type().IsRegular() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, ".part") || strings.HasSuffix(name, "~") {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if path == "" || !info.ModTime().Before(when) {
			path, when = filepath.Join(folder, name), info.ModTime()
		}
	}
	return path, nil
}
