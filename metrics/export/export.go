// Package export writes the runs of a study in formats that other programs read. Each format
// is one file with one Format value; Formats lists them.
//
// Every format has every selected run: a run without good results is marked as such, or, where
// the other program knows no such runs, left out with a note. Values are those of the database,
// in base units, and are neither rounded nor averaged. A missing value is absent, never 0.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Format is a way to write runs for another program. Exactly one of file and folder is set.
type Format struct {
	Name   string
	About  string // what reads it, in one line
	Suffix string // of the default output
	// OneRun is set if the output describes a single run.
	OneRun bool

	file   func(context.Context, *Source, io.Writer) error
	folder func(ctx context.Context, s *Source, dir string) error
}

// Formats lists the formats in the order of the help. Parquet comes first; the bundle of the GPU
// check is built without it (tag training), because its library is the largest part of the program.
var Formats = []Format{openMetricsFormat, junitFormat, traceFormat, mlflowFormat, tensorBoardFormat, extraPFormat, otlpFormat}

// Find returns the format with the given name. The error lists the valid names.
func Find(name string) (Format, error) {
	if i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name }); i >= 0 {
		return Formats[i], nil
	}
	return Format{}, fmt.Errorf("unknown format %q; valid: %s", name, strings.Join(names(), ", "))
}

// names returns the names of all formats.
func names() []string {
	list := make([]string, len(Formats))
	for i, f := range Formats {
		list[i] = f.Name
	}
	return list
}

// A Source is the runs to export.
type Source struct {
	DB      *store.Store
	Name    string // name of the study
	Program string // name and version of this program
	Runs    []store.RunRow
	Notes   []string // sentences on what the format cannot express; set by Write and Save
}

// each calls f with the facts of every run.
func (s *Source) each(ctx context.Context, f func(*store.RunFacts) error) error {
	return s.DB.EachFacts(ctx, s.Runs, func(r *store.RunFacts) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(r)
	})
}

// leftOut adds a note that the format has no place for some runs.
func (s *Source) leftOut(runs int, why string) {
	if runs > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%s of %d left out: %s", number.Count(runs, "run"), len(s.Runs), why))
	}
}

// Folder reports whether the format writes a folder instead of a file.
func (f Format) Folder() bool { return f.folder != nil }

// Write writes the runs to w. The format must write a file.
func (f Format) Write(ctx context.Context, s *Source, w io.Writer) error { return f.file(ctx, s, w) }

// ErrExists means that the output exists and was not replaced.
var ErrExists = errors.New("exists and was left unchanged")

// Save writes the runs to a file or folder, which appears when it is complete. An existing file is
// replaced only if replace is set; a folder, which may hold more than an export, never is.
func (f Format) Save(ctx context.Context, s *Source, path string, replace bool) (err error) {
	taken := func() error { return fmt.Errorf("%s %w", path, ErrExists) }
	if _, err := os.Lstat(path); err == nil && (f.Folder() || !replace) {
		return taken()
	}
	dir, err := sharedfs.MkdirTemp(filepath.Dir(path), ".new-", sharedfs.ModeFolder) // the umask applies
	if err != nil {
		return fmt.Errorf("cannot write %s: its folder %s: %w", path, filepath.Dir(path), cause(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if f.Folder() {
		if err := f.folder(ctx, s, dir); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
		err = sharedfs.Place(dir, path)
	} else {
		temporary := filepath.Join(dir, "export")
		if err := sharedfs.Replace(temporary, sharedfs.ModeOpen, func(w io.Writer) error { return f.file(ctx, s, w) }); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, cause(err))
		}
		if replace {
			err = sharedfs.Rename(temporary, path)
		} else {
			err = sharedfs.Put(temporary, path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return taken()
	case err != nil:
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	return nil
}

// cause returns a path error without its path, which is that of a temporary file.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// create creates a file in an export's folder, writes it, and closes it.
func create(dir, name string, write func(io.Writer) error) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), sharedfs.ModeFolder); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, sharedfs.ModeOpen)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
