package metrics

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"syscall"
	"time"
)

const (
	stepsPerLine  = 100              // steps buffered before a line is written
	flushInterval = time.Second      // and the longest a step waits in the buffer
	stepTick      = time.Microsecond // resolution of the time columns
)

// Step is one training step of one rank.
type Step struct {
	Duration time.Duration
	Samples  int64
	// Parts of Duration; nil where it was not measured. They are pointers so
	// that an unmeasured part cannot pass for a zero.
	DataWait, Compute, Communication *time.Duration
}

// A Writer appends events to one file. It is safe for use by several
// goroutines. Steps are collected and written as columns, every 100 steps,
// every second, and before any other event, so that the order of events in the
// file is the order of the calls.
//
// Each line goes out in a single Write, so a process killed at any moment
// leaves whole lines behind and at most one unfinished one at the end.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	start   time.Time
	next    int // index of the next step
	pending Steps
	timer   *time.Timer // runs while steps are pending
	err     error       // the first failed write; later calls return it
}

// NewWriter writes the Start event and returns a writer whose clock begins
// now. It fills in Format and Unix.
func NewWriter(w io.Writer, start Start) (*Writer, error) {
	return NewWriterSince(w, start, time.Now())
}

// NewWriterSince is NewWriter with a clock that began earlier: that of a program
// that trains begins with its process (ProcessStart), so that initialisation is
// all of what came before the training.
func NewWriterSince(w io.Writer, start Start, began time.Time) (*Writer, error) {
	start.Format = FormatVersion
	start.Unix = float64(began.UnixNano()) / 1e9
	writer := &Writer{w: w, start: began}
	writer.mu.Lock()
	defer writer.mu.Unlock()
	writer.write(Event{Start: &start})
	return writer, writer.err
}

// Write appends an event after any pending steps and sets its Time.
func (w *Writer) Write(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	e.Time = time.Since(w.start).Seconds()
	if e.Stop != nil { // that a run ended well is not to outlast what it measured
		w.sync()
		w.write(e)
		w.sync()
		return w.err
	}
	w.write(e)
	return w.err
}

// sync makes what was written outlast a loss of power, if it is a file. The
// caller holds mu.
func (w *Writer) sync() {
	f, ok := w.w.(interface{ Sync() error })
	if !ok || w.err != nil {
		return
	}
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) { // a pipe has no disk
		w.err = err
	}
}

// Step records the next training step.
func (w *Writer) Step(s Step) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.pending
	if n := len(p.Duration); n > 0 && !p.sameColumns(s) {
		w.flush()
	}
	if len(p.Duration) == 0 {
		p.First = w.next
		w.armTimer()
	}
	w.next++
	p.Duration = append(p.Duration, int64(s.Duration/stepTick))
	p.Samples = append(p.Samples, s.Samples)
	p.DataWait = appendPart(p.DataWait, s.DataWait)
	p.Compute = appendPart(p.Compute, s.Compute)
	p.Communication = appendPart(p.Communication, s.Communication)
	if len(p.Duration) >= stepsPerLine {
		w.flush()
	}
	return w.err
}

// Flush writes the pending steps.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	return w.err
}

func appendPart(column []int64, part *time.Duration) []int64 {
	if part == nil {
		return column
	}
	return append(column, int64(*part/stepTick))
}

// sameColumns reports whether s measures the same parts as the pending steps.
func (p *Steps) sameColumns(s Step) bool {
	return (len(p.DataWait) > 0) == (s.DataWait != nil) &&
		(len(p.Compute) > 0) == (s.Compute != nil) &&
		(len(p.Communication) > 0) == (s.Communication != nil)
}

func (w *Writer) armTimer() {
	if w.timer == nil {
		// A failed write is kept in w.err and returned by the next call.
		w.timer = time.AfterFunc(flushInterval, func() { _ = w.Flush() })
		return
	}
	w.timer.Reset(flushInterval)
}

// flush writes the pending steps as one event. The caller holds mu.
func (w *Writer) flush() {
	p := &w.pending
	if len(p.Duration) == 0 {
		return
	}
	w.timer.Stop()
	p.Tick = stepTick.Seconds()
	w.write(Event{Time: time.Since(w.start).Seconds(), Steps: p})
	p.Duration, p.Samples = p.Duration[:0], p.Samples[:0]
	p.DataWait, p.Compute, p.Communication = p.DataWait[:0], p.Compute[:0], p.Communication[:0]
}

func (w *Writer) write(e Event) {
	if w.err != nil {
		return
	}
	line, err := json.Marshal(e)
	if err != nil {
		w.err = err
		return
	}
	_, w.err = w.w.Write(append(line, '\n'))
}
