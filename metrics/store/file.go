package store

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// headBytes is the length of the part at the beginning of a file of which a digest is stored. The
// digest distinguishes a file that grew from a new file with the same name: this part includes
// the start event, which is different for every writer.
const headBytes = 4096

// place identifies the writer of an event file by its rank and restart.
type place struct{ rank, restart int }

// A position says how far an event file was read.
type position struct {
	id       int64
	path     string
	inode    uint64
	size     int64
	modified int64 // nanoseconds since the epoch
	head     []byte
	headSize int64
	offset   int64
	line     int
}

// knownFiles returns the positions of the run's files that are in the database, by writer, rank
// and restart.
func knownFiles(tx *sql.Tx, run int64) (map[string]map[place]position, error) {
	rows, err := tx.Query(`SELECT writer, rank, restart, id, path, inode, size, modified, head, head_size, offset, line
		FROM event_file WHERE run = ?`, run)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]map[place]position{}
	for rows.Next() {
		var writer string
		var at place
		var p position
		var inode int64
		if err := rows.Scan(&writer, &at.rank, &at.restart, &p.id, &p.path, &inode, &p.size, &p.modified,
			&p.head, &p.headSize, &p.offset, &p.line); err != nil {
			return nil, err
		}
		p.inode = uint64(inode)
		if known[writer] == nil {
			known[writer] = map[place]position{}
		}
		known[writer][at] = p
	}
	return known, rows.Err()
}

// errOpen means that a file could not be opened. Nothing of it was stored.
type errOpen struct{ error }

func (e errOpen) Unwrap() error { return e.error }

// errRead means that reading a file failed after a part was read.
type errRead struct{ error }

func (e errRead) Unwrap() error { return e.error }

// maxBadLines limits the number of bad lines that are stored per file; further ones are only
// counted. A file that contains something else may have millions.
const maxBadLines = 1000

// file reads an event file from the position at, or from its start if at is nil.
func (in *ingest) file(f metrics.EventFile, at *position) error {
	info, err := os.Stat(f.Path)
	if err != nil {
		return errOpen{err}
	}
	if at != nil && at.path == f.Path && at.size == info.Size() && at.modified == info.ModTime().UnixNano() && at.inode == inode(info) {
		return nil
	}
	file, err := sharedfs.OpenIn(f.Folder, f.Path)
	if err != nil {
		return errOpen{err}
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return err
	}
	if at, err = in.current(f, file, info, at); err != nil {
		return err
	}
	in.report.Files++
	if at == nil {
		at = &position{}
		r, err := in.tx.Exec(`INSERT INTO event_file (run, writer, rank, restart, path, inode, size, modified, head, head_size, offset, line)
			VALUES (?, ?, ?, ?, ?, 0, 0, 0, x'', 0, 0, 0)`, in.run, f.Writer, f.Rank, f.Restart, f.Path)
		if err != nil {
			return err
		}
		if at.id, err = r.LastInsertId(); err != nil {
			return err
		}
	}
	// Read up to the size that is stored below; the next call reads what was added since.
	now := io.NewSectionReader(file, at.offset, max(0, info.Size()-at.offset))
	events := metrics.NewReader(now, f.Path, at.offset, at.line)
	w := fileWriter{in: in, file: f, id: at.id, blocks: map[int]*block{}}
	if err := w.all(events); err != nil {
		return err
	}
	headSize := min(events.Offset, headBytes)
	head, err := hashHead(file, headSize)
	if err != nil {
		return err
	}
	_, err = in.tx.Exec(`UPDATE event_file SET path = ?, inode = ?, size = ?, modified = ?, head = ?, head_size = ?, offset = ?, line = ? WHERE id = ?`,
		f.Path, int64(inode(info)), info.Size(), info.ModTime().UnixNano(), head, headSize, events.Offset, events.Line, at.id)
	return err
}

// current returns the position from which to read a file. If the stored events come from another
// file, or were not read from an event file (see derived), it deletes them and returns nil.
func (in *ingest) current(f metrics.EventFile, file *os.File, info os.FileInfo, at *position) (*position, error) {
	if at == nil {
		return nil, nil
	}
	whole := true
	if int64(at.inode) != derived {
		why, err := replaced(file, info, at)
		if err != nil || why == "" {
			return at, err
		}
		in.warn("%s %s, so it was read again from the start", f.Path, why)
		whole = f.Writer == "rank"
	}
	if whole {
		in.whole[f.Restart] = true
	}
	_, err := in.tx.Exec("DELETE FROM event_file WHERE id = ?", at.id)
	return nil, err
}

// replaced returns the reason why file is not the one that at refers to; "" if it is.
func replaced(file *os.File, info os.FileInfo, at *position) (string, error) {
	switch {
	case info.Size() < at.offset:
		return fmt.Sprintf("shrank from %d to %d bytes", at.size, info.Size()), nil
	case inode(info) != at.inode:
		return "was replaced by another file", nil
	}
	head, err := hashHead(file, at.headSize)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(head, at.head) {
		return "was rewritten", nil
	}
	return "", nil
}

func hashHead(file *os.File, n int64) ([]byte, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, n)); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

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
			var unusable errLine
			if errors.As(err, &unusable) {
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
	row := w.in.tx.QueryRow(selectBlock+" WHERE file = ? AND block = ?", w.id, number)
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
