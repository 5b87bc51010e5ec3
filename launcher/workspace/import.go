package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/store"
)

// csvFormat is the format of tables. All others are extractors of logs.
const csvFormat = "csv"

// ImportOptions configure how files become runs.
type ImportOptions struct {
	LogInfo
	Sets    []string // KEY=VALUE for all runs
	Labels  []string // KEY=COLUMN of a CSV file
	Decimal string   // sign before the decimals in a CSV file; "" to find out
	Sum     string   // column of a CSV file that distinguishes the parts of one run
	Replace bool     // replace runs of files that were imported with other settings

	say  func(string)                 // receives notes about a file
	hide func(name string, v any) any // hides the secrets in the value of a parameter
}

// An ImportedRun is a run to be stored, with its origin.
type ImportedRun struct {
	store.Imported
	Result extract.Content
}

// Import makes runs of files and stores them. It calls done for each run with its id and whether it is new or
// changed. An error in one file means that nothing is stored.
func Import(ctx context.Context, w *Workspace, o ImportOptions, files []string, done func(r ImportedRun, id string, changed bool)) error {
	sets, err := o.check(w, files)
	if err != nil {
		return err
	}
	path, err := w.Database()
	if err != nil {
		return err
	}
	keyed := sync.OnceValues(func() (redact.Key, error) { return redact.ReadKey(redact.KeyFile(path)) })
	o.hide = redact.Hider(func(secret string) string {
		key, err := keyed()
		if err != nil {
			w.Warn("%v", err) // the store then refuses runs with secrets
		}
		return key.Hide(secret)
	}).Remembering()
	// Make the first run before opening the database, so that an unreadable file creates none.
	next, stop := iter.Pull2(o.each(files, sets))
	defer stop()
	r, err, more := next()
	if err != nil {
		return err
	}
	w.Hold()
	db, err := openForWriting(path)
	if err != nil {
		return StoreError(err)
	}
	defer db.Close()
	var before []store.Source
	if o.From == csvFormat {
		if before, err = db.Tables(ctx); err != nil {
			return StoreError(err)
		}
	}
	origins := map[string]string{} // by path
	runs := func(yield func(store.Imported, error) bool) {
		for ; more; r, err, more = next() {
			if _, known := origins[r.From.Path]; err == nil && o.From == csvFormat && !known {
				origins[r.From.Path], err = origin(r.From, before)
			}
			r.From.Origin = origins[r.From.Path]
			if !yield(r.Imported, err) {
				return
			}
		}
	}
	err = db.Import(ctx, runs, func(report store.Report) { done(r, report.Run, report.Changed) })
	var refused *Error
	switch {
	case errors.Is(err, store.ErrImported):
		return &Error{Err: err, Hint: "--replace replaces that run."}
	case errors.As(err, &refused):
		return err
	case errors.Is(err, store.ErrAbsurd):
		return &Error{Err: err}
	case err != nil:
		return StoreError(err)
	}
	return StoreError(db.Arrange(ctx))
}

// DryRunImport makes runs of files without storing them.
func DryRunImport(w *Workspace, o ImportOptions, files []string, done func(ImportedRun)) error {
	sets, err := o.check(w, files)
	if err != nil {
		return err
	}
	for r, err := range o.each(files, sets) {
		if err != nil {
			return err
		}
		done(r)
	}
	return nil
}

// Formats says which formats a file has or, if none is recognised, which are valid, for an error. also are further
// valid names.
func Formats(file string, also ...string) string {
	var names []string
	if slices.Contains([]string{".csv", ".tsv", ".md"}, filepath.Ext(file)) {
		names = also
	} else if f, err := os.Open(file); err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() { // not a pipe, which may never end
			names = extract.Guess(f)
		}
	}
	if len(names) == 0 {
		return "valid: " + strings.Join(slices.Concat(also, extract.Names()), ", ")
	}
	return fmt.Sprintf("%s can be read with --from %s", file, strings.Join(names, ", or --from "))
}

// check checks the options and returns what Sets gives all runs.
func (o *ImportOptions) check(w *Workspace, files []string) (map[string]any, error) {
	if o.From == "" {
		return nil, Errorf("name the format of the files with --from; %s", Formats(files[0], csvFormat))
	}
	if o.From != csvFormat {
		if _, err := o.Extractor(); err != nil {
			return nil, err
		}
	}
	sets, err := o.given()
	if err != nil {
		return nil, err
	}
	if _, err := o.load(); err != nil {
		return nil, err
	}
	if _, err := extract.ParseDecimal(o.Decimal); err != nil {
		return nil, Errorf("--decimal: %v", err)
	}
	if o.From != csvFormat && (o.Decimal != "" || o.Sum != "") {
		return nil, Errorf("--decimal and --sum are for CSV files")
	}
	if _, err := o.mapped(); err != nil { // reported once, not for each file
		return nil, err
	}
	o.say = func(text string) { w.Note("%s", text) }
	o.hide = redact.Key(nil).Value
	return sets, nil
}

// each makes runs of the files, one by one. After an error in one file it reads the others only to report their
// errors.
func (o *ImportOptions) each(files []string, sets map[string]any) iter.Seq2[ImportedRun, error] {
	return func(yield func(ImportedRun, error) bool) {
		var problems []error
		for _, file := range files {
			stopped := false
			err := o.read(file, sets, func(r ImportedRun) bool {
				stopped = len(problems) == 0 && !yield(r, nil)
				return !stopped
			})
			if stopped {
				return
			}
			if err != nil {
				problems = append(problems, err)
			}
		}
		if err := errors.Join(problems...); err != nil {
			yield(ImportedRun{}, &Error{Err: err})
		}
	}
}

// origin returns the origin of the table of the same path, or of the largest table that
// this one begins with; for a new table its SHA-256. before is by rising size.
func origin(from store.Source, before []store.Source) (string, error) {
	if i := slices.IndexFunc(before, func(t store.Source) bool { return t.Path == from.Path }); i >= 0 {
		return before[i].Origin, nil
	}
	f, err := os.Open(from.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	found := from.SHA256
	sum, read := sha256.New(), int64(0)
	for _, t := range before {
		if t.Bytes > from.Bytes {
			break
		}
		n, err := io.CopyN(sum, f, t.Bytes-read)
		if read += n; err != nil {
			return "", fmt.Errorf("%s changed while it was read, from %d to %d bytes; import it again", from.Path, from.Bytes, read)
		}
		if hex.EncodeToString(sum.Sum(nil)) == t.SHA256 {
			found = t.Origin
		}
	}
	return found, nil
}
