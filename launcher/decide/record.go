package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Record is the content of looks.json in a study's folder: the looks at its results so far.
type Record struct {
	Most  int            `json:"max_repeats"`
	Looks []metrics.Look `json:"looks"`
	// Target holds the number of good runs that each point needs before the next look, by point id. If the
	// command died, it was measuring these runs.
	Target map[string]int `json:"target"`
	// From has, by point ID, the first repeat number since counts were added next to an answer.
	// From this repeat on, old and added counts run in the same blocks.
	From map[string]int `json:"from,omitempty"`
	// Question has the options of the command line that set the question, such as "deadline": "2h", and
	// with prices, the path of the site file that --site named.
	Question map[string]string `json:"question,omitempty"`
}

// maxRecord is the maximum size of looks.json, in bytes.
const maxRecord = 16 << 20

// Read reads the record in a study's folder. If none exists, it returns an empty record.
func Read(folder rundir.Study) (*Record, error) {
	text, err := folder.ReadFile(folder.Looks(), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return &Record{}, nil
	}
	r := &Record{}
	if err == nil {
		err = r.parse(text)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s cannot be read: %w", folder.Looks(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w; move it away to forget the looks", folder.Looks(), err)
	}
	return r, nil
}

// parse decodes a record and checks it, since another user may have written the file.
func (r *Record) parse(text []byte) error {
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	number := map[string]int{}
	for i, l := range r.Looks {
		number[l.Series]++
		if l.Number != number[l.Series] || l.Runs < 0 || l.Rival < 0 {
			return fmt.Errorf("looks[%d] is look %d of %q after %d runs", i, l.Number, l.Series, l.Runs)
		}
		if _, err := sequential.NewDesign(l.Most); err != nil {
			return fmt.Errorf("looks[%d]: %w", i, err)
		}
	}
	return nil
}

// write replaces the record in a study's folder.
func (r *Record) write(folder rundir.Study) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return rundir.WriteFile(folder.Looks(), append(text, '\n'), sharedfs.ModeOpen)
}

// add adds a look. It replaces the last look of the same series if that was at the same runs: a
// command that was interrupted and started again counts as one look.
func (r *Record) add(l metrics.Look) {
	last := -1
	for i, known := range r.Looks {
		if known.Series == l.Series {
			last = i
		}
	}
	switch {
	case last < 0:
		l.Number = 1
	case r.Looks[last].Runs == l.Runs:
		l.Number = r.Looks[last].Number
		r.Looks[last] = l
		return
	default:
		l.Number = r.Looks[last].Number + 1
	}
	r.Looks = append(r.Looks, l)
}
