package launcher

import (
	"github.com/scalebench/scalebench/launcher/rundir"
)

// Unread returns a study's attempts that cannot be read, by Unreadable, those without a recorded
// verdict, and how many attempts the study has. It does not read those that known reports by
// their run id.
func Unread(folder rundir.Study, known func(run string) bool) (unread, open []*Attempt, all int, err error) {
	entries, err := folder.Attempts()
	if err != nil {
		return nil, nil, 0, err
	}
	seals := &sealer{folder: folder}
	for _, e := range entries {
		if known(e.Run.ID()) {
			continue
		}
		a, err := load(e, seals)
		if err == nil {
			_, err = ReadTraces(e.Run)
		}
		switch {
		case err != nil:
			a := &Attempt{Run: e.Run, Number: e.Number, Unreadable: err}
			a.Point.ID, a.Point.Repeat, a.Record.ID = e.Point, e.Repeat, e.Run.ID()
			unread = append(unread, a)
		case a.Verdict == nil:
			open = append(open, a)
		}
	}
	return unread, open, len(entries), nil
}
