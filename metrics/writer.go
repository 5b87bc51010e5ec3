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
	stepsPerLine  = 100              // steps per line
	flushInterval = time.Second      // maximum time that a step is buffered
	stepTick      = time.Microsecond // resolution of the time columns
)

// Step is one training step of one rank.
type Step struct {
	Duration time.Duration
	Samples  int64
	// Parts of Duration; nil if not measured, which differs from zero.
	DataWait, Compute, Communication *time.Duration
}

// A Writer appends events to one file. It is safe for use by several
// goroutines. Steps are collected and written as columns, every 100 steps,
// every second, and before any other event, so that the order of events in the
// file is the order of the calls.
//
// Each line is written with a single Write. A process that is killed at any moment therefore leaves
// complete lines, and at most one incomplete line at the end.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	start   time.Time
	next    int // index of the next step
	pending Steps
	timer   *time.Timer // runs while steps are pending
	err     error       // the first failed write; later calls return it
}

// NewWriter writes the Start event, setting its Format and Unix, and returns a writer whose clock
// starts now.
func NewWriter(w io.Writer, start Start) (*Writer, error) {
	return NewWriterSince(w, start, time.Now())
}

// NewWriterSince is like NewWriter, but the writer's clock started at began. Training programs pass
// ProcessStart, so that initialisation includes everything since the start of the process.
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
	if e.Stop != nil { // after a power failure, no run may seem complete whose measurements are lost
		w.sync()
		w.write(e)
		w.sync()
		return w.err
	}
	w.write(e)
	return w.err
}

// sync flushes the file to disk, so that it survives a power failure. The caller must hold mu.
func (w *Writer) sync() {
	f, ok := w.w.(interface{ Sync() error })
	if !ok || w.err != nil {
		return
	}
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) { // pipes cannot be synced
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

// sameColumns reports whether s has the same measured parts as the pending steps.
func (p *Steps) sameColumns(s Step) bool {
	return (len(p.DataWait) > 0) == (s.DataWait != nil) &&
		(len(p.Compute) > 0) == (s.Compute != nil) &&
		(len(p.Communication) > 0) == (s.Communication != nil)
}

func (w *Writer) armTimer() {
	if w.timer == nil {
		// An error of the write is kept in w.err, and returned by the next call.
		w.timer = time.AfterFunc(flushInterval, func() { _ = w.Flush() })
		return
	}
	w.timer.Reset(flushInterval)
}

// flush writes the pending steps as one event. The caller must hold mu.
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
