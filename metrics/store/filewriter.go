package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/scalebench/scalebench/metrics"
)

// fileWriter stores the events of one file.
type fileWriter struct {
	in     *ingest
	file   metrics.EventFile
	id     int64
	blocks map[int]*block // blocks with new steps, by number
	bad    *int           // number of bad lines so far; nil until the first bad line of this reading
	unkept int            // number of bad lines in this reading that were not stored because of maxBadLines
	// had records which of the events that may occur only once were seen. It is nil if a part of
	// the file was stored earlier; the database is then queried.
	had map[string]bool
}

// errLine is the error of a line whose event is well-formed but has impossible content. The line
// is then bad.
type errLine struct{ error }

func bad(format string, args ...any) error { return errLine{fmt.Errorf(format, args...)} }

// all stores all events that r has left to read.
func (w *fileWriter) all(r *metrics.Reader) error {
	for n := 0; ; n++ {
		if n%1024 == 0 {
			if err := w.in.ctx.Err(); err != nil {
				return err
			}
		}
		e, err := r.Next()
		var line *metrics.LineError
		switch {
		case errors.Is(err, io.EOF):
			if w.unkept > 0 {
				w.in.warn("%s has %d more lines that are not events: only the first %d are listed", w.file.Path, w.unkept, maxBadLines)
			}
			return w.flush(math.MaxInt)
		case errors.As(err, &line):
		case err != nil:
			return errRead{err}
		default:
			err := w.event(&e, r.Line)
			if unusable, ok := errors.AsType[errLine](err); ok {
				line = &metrics.LineError{File: w.file.Path, Line: r.Line, Err: unusable.error}
			} else if err != nil {
				return err
			}
			w.in.report.Events++
		}
		if line != nil {
			if err := w.badLine(line); err != nil {
				return err
			}
		}
	}
}

// badLine stores a line that is not a valid event, unless maxBadLines were stored already.
func (w *fileWriter) badLine(line *metrics.LineError) error {
	keep, err := w.keepsBad()
	if err != nil {
		return err
	}
	if !keep {
		w.unkept++
		return nil
	}
	line.Err = errors.New(w.in.hide(line.Err.Error()))
	w.in.report.BadLines = append(w.in.report.BadLines, line)
	return w.exec("INSERT INTO bad_line (file, line, message) VALUES (?, ?, ?)", w.id, line.Line, line.Err.Error())
}

// keepsBad counts a bad line, and reports whether to store it.
func (w *fileWriter) keepsBad() (bool, error) {
	if w.bad == nil {
		n := 0
		if err := w.in.tx.QueryRow("SELECT count(*) FROM bad_line WHERE file = ?", w.id).Scan(&n); err != nil {
			return false, err
		}
		w.bad = &n
	}
	*w.bad++
	return *w.bad <= maxBadLines, nil
}

func (w *fileWriter) exec(query string, args ...any) error {
	if err := w.in.rows.flush(); err != nil {
		return err
	}
	_, err := w.in.tx.Exec(query, args...)
	return err
}

func (w *fileWriter) insert(query string, args ...any) error {
	return w.in.rows.insert(query, args...)
}

// once executes an INSERT … ON CONFLICT DO NOTHING for an event that may occur only once. If the
// row exists already, it returns an error that makes the line bad.
func (w *fileWriter) once(kind, query string, args ...any) error {
	if w.had != nil && kind != "start" {
		if w.had[kind] {
			return second(kind)
		}
		w.had[kind] = true
		return w.insert(query, args...)
	}
	if err := w.in.rows.flush(); err != nil {
		return err
	}
	r, err := w.in.tx.Exec(query, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return second(kind)
}

func second(kind string) error {
	return bad("a second %s event; two processes wrote to this file, or it was copied onto itself", kind)
}

// startOf returns an error if a start event names another rank or restart than its file does.
func startOf(file metrics.EventFile, s *metrics.Start) error {
	if s.Rank != file.Rank || s.Restart != file.Restart {
		return bad("the file is named for rank %d, restart %d; its start event says rank %d, restart %d",
			file.Rank, file.Restart, s.Rank, s.Restart)
	}
	return nil
}

func (w *fileWriter) event(e *metrics.Event, line int) error {
	hideIn(e, w.in.hide, w.in.name)
	switch {
	case e.Start != nil:
		s := e.Start
		if err := startOf(w.file, s); err != nil {
			return err
		}
		return w.once("start", "UPDATE event_file SET started = ?, world_size = ?, ranks = ?, host = ?, pid = ? WHERE id = ? AND started IS NULL",
			s.Unix, s.WorldSize, s.Covers(), s.Host, s.PID, w.id)
	case e.Environment != nil:
		text, err := json.Marshal(e.Environment)
		if err != nil {
			return err
		}
		if err := w.exec("INSERT INTO environment (json) VALUES (?) ON CONFLICT DO NOTHING", string(text)); err != nil {
			return err
		}
		return w.exec("UPDATE event_file SET environment = (SELECT id FROM environment WHERE json = ?) WHERE id = ?", string(text), w.id)
	case e.Staged != nil:
		s := e.Staged
		return w.insert("INSERT INTO staged (file, line, item, source, path, bytes, seconds, reused) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			w.id, line, s.Item, s.Source, s.Path, s.Bytes, s.Seconds, s.Reused)
	case e.Train != nil:
		t := e.Train
		return w.once("train", `INSERT INTO train (file, time, parameters, gradient_bytes, train_samples, test_samples,
			global_batch, steps_per_epoch, parameter_sha256, data_sha256)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			w.id, e.Time, t.Parameters, t.GradientBytes, t.TrainSamples, t.TestSamples,
			t.GlobalBatch, t.StepsPerEpoch, t.ParameterSHA256, t.DataSHA256)
	case e.Steps != nil:
		return w.steps(e)
	case e.Epoch != nil:
		p := e.Epoch
		return w.insert("INSERT INTO epoch (file, line, time, epoch, step, samples, seconds, loss, learning_rate) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			w.id, line, e.Time, p.Epoch, p.Step, p.Samples, p.Seconds, p.Loss, p.LearningRate)
	case e.Gradients != nil:
		return w.gradients(e.Gradients, line)
	case e.Evaluation != nil:
		v := e.Evaluation
		return w.insert("INSERT INTO evaluation (file, line, time, epoch, step, accuracy, loss, samples, seconds, trained) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			w.id, line, e.Time, v.Epoch, v.Step, v.Accuracy, v.Loss, v.Samples, v.Seconds, sql.NullInt64{Int64: v.Trained, Valid: v.Trained > 0})
	case e.Figure != nil:
		g := e.Figure
		at, err := json.Marshal(g.At)
		if err != nil {
			return err
		}
		if g.At == nil {
			at = []byte("{}")
		}
		return w.insert(`INSERT INTO figure (file, line, time, name, value, unit, better, at, plus_minus, plus_minus_is, reduce, of, note, source, source_line)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			w.id, line, e.Time, g.Name, g.Value, g.Unit, g.Better, string(at), g.PlusMinus, g.PlusMinusIs, g.Reduce, g.Of, g.Note, g.File, g.Line)
	case e.Note != nil:
		return w.insert("INSERT INTO note (file, line, text) VALUES (?, ?, ?)", w.id, line, e.Note.Text)
	case e.Phase != nil:
		return nil // another attempt may continue the run
	case e.Telemetry != nil:
		return w.telemetry(e.Telemetry, line)
	case e.Error != nil:
		return w.insert("INSERT INTO error (file, line, time, phase, message) VALUES (?, ?, ?, ?, ?)",
			w.id, line, e.Time, e.Error.Where, e.Error.Message)
	case e.Stop != nil:
		s := e.Stop
		return w.once("stop", `INSERT INTO stop (file, time, status, cause, steps, epochs, parameter_sha256)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			w.id, e.Time, s.Status, s.Cause, s.Steps, s.Epochs, s.ParameterSHA256)
	}
	return bad("event of a kind that is not stored")
}

// steps adds a steps event to the blocks of its steps. If one of the steps was reported before, the
// whole line is bad, because it is unknown which of the two is right.
func (w *fileWriter) steps(e *metrics.Event) error {
	s := e.Steps
	first, last := s.First/blockSteps, (s.First+len(s.Duration)-1)/blockSteps
	for number := first; number <= last; number++ {
		b, err := w.load(number)
		if err != nil {
			return err
		}
		from, to := max(s.First, number*blockSteps), min(s.First+len(s.Duration), (number+1)*blockSteps)
		for step := from; step < to; step++ {
			if b.has(step - number*blockSteps) {
				return bad("step %d was reported before in this file", step)
			}
		}
		if err := b.fits(s.Tick, s, from-s.First, to-s.First); err != nil {
			return errLine{err}
		}
	}
	columns := stepColumns(s)
	for number := first; number <= last; number++ {
		b := w.blocks[number]
		b.useTick(s.Tick)
		from, to := max(s.First, number*blockSteps), min(s.First+len(s.Duration), (number+1)*blockSteps)
		for step := from; step < to; step++ {
			b.set(step-number*blockSteps, s.Tick, &columns, step-s.First)
		}
	}
	w.in.report.Steps += len(s.Duration)
	if err := w.exec("UPDATE event_file SET steps_time = ? WHERE id = ?", e.Time, w.id); err != nil {
		return err
	}
	return w.flush(last)
}

// load returns the block with this number. It is empty if it was not stored yet.
func (w *fileWriter) load(number int) (*block, error) {
	if b := w.blocks[number]; b != nil {
		return b, nil
	}
	b := &block{number: number}
	row := w.in.tx.QueryRow("SELECT "+blockColumns+" FROM block WHERE file = ? AND block = ?", w.id, number)
	if err := b.scan(row); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	w.blocks[number] = b
	return b, nil
}

// flush stores the changed blocks, and removes all blocks from memory except the one with the
// number keep.
func (w *fileWriter) flush(keep int) error {
	for number, b := range w.blocks {
		if number == keep {
			continue
		}
		if b.dirty {
			if err := b.store(w.in.tx, w.id); err != nil {
				return err
			}
			if w.file.Writer == "rank" {
				w.in.touch(w.file.Restart, number)
			}
		}
		delete(w.blocks, number)
	}
	return nil
}
