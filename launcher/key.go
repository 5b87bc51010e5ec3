package launcher

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/redact"
)

// Key returns the key of the digests that replace a study's secrets. Freeze puts it in the study's
// folder, so that points keep their names with another database or home folder. A study without a
// key gets the one next to the database, which earlier versions used, or the key of another study
// in the runs folder, or a new one.
func Key(folder rundir.Study, database string) (redact.Key, error) {
	if folder == "" { // unknown so far
		return redact.ReadKey(redact.KeyFile(database))
	}
	key, err := ownKey(folder)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	// A copy stays next to the database, for when run folders are purged.
	path := redact.KeyFile(database)
	if key, err := redact.LoadKey(path); !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	names, err := rundir.Studies(folder.Runs())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if key, err := ownKey(rundir.OpenStudy(folder.Runs(), name)); err == nil {
			return redact.SaveKey(path, key)
		}
	}
	return redact.ReadKey(path)
}

// ownKey reads the key in a study's folder. Somebody else's is not used: its owner
// could test guesses of secrets.
func ownKey(folder rundir.Study) (redact.Key, error) {
	if _, err := os.Lstat(folder.Key()); err != nil {
		return nil, err
	}
	if err := trust.CheckFilesOnly(folder.Key()); err != nil {
		return nil, err
	}
	return redact.LoadKey(folder.Key())
}

// errAnotherKey: two commands began a study at once, with different keys.
var errAnotherKey = errors.New("another command has just begun this study, with another database; repeat this one")

// keepKey puts the key into the study's folder.
func keepKey(folder rundir.Study, key redact.Key) error {
	if len(key) == 0 {
		return nil
	}
	kept, err := redact.SaveKey(folder.Key(), key)
	if err == nil && !bytes.Equal(kept, key) {
		err = errAnotherKey
	}
	return err
}

// Adopt gives the points of a plan the names under which an earlier version has
// run them, as the study's folder shows. Digests may be by the folder's key or the
// database's.
func Adopt(plan *study.Plan, folder rundir.Study, database string) error {
	attempts, err := folder.Attempts()
	if err != nil {
		return err
	}
	planned, begun := map[string]bool{}, map[string]bool{}
	for _, p := range plan.Points {
		planned[p.Point.ID] = true
	}
	for _, a := range attempts {
		begun[a.Point] = true
	}
	missing := false
	for id := range planned {
		missing = missing || !begun[id]
	}
	if !missing {
		return nil
	}
	var earlier []study.Point
	seen := map[string]bool{}
	add := func(p study.Point) {
		if !planned[p.ID] && !seen[p.ID] {
			seen[p.ID] = true
			earlier = append(earlier, p)
		}
	}
	for _, a := range attempts {
		if planned[a.Point] || seen[a.Point] {
			continue
		}
		var p study.Point
		if ok, err := readJSON(a.Run, a.Run.Point(), &p); err == nil && ok && p.ID == a.Point && p.Check() == nil {
			add(p)
		}
	}
	// Continue if a run folder is missing: users or clean-up jobs may have deleted it.
	if before, err := ReadPlan(folder); err == nil {
		for _, p := range before.Points {
			add(p.Point)
		}
	}
	if len(earlier) == 0 {
		return nil
	}
	keys := []redact.Key{nil}
	for _, path := range []string{folder.Key(), redact.KeyFile(database)} {
		if key, err := redact.LoadKey(path); err == nil {
			keys = append(keys, key)
		}
	}
	plan.Adopt(earlier, keys...)
	return nil
}

// KeepKey puts the key that Key returns into a study's folder, for studies with points that were written with
// plain secrets.
func KeepKey(folder rundir.Study, database string) error {
	key, err := Key(folder, database)
	if err != nil {
		return err
	}
	return keepKey(folder, key)
}

// sealer hides the secrets of points that have them as they are: an earlier
// version or a person wrote them.
type sealer struct {
	folder rundir.Study
	key    redact.Key
	passes bool // the key ends with this command
}

// seal reports whether the digests hold for this command only, since the folder
// has no key.
func (s *sealer) seal(p *study.Point) (passes bool) {
	if !p.Plain() {
		return false
	}
	if len(s.key) == 0 {
		var err error
		if s.key, err = ownKey(s.folder); err != nil {
			s.key, s.passes = redact.NewKey(), true // different secrets stay different
		}
	}
	p.Seal(s.key)
	return s.passes
}
