package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/summary"
)

// ErrImported means that the file was imported before with other settings.
var ErrImported = errors.New("imported before with other settings")

// ErrAbsurd means that a run has values that cannot be stored.
var ErrAbsurd = errors.New("not a run that can be stored")

// An Imported is a run that was read from another program's log.
type Imported struct {
	Run    metrics.Run
	Events iter.Seq[metrics.Event] // can be iterated several times; nil: no events
	From   Source
	// BeganUnix is the time at which the run began, or its position in the order of the runs in
	// its table; 0: unknown. Run.Repeat is its block; 0 for none.
	BeganUnix float64
}

// Import stores runs that were read from other programs' logs, with their events. If there is an
// error, including one from the sequence runs, it stores none of them. Each run gets the ID
// "STUDY/POINT-rN-a1", in which N is the next repeat of its point. Importing the same part of the
// same file again with the same settings changes nothing. With other settings, it replaces the
// run if Source.Replace is set, and else returns ErrImported.
//
// It holds one run in memory at a time. If each is not nil, it is called with the report of a run
// when the next run is read, which is before the transaction is committed.
func (s *Store) Import(ctx context.Context, runs iter.Seq2[Imported, error], each func(Report)) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		all := newImporting(ctx, s, tx)
		for run, err := range runs {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			report, err := all.one(run)
			if err != nil {
				return fmt.Errorf("%s: %w", run.From.Path, err)
			}
			if each != nil {
				each(report)
			}
		}
		return all.settle()
	})
}

// importing is the state of one call of Import, inside its transaction.
type importing struct {
	ctx      context.Context
	store    *Store
	tx       *sql.Tx
	rows     *bulk
	measures catalogue
	keys     map[string]bool              // parameter keys that are stored already
	studies  map[string]string            // ID by name, for studies of which runs were stored
	repeats  map[studyPoint]int           // largest repeat of each point
	fresh    map[string]bool              // studies all of whose points are in repeats
	hidden   func(name string, v any) any // value of a parameter without secrets
	withheld func(name string, v any) any // the same for prose, with a word instead of digests
	indices  *indices

	// The current file; its row in the table source (0: none); hashes of its parts read so far;
	// and whether some run of the file, or of an earlier version of its table, may be stored
	// already.
	file   Source
	source int64
	parts  map[uint64]struct{}
	stored bool
}

type studyPoint struct{ study, point string }

// rememberedPoints limits the size of importing.repeats, because each row of a table can be a
// point.
const rememberedPoints = 10000

func newImporting(ctx context.Context, s *Store, tx *sql.Tx) *importing {
	return &importing{ctx: ctx, store: s, tx: tx, rows: newBulk(tx), measures: catalogue{}, keys: map[string]bool{}, studies: map[string]string{},
		repeats: map[studyPoint]int{}, fresh: map[string]bool{}, hidden: redact.Hider(s.digests.hide).Remembering(), withheld: redact.Hider(redact.Key(nil).Hide).Remembering(), indices: &indices{tx: tx, few: fewRuns}}
}

// settle inserts buffered rows and creates dropped indices. It must be called before stored rows
// are read or changed, and at the end.
func (all *importing) settle() error {
	if err := all.rows.flush(); err != nil {
		return err
	}
	return all.indices.create()
}

// hide returns a text with secrets hidden.
func (all *importing) hide(text string) string { return all.hidden("", text).(string) }

// prose returns a function that hides the given secrets in a text, and those that are recognised.
func (all *importing) prose(secrets []string) func(text string) string {
	if len(secrets) > 0 {
		return redact.Known(secrets)
	}
	return func(text string) string { return all.withheld("", text).(string) }
}

func (all *importing) one(i Imported) (report Report, err error) {
	tx := all.tx
	run, events, from := withoutSecrets(i.Run, all.prose(i.Run.Secrets), all.hidden), i.Events, i.From
	if events == nil {
		events = slices.Values([]metrics.Event(nil))
	}
	for e := range events { // events must be as valid as those of ranks
		if err := e.Validate(); err != nil {
			return report, absurd(from, err)
		}
	}
	facts, err := importFacts(run, i.BeganUnix, events, from)
	if err != nil {
		return report, absurd(from, err)
	}
	may, err := all.mayBeStored(from)
	if err != nil {
		return report, err
	}
	var id, source int64
	var name, study, point string
	var before []byte
	var repeat int
	known := func(where string, args ...any) error {
		if from.Rows != "" { // rows of a table may be of several studies
			where, args = where+" AND r.study = ?", append(args, run.Study)
		}
		return tx.QueryRow("SELECT r.id, r.name, r.study, r.point, r.repeat, i.facts, i.source FROM import i JOIN source s ON s.id = i.source JOIN every_run r ON r.id = i.run WHERE "+where, args...).
			Scan(&id, &name, &study, &point, &repeat, &before, &source)
	}
	grown := false
	err = sql.ErrNoRows
	if may {
		err = known("s.sha256 = ? AND i.part = ?", from.SHA256, from.Part)
	}
	if may && errors.Is(err, sql.ErrNoRows) && from.Rows != "" {
		err = known("i.rows = ? AND i.rows <> x'' AND s.origin = ?", []byte(from.Rows), from.Origin)
		grown = err == nil
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return report, err
	case bytes.Equal(before, facts):
		return Report{Run: name}, nil
	case !from.Replace && !(grown && study == run.Study && point == run.Point): // the table has grown by further epochs of the same run
		return report, fmt.Errorf("%w, as run %s", ErrImported, name)
	default:
		for _, query := range []string{
			"UPDATE study SET arranged = 0 WHERE name = (SELECT study FROM every_run WHERE id = ?1)",
			"DELETE FROM every_run WHERE id = ?1",
			"DELETE FROM source WHERE id = ?2 AND NOT EXISTS (SELECT 1 FROM import WHERE source = ?2)",
		} {
			if _, err := tx.Exec(query, id, source); err != nil {
				return report, err
			}
		}
		clear(all.repeats)
		clear(all.fresh)
		all.source = 0 // the row may be deleted
	}
	if study == run.Study && point == run.Point {
		run.Repeat = repeat // the repeat of the run that is replaced
	} else if run.Repeat, err = all.nextRepeat(run.Study, run.Point, run.Repeat); err != nil {
		return report, err
	}
	run.Attempt = 1
	run.ID = fmt.Sprintf("%s/%s-r%d-a1", run.Study, run.Point, run.Repeat)
	return all.run(run, events, from, facts, i.BeganUnix)
}

func absurd(from Source, err error) error {
	if from.Part != "" {
		err = fmt.Errorf("%s: %w", from.Part, err)
	}
	return fmt.Errorf("%w: %w", ErrAbsurd, err)
}

// nextRepeat returns the repeat for a new run. It is block if no run of the point has that repeat
// or a later one, and otherwise the first number after all runs of the point.
func (all *importing) nextRepeat(study, point string, block int) (n int, err error) {
	at, fresh := studyPoint{study, point}, false
	n, known := all.repeats[at]
	if !known {
		if len(all.repeats) == rememberedPoints {
			clear(all.repeats)
			clear(all.fresh)
		}
		if _, seen := all.studies[study]; !seen {
			if err := all.tx.QueryRow("SELECT NOT EXISTS (SELECT 1 FROM study WHERE name = ?)", study).Scan(&fresh); err != nil {
				return 0, err
			}
			all.fresh[study] = fresh
		}
		if !all.fresh[study] {
			if err := all.settle(); err != nil {
				return 0, err
			}
			if err := all.tx.QueryRow("SELECT coalesce(max(repeat), 0) FROM every_run WHERE study = ? AND point = ?", study, point).Scan(&n); err != nil {
				return 0, err
			}
		}
	}
	n = max(n+1, block)
	all.repeats[at] = n
	return n, nil
}

// importFacts returns a digest of a run as imported. It excludes the file's modification time,
// which copying changes, and the numbers that Import assigns.
func importFacts(run metrics.Run, began float64, events iter.Seq[metrics.Event], from Source) ([]byte, error) {
	block := run.Repeat
	run.ID, run.Repeat, run.Attempt, run.CreatedUnix, run.Dir, run.Detail = "-", 1, 1, 0, "", ""
	text, err := record(run)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	fmt.Fprintf(h, `{"Run":%s,"Format":%q}`, text, from.Format)
	if began > 0 && from.Rows != "" || block > 0 { // the time of a log is among its events
		fmt.Fprintf(h, `{"Began":%v,"Block":%d}`, began, block)
	}
	for e := range events {
		if e.Start != nil {
			continue // it contains the host and the file's time
		}
		if e.Figure != nil { // it contains the file's path, and a line that may move if the table changes
			f := *e.Figure
			f.File = ""
			if from.Rows != "" {
				f.Line = 0
			}
			e.Figure = &f
		}
		if text, err = json.Marshal(e); err != nil {
			return nil, err
		}
		h.Write(text)
	}
	return h.Sum(nil), nil
}

// run stores a new run.
func (all *importing) run(run metrics.Run, events iter.Seq[metrics.Event], from Source, facts []byte, began float64) (report Report, err error) {
	report = Report{Run: run.ID, Changed: true, Files: 1}
	if run.StudyID, err = all.study(run); err != nil {
		return report, err
	}
	if !all.stored {
		if err := all.indices.another(); err != nil {
			return report, err
		}
	}
	id, err := all.store.insertRun(all.tx, all.rows, run, "", all.keys)
	if err != nil {
		return report, err
	}
	if all.source == 0 {
		if all.source, err = putSource(all.tx, from); err != nil {
			return report, err
		}
	}
	if err := all.rows.insert("INSERT INTO import (run, source, part, facts, rows, began) VALUES (?, ?, ?, ?, ?, ?)", id, all.source, from.Part, facts, []byte(from.Rows), began); err != nil {
		return report, err
	}
	in := newIngest(all.ctx, all.tx, id, &report, hiders{all.hide, all.hide}, all.measures, all.rows)
	if err := in.derive(metrics.EventFile{Path: from.Path, Writer: "rank"}, 0, from.Bytes, events); err != nil {
		return report, err
	}
	if input := stated(run, all.hiding(events)); input != nil {
		return report, in.summarize(input, nil)
	}
	if err := all.settle(); err != nil {
		return report, err
	}
	if err := in.steps(); err != nil {
		return report, err
	}
	input, evaluations, err := in.summaryInput()
	if err != nil {
		return report, err
	}
	return report, in.summarize(input, evaluations)
}

// hiding returns the events with secrets hidden. The sequence can be iterated several times.
func (all *importing) hiding(events iter.Seq[metrics.Event]) iter.Seq[metrics.Event] {
	return func(yield func(metrics.Event) bool) {
		for e := range events {
			hideIn(&e, all.hide, all.hide)
			if !yield(e) {
				return
			}
		}
	}
}

// startsWith returns the first event if it is a start event; nil otherwise.
func startsWith(events iter.Seq[metrics.Event]) *metrics.Start {
	for e := range events {
		return e.Start
	}
	return nil
}

// stated returns the same as summaryInput would, but directly from the events, because reading
// them back from the database would take a quarter of an import's time. It is for runs with a
// single writer and no steps or host information, such as a log; for others it returns nil.
func stated(run metrics.Run, events iter.Seq[metrics.Event]) *summary.Input {
	s := startsWith(events)
	if s == nil {
		return nil
	}
	rank := summary.Rank{Rank: s.Rank, Ranks: s.Covers(), World: s.WorldSize}
	input := summary.Input{Kind: run.Kind, Workers: run.Workers, World: s.WorldSize, Restart: s.Restart, Restarts: []int{s.Restart}}
	input.MFU, input.SampleTokens = summary.MFUOf(run.Parameters), summary.SampleTokens(run.Parameters)
	input.Device, _ = run.Parameters["resources.device"].(string)
	input.BatchNorm, _ = run.Parameters["workload.batch_norm"].(string)
	list, _ := run.Parameters[measure.TargetsKey].([]any)
	for _, target := range list {
		if t, err := measure.ParseTarget(fmt.Sprint(target)); err == nil {
			input.Targets = append(input.Targets, t)
		}
	}
	said := map[string]bool{}
	first := true
	for e := range events {
		switch {
		case first:
			first = false
		case e.Figure != nil:
			input.Add(*e.Figure)
			input.State(e.Time, *e.Figure)
		case e.Note != nil:
			if !said[e.Note.Text] {
				said[e.Note.Text] = true
				input.Notes = append(input.Notes, e.Note.Text)
			}
		case e.Train != nil && rank.Train == nil:
			at := e.Time
			rank.TrainTime = &at
			rank.Train = &metrics.Train{ParameterSHA256: e.Train.ParameterSHA256, DataSHA256: e.Train.DataSHA256}
		case e.Epoch != nil:
			input.EpochEnds = append(input.EpochEnds, e.Epoch.Step)
			rank.Epochs = max(rank.Epochs, e.Epoch.Epoch)
		case e.Evaluation != nil && s.Rank == 0:
			v := e.Evaluation
			input.Evaluations = append(input.Evaluations, summary.Evaluation{Time: e.Time, Epoch: v.Epoch, Step: v.Step, Trained: v.Trained, Accuracy: v.Accuracy, Loss: v.Loss})
		case e.Stop != nil && rank.Stop == nil:
			rank.Stop = &metrics.Stop{Status: e.Stop.Status, ParameterSHA256: e.Stop.ParameterSHA256}
		default:
			return nil
		}
	}
	slices.SortStableFunc(input.Evaluations, func(a, b summary.Evaluation) int { return cmp.Compare(a.Time, b.Time) })
	input.Ranks = []summary.Rank{rank}
	input.Places = []summary.Place{{Ranks: s.Covers(), Host: s.Host}}
	return &input
}

// study returns the ID of the study into which a run is imported, and records that the study has
// changed.
func (all *importing) study(run metrics.Run) (id string, err error) {
	if id, known := all.studies[run.Study]; known {
		return id, nil
	}
	if run.StudyID, err = importedInto(all.tx, run.Study); err != nil {
		return "", err
	}
	if err := ofStudy(all.tx, run); err != nil {
		return "", err
	}
	if err := disarrange(all.tx, run.Study); err != nil {
		return "", err
	}
	all.studies[run.Study] = run.StudyID
	return run.StudyID, nil
}
