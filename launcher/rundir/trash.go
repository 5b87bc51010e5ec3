package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Trash returns the folder of the study's forgotten attempts, with the same layout as the study's folder.
// Listing runs ignores it.
func (s Study) Trash() Study { return Study(filepath.Join(string(s), "trash")) }

// Forgotten lists the study's forgotten attempts: those in its trash, except for attempts that are also in the
// study's folder because of a copy or a power failure.
func (s Study) Forgotten() ([]Attempt, error) {
	trash, err := s.Trash().Attempts()
	if err != nil {
		return nil, fmt.Errorf("forgotten runs cannot be read: %w", err)
	}
	if len(trash) == 0 {
		return nil, nil
	}
	here, err := s.Attempts()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, a := range here {
		names[a.Run.Name()] = true
	}
	return slices.DeleteFunc(trash, func(a Attempt) bool { return names[a.Run.Name()] }), nil
}

// Forget moves the attempt's folder into the trash of its study, by one rename:
// whenever that is cut short, the folder is whole in one place or the other. The
// caller holds the study's lease, and knows that the attempt has ended.
func (r Folder) Forget() error { return r.move(r.Study().Trash()) }

// Restore moves the folder of a forgotten attempt, one in a Trash, back among the
// study's.
func (r Folder) Restore() error { return r.move(Study(filepath.Dir(string(r.Study())))) }

// move moves the folder. The error is fs.ErrExist if the target exists.
func (r Folder) move(to Study) error {
	if err := makeFolder(to.Path()); err != nil {
		return err
	}
	target := filepath.Join(to.Path(), r.Name())
	if err := sharedfs.Place(r.Path(), target); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s cannot be moved to %s: %w; move one of the two away by hand", r.Path(), target, fs.ErrExist)
	} else if err != nil {
		return err
	}
	// In this order: a name in both folders is better than in neither.
	if err := SyncFolder(to.Path()); err != nil {
		return err
	}
	return SyncFolder(r.Study().Path())
}
