package framework

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Output describes the output of the user's program. It is kept with the run, so that other extractors can read
// the output later.
type Output struct {
	Start   metrics.Start `json:"start"`          // start event of the generated events, which cover all ranks
	Rank    int           `json:"rank,omitempty"` // rank whose log it is; see Printer
	Offset  int64         `json:"offset"`         // bytes, in that log, of the first that is the program's
	Seconds float64       `json:"seconds"`        // from the start to the program's end

	// Within refuses to read files outside the run folder: another user may have written
	// it. A study's own run may keep its log elsewhere.
	Within bool `json:"-"`
}

// Printer returns the rank whose supervisor reads the output of a point's command, after its own program has
// ended. Other ranks may still be printing.
func Printer(p study.Point) int {
	switch {
	case p.Command.PrintedBy != study.LastRank, once(p):
		return 0
	case command.OncePerNode(p):
		return p.Workers - p.WorkersPerNode
	}
	return p.Workers - 1
}

// A Reading describes how to read a command's output.
type Reading struct {
	Extract  []string        `json:"extract,omitempty"`
	Log      string          `json:"log,omitempty"`
	Columns  study.Variables `json:"columns,omitempty"`
	Patterns []study.Pattern `json:"patterns,omitempty"`
}

// ReadingOf returns how a command's output is read.
func ReadingOf(c study.Command) Reading { return Reading{c.Extract, c.Log, c.Columns, c.Patterns} }

// Into returns the command with the Reading's extractors.
func (r Reading) Into(c study.Command) study.Command {
	c.Extract, c.Log, c.Columns, c.Patterns = r.Extract, r.Log, r.Columns, r.Patterns
	return c
}

// stopAfter returns the stop event of a run with these events that ended after this many seconds.
func stopAfter(found []metrics.Event, seconds float64) metrics.Event {
	stop := metrics.Stop{Status: metrics.StopDone}
	for _, e := range found {
		seconds = max(seconds, e.Time)
		switch {
		case e.Steps != nil:
			stop.Steps = max(stop.Steps, e.Steps.First+len(e.Steps.Duration))
		case e.Epoch != nil:
			stop.Steps, stop.Epochs = max(stop.Steps, e.Epoch.Step), max(stop.Epochs, e.Epoch.Epoch)
		}
	}
	return metrics.Event{Time: seconds, Stop: &stop}
}

// Events returns the events that the extractors of the point's command find in the output. An extractor that
// finds nothing is an error.
func (o Output) Events(s Rank, extractors []extract.Extractor) ([]metrics.Event, error) {
	c := s.Point.Command
	log, folder := s.Run.RankLog(o.Rank), ""
	if o.Within {
		folder = s.Run.Path()
	}
	read := func() (io.ReadCloser, error) { return openAt(folder, log, o.Offset) }
	name := filepath.Base(log)
	if c.Log != "" {
		path, err := oneFile(s.Run.Output(), expand(c.Log, s))
		if err != nil {
			return nil, err
		}
		name, read = path, func() (io.ReadCloser, error) { return openAt(folder, path, 0) }
		if below, err := filepath.Rel(s.Run.Path(), path); err == nil {
			name = below
		}
	}
	batch := 0 // a command without {batch} uses a batch size that is unknown here
	if s.Point.ReceivesBatch() {
		batch = s.Point.WorkerBatch
	}
	start := o.Start
	var found []metrics.Event
	for i, e := range extractors {
		r, err := extractFrom(read, e, extract.Options{File: name, Workers: s.Point.Workers, WorkerBatch: batch, Sharing: s.Point.Replica(), Columns: c.Columns})
		if err != nil {
			return nil, err
		}
		if r.Failed != "" {
			return nil, fmt.Errorf("%s: %s", name, r.Failed)
		}
		if i == 0 && r.StartUnix > 0 {
			start.Unix = r.StartUnix
		}
		for event := range r.Events() {
			// A clock and an end are the run's, once.
			if event.Stop == nil && (i == 0 || event.Train == nil) {
				found = append(found, event)
			}
		}
	}
	events := slices.Concat([]metrics.Event{{Start: &start}}, found, []metrics.Event{stopAfter(found, o.Seconds)})
	for _, e := range events {
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("what was read is not an event: %w", err)
		}
	}
	return events, nil
}

// openAt opens a log at the program's first byte. Earlier incarnations and the supervisor's line before it
// could match a pattern, so they are replaced by empty lines, which keeps line numbers correct.
func openAt(folder, log string, offset int64) (io.ReadCloser, error) {
	f, err := sharedfs.OpenIn(folder, log)
	if err != nil {
		return nil, err
	}
	lines := 0
	for r, buffer := io.NewSectionReader(f, 0, offset), make([]byte, 64<<10); ; {
		n, err := r.Read(buffer)
		lines += bytes.Count(buffer[:n], []byte("\n"))
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	now, err := sharedfs.Present(f, offset)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(strings.Repeat("\n", lines)), now), f}, nil
}

func extractFrom(open func() (io.ReadCloser, error), e extract.Extractor, o extract.Options) (extract.Content, error) {
	r, err := open()
	if err != nil {
		return extract.Content{}, fmt.Errorf("the log to read: %w", err)
	}
	defer r.Close()
	return e.Extract(r, o)
}

// oneFile returns the only file that matches a pattern in the output folder.
func oneFile(folder, pattern string) (string, error) {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(folder, pattern)
	}
	files, err := filepath.Glob(pattern)
	switch {
	case err != nil:
		return "", fmt.Errorf("command.log: %s: %w", pattern, err)
	case len(files) == 0:
		return "", fmt.Errorf("command.log: the program ended without writing %s", pattern)
	case len(files) > 1:
		more := ""
		if len(files) > 2 {
			more = ", …"
		}
		return "", fmt.Errorf("command.log: %s names %d files (%s, %s%s); one log is one run: name the one to read", pattern, len(files), filepath.Base(files[0]), filepath.Base(files[1]), more)
	}
	return files[0], nil
}
