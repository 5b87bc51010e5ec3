package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/clean"
)

// A tally looks at the runs of a study as `status --watch` does. Of runs that have ended, and of those
// planned, it keeps what the page shows of them: a study may have 100,000 runs.
type tally struct {
	watcher workspace.Watcher
	folder  rundir.Study
	briefs  query.Briefs
	ended   []query.Brief
	known   map[string]bool // names of the attempts in ended
	none    query.Spending  // before any attempt
	spent   query.Spending  // of attempts in ended
	planned []query.Brief   // all runs of the plan
	plan    string          // size and time of the plan that was read
	unread  error           // why the plan cannot be read
	shown   states
	counted int // ended attempts when shown was made
	present int // those that the last listing of the folder had
}

// tally returns the tally of a study.
func (s *Site) tally(ctx context.Context, e entry) *tally {
	return newTally(e.folder, s.options.Interval, s.reader(func(string) {}).Spending(ctx, e.arg, s.options.Site))
}

func newTally(folder rundir.Study, interval time.Duration, spent query.Spending) *tally {
	t := &tally{folder: folder}
	t.begin(interval, spent)
	return t
}

// begin forgets all that was read.
func (t *tally) begin(interval time.Duration, spent query.Spending) {
	*t = tally{folder: t.folder, briefs: query.Briefs{}, known: map[string]bool{}, none: spent, spent: spent}
	t.watcher = workspace.Watcher{Folders: []rundir.Study{t.folder}, Interval: interval,
		Known: func(run rundir.Folder) bool {
			known := t.known[run.Name()]
			if known {
				t.present++
			}
			return known
		},
		Ended: func(s launcher.State) {
			brief := t.briefs.Attempt(&s)
			t.ended = append(t.ended, brief)
			t.known[brief.Run()] = true
			t.spent.Add(&s)
		}}
}

// look returns the states of the runs.
func (t *tally) look(ctx context.Context) states {
	if t.folder == "" {
		return states{Progress: "All runs were imported.", begun: true}
	}
	lists, had := t.watcher.Lists, len(t.ended)
	t.present = 0
	news := t.readPlan()
	err := t.watcher.Look(ctx)
	if t.watcher.Lists != lists && t.present < had { // runs were forgotten
		t.begin(t.watcher.Interval, t.none)
		return t.look(ctx)
	}
	open := t.watcher.States()
	if !news && len(open) == 0 && len(t.ended) == t.counted && t.shown.begun {
		t.shown.Troubles = troubles(err, t.unread, t.watcher.Trouble, t.watcher.Unread)
		return t.shown
	}
	list, spent := slices.Clip(t.ended), t.spent
	for i := range open {
		list = append(list, t.briefs.Attempt(&open[i]))
		spent.Add(&open[i])
	}
	list = append(list, query.NotBegun(t.planned, list)...)
	next := states{begun: true, Progress: progress(list), Spending: spent, Grid: query.NewGrid(list), Troubles: troubles(err, t.unread, t.watcher.Trouble, t.watcher.Unread)}
	next.runs = named(open, next.Grid)
	t.shown, t.counted = next, len(t.ended)
	return next
}

func troubles(errs ...error) (list []string) {
	for _, err := range errs {
		if err != nil {
			list = append(list, clean.Line(err.Error()))
		}
	}
	return list
}

// readPlan reads the plan if it has changed, and reports whether it has.
func (t *tally) readPlan() bool {
	now := ""
	if info, err := os.Stat(t.folder.Plan()); err == nil {
		now = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	if now == t.plan {
		return false
	}
	t.plan, t.planned, t.unread = now, nil, nil
	err := launcher.EachPlanned(t.folder, func(p *study.Point) { t.planned = append(t.planned, t.briefs.Planned(p)) })
	if !errors.Is(err, fs.ErrNotExist) { // attempts have all that is needed of their points
		t.unread = err
	}
	return true
}

func progress(list []query.Brief) string {
	return clean.Line(query.Progress(list, float64(time.Now().UnixMilli())/1000))
}

// named returns the attempts that a grid names: their states if they have not ended.
func named(open []launcher.State, g *query.Grid) map[string]*launcher.State {
	runs := map[string]*launcher.State{}
	for _, row := range append(slices.Clone(g.Rows), query.GridRow{Cells: g.Notable}) {
		for _, c := range row.Cells {
			if c.Run != "" {
				runs[c.Run] = nil
			}
		}
	}
	for i, s := range open {
		if _, is := runs[s.Run.Name()]; is {
			runs[s.Run.Name()] = &open[i]
		}
	}
	return runs
}
