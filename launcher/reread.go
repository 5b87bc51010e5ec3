package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// A Reread is a run's output that is read with other patterns than before.
type Reread struct {
	attempt *Attempt
	reading framework.Reading
	Restart int
}

// PlanReread returns how to read the output of a good run if the study now asks for something else than the run
// was read with, or nil. again also returns it if the patterns are the same.
func (a *Attempt) PlanReread(asked framework.Reading, again bool) (*Reread, error) {
	was := framework.ReadingOf(a.Point.Command)
	none := func(r framework.Reading) bool { return len(r.Extract)+len(r.Patterns) == 0 }
	if none(was) || none(asked) || slices.Contains(asked.Extract, framework.Time) || reflect.DeepEqual(was, asked) && !again {
		return nil, nil
	}
	restarts, err := a.Run.Restarts()
	if err != nil {
		return nil, err
	}
	r := &Reread{attempt: a, reading: asked}
	if n := len(restarts); n > 0 {
		r.Restart = restarts[n-1]
	}
	return r, nil
}

// From identifies the output and the patterns that are read: equal names mean equal events.
func (r *Reread) From() string {
	text, err := json.Marshal(r.reading)
	if err != nil {
		panic(err) // strings
	}
	sum := sha256.Sum256(text)
	return r.attempt.Run.RankLog(framework.Printer(r.attempt.Point)) + "#" + hex.EncodeToString(sum[:6])
}

// Parameters returns the point's parameters with the new patterns.
func (r *Reread) Parameters() map[string]any {
	p := r.attempt.Point
	p.Command = r.reading.Into(p.Command)
	return p.Parameters()
}

// Events reads the run's output and returns the events. It does not change the run folder.
func (r *Reread) Events() ([]metrics.Event, error) {
	point, run := r.attempt.Point, r.attempt.Run
	point.Command = r.reading.Into(point.Command)
	var printed framework.Output
	ok, err := readJSON(run, run.Printed(r.Restart), &printed)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%s: %w", run.Printed(r.Restart), fs.ErrNotExist)
	case printed.Start.Rank != 0 || printed.Start.Restart != r.Restart || printed.Start.Writer != "rank":
		return nil, errors.New(run.Printed(r.Restart) + " belongs to another run")
	}
	extractors, err := framework.Extractors(point)
	if err != nil {
		return nil, err
	}
	w := world.World{Size: printed.Start.WorldSize, Restart: r.Restart, Nodes: max(point.Nodes, 1), LocalSize: max(point.WorkersPerNode, 1)}
	printed.Within = trust.CheckFilesOnly(run.Path(), run.Point()) != nil
	return printed.Events(framework.Rank{Point: point, Run: run, World: w}, extractors)
}
