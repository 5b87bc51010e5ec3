package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/regular"
)

// output is what a program prints: its place in the log of its rank, behind
// that of earlier incarnations and the line in which we say what is started,
// which may hold what is looked for.
type output struct {
	log    string
	offset int64 // bytes, of the first that is the program's
}

// open is the log from the program's first byte. What came before is read as
// empty lines, so that lines keep their numbers.
func (o output) open() (io.ReadCloser, error) {
	f, err := regular.Open(o.log)
	if err != nil {
		return nil, err
	}
	lines := 0
	for r, buffer := io.NewSectionReader(f, 0, o.offset), make([]byte, 64<<10); ; {
		n, err := r.Read(buffer)
		lines += bytes.Count(buffer[:n], []byte("\n"))
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if _, err := f.Seek(o.offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(strings.Repeat("\n", lines)), f), f}, nil
}

// collect sees to it that a program of the user's that ended well has left its
// figures: rank 0 reported them, or they are read from its output.
func collect(s framework.Start, o output, begun time.Time) error {
	extractors, err := framework.Extractors(s.Point)
	if err != nil {
		return err
	}
	if len(extractors) > 0 {
		return extractEvents(s, extractors, o, begun)
	}
	if _, err := os.Stat(s.Run.EventFile("rank", 0, s.World.Restart)); err != nil {
		return fmt.Errorf("the program ended with 0 and has reported nothing (%w): let it call scalebench.step() of scalebench.py, or name what to read from its output in command.extract", err)
	}
	return nil
}

// extractEvents reads what the program of the first rank has written, as the
// study names the formats, and writes the events of all ranks: one file, which
// speaks for the whole run. An extractor that finds nothing is an error, and
// nothing is then written.
func extractEvents(s framework.Start, extractors []extract.Extractor, o output, begun time.Time) error {
	c := s.Point.Command
	read := o.open
	name := filepath.Base(o.log)
	if c.Log != "" {
		path, err := oneFile(s.Run.Output(), framework.Expand(c.Log, s))
		if err != nil {
			return err
		}
		name, read = path, func() (io.ReadCloser, error) { return regular.Open(path) }
		if below, err := filepath.Rel(s.Run.Path(), path); err == nil {
			name = below
		}
	}
	var found []metrics.Event
	start := metrics.Start{Format: metrics.FormatVersion, Unix: float64(begun.UnixNano()) / 1e9, Writer: "rank", Framework: s.Point.Framework,
		Rank: 0, WorldSize: s.World.Size, Ranks: s.World.Size, Restart: s.World.Restart, PID: os.Getpid()}
	start.Host, _ = os.Hostname()
	for i, e := range extractors {
		r, err := extractFrom(read, e, extract.Options{File: name, Workers: s.Point.Workers, WorkerBatch: s.Point.WorkerBatch, Columns: c.Columns})
		if err != nil {
			return err
		}
		if r.Failed != "" {
			return fmt.Errorf("%s: %s", name, r.Failed)
		}
		if i == 0 && r.StartUnix > 0 {
			start.Unix = r.StartUnix
		}
		for _, event := range r.Events() {
			// A clock and an end are the run's, once.
			if event.Stop == nil && (i == 0 || event.Train == nil) {
				found = append(found, event)
			}
		}
	}
	return writeExtracted(s.Run, start, found, begun)
}

func extractFrom(open func() (io.ReadCloser, error), e extract.Extractor, o extract.Options) (extract.Result, error) {
	r, err := open()
	if err != nil {
		return extract.Result{}, fmt.Errorf("the log to read: %w", err)
	}
	defer r.Close()
	return e.Extract(r, o)
}

// oneFile is the one file that a pattern names below the output folder.
func oneFile(folder, pattern string) (string, error) {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(folder, pattern)
	}
	files, err := filepath.Glob(pattern)
	switch {
	case err != nil:
		return "", fmt.Errorf("command.log: %s: %w", pattern, err)
	case len(files) == 0:
		return "", fmt.Errorf("command.log: the program ended and has left no %s", pattern)
	case len(files) > 1:
		return "", fmt.Errorf("command.log: %s names %d files (%s, %s, …); one log is one run: name the one to read", pattern, len(files), filepath.Base(files[0]), filepath.Base(files[1]))
	}
	return files[0], nil
}

// writeExtracted writes the event file of rank 0 whole.
func writeExtracted(run rundir.Run, start metrics.Start, found []metrics.Event, begun time.Time) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	end := time.Since(begun).Seconds()
	stop := metrics.Stop{Status: metrics.StopDone}
	events := append([]metrics.Event{{Start: &start}}, found...)
	for _, e := range found {
		end = max(end, e.Time)
		switch {
		case e.Steps != nil:
			stop.Steps = max(stop.Steps, e.Steps.First+len(e.Steps.Duration))
		case e.Epoch != nil:
			stop.Steps, stop.Epochs = max(stop.Steps, e.Epoch.Step), max(stop.Epochs, e.Epoch.Epoch)
		}
	}
	for _, e := range append(events, metrics.Event{Time: end, Stop: &stop}) {
		if err := e.Validate(); err != nil {
			return fmt.Errorf("what was read is no event: %w", err)
		}
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	path := run.EventFile("rank", start.Rank, start.Restart)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already: the program reports by scalebench.py, and command.extract reads its output as well; keep one", filepath.Base(path))
	}
	return rundir.WriteFile(path, text.Bytes(), 0o644)
}
