package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/scalebench/scalebench/metrics/store"
)

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
