package rundir

import (
	"path/filepath"

	"github.com/scalebench/scalebench/metrics/nfs"
)

// Trash is where the study's forgotten attempts are, laid out as the study's
// folder is. Nothing that looks for runs looks there.
func (s Study) Trash() Study { return Study(filepath.Join(string(s), "trash")) }

// Forget moves the attempt's folder into the trash of its study, by one rename:
// whenever that is cut short, the folder is whole in one place or the other. The
// caller holds the study's lease, and knows that the attempt has ended.
func (r Folder) Forget() error { return r.move(r.Study().Trash()) }

// Restore moves the folder of a forgotten attempt, one in a Trash, back among the
// study's. The error is fs.ErrExist where an attempt of its name is there.
func (r Folder) Restore() error { return r.move(Study(filepath.Dir(string(r.Study())))) }

func (r Folder) move(to Study) error {
	if err := makeFolder(to.Path()); err != nil {
		return err
	}
	if err := nfs.Place(r.Path(), filepath.Join(to.Path(), r.Name())); err != nil {
		return err
	}
	// In this order: a name in both folders is better than in neither.
	if err := SyncFolder(to.Path()); err != nil {
		return err
	}
	return SyncFolder(r.Study().Path())
}
