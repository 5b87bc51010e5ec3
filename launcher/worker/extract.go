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
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// collect sees to it that a program of the user's that ended well has left its
// figures: rank 0 reported them, or they are read from the output of this rank.
func collect(s framework.Rank, o output, begun time.Time) error {
	extractors, err := framework.Extractors(s.Point)
	if err != nil {
		return err
	}
	if len(extractors) > 0 && !(slices.Contains(s.Point.Command.Extract, framework.Recognised) && reported(s)) {
		return extractEvents(s, extractors, o, begun)
	}
	if _, err := os.Stat(s.Run.EventFile("rank", 0, s.World.Restart)); err != nil {
		if errors.Is(err, fs.ErrNotExist) && slices.Contains(s.Point.Command.Extract, framework.Time) {
			return extractEvents(s, nil, o, begun)
		}
		return fmt.Errorf("the program succeeded but reported nothing (%w): call scalebench.step() in it, or set command.extract (\"time\" records only its run time)", err)
	}
	return nil
}

// reported reports whether the program wrote events itself.
func reported(s framework.Rank) bool {
	_, err := os.Stat(s.Run.EventFile("rank", 0, s.World.Restart))
	return err == nil
}

// extractEvents reads the output of this rank's program with the study's extractors, and writes the events of
// the whole run into one file. It keeps what is needed to read the output again in another way. If an extractor
// finds nothing, it returns an error and writes no event.
func extractEvents(s framework.Rank, extractors []extract.Extractor, o output, begun time.Time) error {
	start := metrics.Start{Format: metrics.FormatVersion, Unix: float64(begun.UnixNano()) / 1e9, Writer: "rank", Framework: s.Point.Framework,
		Rank: 0, WorldSize: s.World.Size, Ranks: s.World.Size, Restart: s.World.Restart, PID: os.Getpid()}
	start.Host, _ = os.Hostname()
	written := framework.Output{Start: start, Rank: s.World.Rank, Offset: o.offset, Seconds: time.Since(begun).Seconds()}
	record, err := json.Marshal(written)
	if err != nil {
		return err
	}
	if err := rundir.WriteFile(s.Run.Printed(s.World.Restart), append(record, '\n'), sharedfs.ModeOpen); err != nil {
		return err
	}
	events, err := written.Events(s, extractors)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for _, e := range events {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	path := s.Run.EventFile("rank", start.Rank, start.Restart)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s already exists: the program reports through scalebench.py, and command.extract reads its output too; keep one of them", filepath.Base(path))
	}
	return rundir.WriteFile(path, text.Bytes(), sharedfs.ModeOpen)
}

// An output is the log that a program prints to, and the offset of its first byte.
type output struct {
	log    string
	offset int64 // bytes, of the first that is the program's
}

// end returns the end of the program's output; "" if it cannot be read.
func (o output) end() string {
	f, err := os.Open(o.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(o.offset, info.Size()-DiagnosedTail)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return ""
	}
	return string(text)
}
