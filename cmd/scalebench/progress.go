package main

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/scalebench/scalebench/metrics/clean"
)

// progress shows the progress of a command on standard error: a bar on a terminal, one line
// per finished item elsewhere, nothing when quiet. It is safe for concurrent use.
type progress struct {
	s   *session
	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil without a terminal
}

// startProgress starts showing the progress of total items called what ("runs"). A total of
// 0 means unknown.
func (s *session) startProgress(what string, total int) *progress {
	p := &progress{s: s}
	f, ok := s.stderr.(*os.File)
	if s.quiet || !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return p
	}
	if total == 0 {
		total = -1 // a spinner
	}
	p.bar = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
	)
	return p
}

// advance adds n finished items.
func (p *progress) advance(n int) {
	if p.bar != nil {
		// An error means that the terminal is gone; the work continues.
		_ = p.bar.Add(n)
	}
}

// describe shows the current activity, such as the throughput, if there is a bar.
func (p *progress) describe(text string) {
	if p.bar != nil {
		p.bar.Describe(clean.Line(text))
	}
}

// finished prints a permanent line for a finished item.
func (p *progress) finished(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
		defer func() { _ = p.bar.RenderBlank() }()
	}
	p.s.note(format, a...)
}

// stop removes the bar. It may be called repeatedly.
func (p *progress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}

// steps returns a function that shows how many items are done.
func (s *session) steps(what string) func(done, total int) {
	var p *progress
	before := 0
	return func(done, total int) {
		if p == nil {
			p = s.startProgress(what, total)
		}
		p.advance(done - before)
		if before = done; done == total {
			p.stop()
			p, before = nil, 0
		}
	}
}
