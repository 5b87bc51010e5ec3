package launcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
)

// Log returns the log to look at first, which every command names: of the program whose failure was reported
// first, else of rank 0, else of the job, also if rank 0 printed nothing before the run ended. It is "" if no
// log exists yet.
func (s State) Log() string {
	if s.Traces.Log != "" {
		return s.Traces.Log
	}
	log, job := logOf(s.Run, 0), s.Run.JobLog()
	info, err := os.Stat(job)
	switch {
	case err != nil:
		return log
	case log == "":
		return job
	case s.Status.Terminal() && info.Size() > 0:
		if rank, err := os.Stat(log); err == nil && rank.Size() == 0 {
			return job
		}
	}
	return log
}

// LogOf returns the log of a rank's program, which other ranks of its node may share, or "" if it does not
// exist yet.
func (s State) LogOf(rank int) (string, error) {
	if n := s.Point.Ranks(); rank < 0 || n > 0 && rank >= n {
		if n == 1 {
			return "", fmt.Errorf("%s has no rank %d; its only rank is 0", s.Record.ID, rank)
		}
		return "", fmt.Errorf("%s has no rank %d; its ranks are 0 to %d", s.Record.ID, rank, n-1)
	}
	return logOf(s.Run, rank), nil
}

// Follow copies a log of a run and then what is appended to it, at every interval, until over returns true; it
// still copies what is there then. The error is the context's, the log's or the writer's.
func Follow(ctx context.Context, w io.Writer, run rundir.Folder, log string, interval time.Duration, over func() bool) error {
	var at int64
	var before os.FileInfo
	for {
		last := over()
		n, info, err := copyFrom(w, run, log, at, before)
		if err != nil {
			return err
		}
		if at = n; info != nil {
			before = info
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}

// copyFrom copies what a file contains after its first at bytes, and returns the new position: a program may
// print faster than the copy is read. A file that was replaced, or has become shorter, is copied from its
// beginning.
func copyFrom(w io.Writer, run rundir.Folder, path string, at int64, before os.FileInfo) (int64, os.FileInfo, error) {
	f, err := run.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return at, nil, nil
	}
	if err != nil {
		return at, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return at, nil, err
	}
	if before != nil && (!os.SameFile(before, info) || info.Size() < at) {
		at = 0
	}
	n, err := io.Copy(w, io.NewSectionReader(f, at, info.Size()-at))
	return at + n, info, err
}
