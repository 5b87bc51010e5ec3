package rundir

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// An Identity is the content of identity.json: the study that the folder belongs to.
type Identity struct {
	ID        string `json:"id"` // see metrics.NewStudyID
	Name      string `json:"name"`
	StudyFile string `json:"study_file"` // absolute path from which it was last run or submitted
}

var idPattern = regexp.MustCompile(`^[a-z2-7]{26}$`)

func (i Identity) check(of Study) error {
	switch {
	case !idPattern.MatchString(i.ID):
		return fmt.Errorf("%s: %q is not a study id", of.identity(), i.ID)
	case i.Name != filepath.Base(of.Path()):
		return fmt.Errorf("%s belongs to study %q; a study's folder keeps the study's name: rename it back to %s",
			of.identity(), i.Name, filepath.Join(of.Runs(), i.Name))
	case !filepath.IsAbs(i.StudyFile):
		return fmt.Errorf("%s: study_file %q is not an absolute path", of.identity(), i.StudyFile)
	}
	return nil
}

func (s Study) identity() string { return filepath.Join(string(s), "identity.json") }

// Identity reads which study the folder belongs to. The error is fs.ErrNotExist if no study was started there.
func (s Study) Identity() (Identity, error) {
	text, err := s.ReadFile(s.identity(), largest)
	if err != nil {
		return Identity{}, err
	}
	var i Identity
	if err := json.Unmarshal(text, &i); err != nil {
		return Identity{}, fmt.Errorf("%s cannot be read: %w", s.identity(), err)
	}
	return i, i.check(s)
}

// Claim makes the folder the study's and returns the study that it then belongs to. If several commands claim
// it at once, even on different hosts, all get the same answer.
func (s Study) Claim(i Identity) (Identity, error) {
	if err := i.check(s); err != nil {
		return Identity{}, err
	}
	if err := makeFolder(string(s)); err != nil {
		return Identity{}, err
	}
	// Write this before anything else. The user may remove it to keep runs in git.
	if err := sharedfs.Create(filepath.Join(string(s), ".gitignore"), []byte("*\n"), sharedfs.ModeOpen); err != nil && !errors.Is(err, fs.ErrExist) {
		return Identity{}, err
	}
	// Write a temporary file and link it: the file is never visible half-written, and only one of two links
	// succeeds.
	own := filepath.Join(string(s), unfinished+rand.Text())
	if err := sharedfs.Write(own, i.text(), sharedfs.ModeOpen); err != nil {
		return Identity{}, err
	}
	err := sharedfs.Put(own, s.identity())
	if left := sharedfs.Remove(own); err == nil {
		err = left
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Identity{}, err
	}
	if err := SyncFolder(string(s)); err != nil {
		return Identity{}, err
	}
	err = sharedfs.RetryMissing(func() (err error) { i, err = s.Identity(); return err })
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is a link to nowhere, %w; remove it", s.identity(), sharedfs.ErrNotRegular)
	}
	return i, err
}

// Move notes that the study's file is elsewhere now.
func (s Study) Move(i Identity) error {
	if err := i.check(s); err != nil {
		return err
	}
	return WriteFile(s.identity(), i.text(), sharedfs.ModeOpen)
}

func (i Identity) text() []byte {
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		panic(err) // three strings
	}
	return append(text, '\n')
}

// SameFile reports whether two paths name the same existing file or folder. The kernel treats a
// file system that is mounted twice as two file systems. But the inode number and the time of the
// last write in nanoseconds come from the server, and a copy almost always has another
// inode number. (The change time is not compared: making or removing a link elsewhere changes it, and one of the
// two mounts may still cache the old value.)
func SameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	if err1 != nil || err2 != nil || os.SameFile(one, two) {
		return err1 == nil && err2 == nil
	}
	first, ok1 := one.Sys().(*syscall.Stat_t)
	second, ok2 := two.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && first.Ino == second.Ino && first.Mtim == second.Mtim
}

// Same reports whether two folders are one.
func (s Study) Same(other Study) bool { return SameFile(s.identity(), other.identity()) }
