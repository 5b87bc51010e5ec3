package main

import (
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/scalebench/scalebench/metrics/clean"
)

// progress shows how far a command has come, on standard error: a bar that is
// repainted on a terminal, one line for each finished thing elsewhere, nothing
// when quiet. It is safe for use by several goroutines.
type progress struct {
	s   *session
	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil when there is no terminal to paint on
}

// startProgress begins to show total things that are named by what ("runs").
// A total of 0 is not known.
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

// advance says that n more things are done.
func (p *progress) advance(n int) {
	if p.bar != nil {
		// An error means that the terminal is gone; the work continues.
		_ = p.bar.Add(n)
	}
}

// describe shows what happens at the moment, such as the throughput, if the bar is
// repainted.
func (p *progress) describe(text string) {
	if p.bar != nil {
		p.bar.Describe(clean.Line(text))
	}
}

// finished prints a line that stays, for one thing that is done.
func (p *progress) finished(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
		defer func() { _ = p.bar.RenderBlank() }()
	}
	p.s.note(format, a...)
}

// stop takes the bar away. It may be called more than once.
func (p *progress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}

// steps returns a function that shows how many of all things are done.
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
