package live

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/store"
)

const (
	tick     = 2 * time.Second        // between two looks at the run folders
	idle     = 2 * time.Minute        // a board that was not viewed for so long is dropped
	patience = 500 * time.Millisecond // how long requests wait for the content of a new board
)

// A board keeps the pages of one study up to date while they are viewed.
type board struct {
	site *Site
	entry
	ctx  context.Context
	stop context.CancelFunc
	born time.Time
	full sync.Once // starts reading the results, when the study's page is first viewed

	mu      sync.Mutex
	viewed  time.Time
	states  states
	results *results // nil until they were read
	page    []byte   // the page with the present content; nil if not rendered yet
	signal  signal
}

// states is what the run folders and the scheduler say.
type states struct {
	Progress string `json:"progress"`
	query.Spending
	Troubles []string                   `json:"troubles,omitempty"`
	Grid     *query.Grid                `json:"grid"` // nil before the first look, or without run folders
	begun    bool                       // they were looked at
	runs     map[string]*launcher.State // attempts that the grid names; nil of one that has ended
}

// board returns the board of a study; ok is false if the site does not have the study.
func (s *Site) board(ctx context.Context, name string) (b *board, ok bool) {
	list, _ := s.list(ctx)
	for _, e := range list {
		if e.name == name {
			return s.boardOf(e), true
		}
	}
	return nil, false
}

// boardOf returns the board of a study, and starts it if it is not there.
func (s *Site) boardOf(e entry) *board {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boards[e.name]
	if b == nil {
		b = newBoard(s, e)
		s.boards[e.name] = b
		go b.watch()
	}
	b.view()
	return b
}

func newBoard(s *Site, e entry) *board {
	b := &board{site: s, entry: e, signal: signal{changed: make(chan struct{})}}
	b.born, b.viewed = time.Now(), time.Now()
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// view notes that someone looks at the board.
func (b *board) view() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.viewed = time.Now()
}

// close ends the board's work.
func (s *Site) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, b := range s.boards {
		b.stop()
		delete(s.boards, name)
	}
}

// watch looks at the runs until nobody has viewed the board for a while.
func (b *board) watch() {
	defer b.stop()
	t := b.site.tally(b.ctx, b.entry)
	for {
		took := time.Now()
		next := t.look(b.ctx)
		if b.ctx.Err() != nil {
			return
		}
		b.mu.Lock()
		if same(b.states, next) {
			b.states.runs = next.runs
		} else {
			b.states = next
			b.bump()
		}
		b.mu.Unlock()
		if b.drop() {
			return
		}
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(max(tick, 2*time.Since(took))):
		}
	}
}

// drop removes the board from the site if nobody has viewed it for a while.
func (b *board) drop() bool {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.viewed) < idle {
		return false
	}
	if b.site.boards[b.name] == b {
		delete(b.site.boards, b.name)
	}
	return true
}

// bump marks a change. The caller holds the lock.
func (b *board) bump() {
	b.page = nil
	b.signal.bump()
	b.site.signal.bump()
}

// same reports whether two states look alike on the page.
func same(a, b states) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && a.begun == b.begun && string(x) == string(y)
}

// study makes the board read the study's results, too, and waits a little for the first content.
func (b *board) study(ctx context.Context) {
	b.full.Do(func() { go b.read() })
	b.await(ctx, func() bool { return b.states.begun && b.results != nil })
}

// await waits until ready, which is called with the lock held, while the board is new.
func (b *board) await(ctx context.Context, ready func() bool) {
	limit := time.After(patience - time.Since(b.born))
	for {
		b.mu.Lock()
		_, changed := b.signal.now()
		is := ready()
		b.mu.Unlock()
		if is {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-limit:
			return
		case <-changed:
		}
	}
}

// reading makes sure that the results of only one study are computed at a time, to limit memory.
var reading sync.Mutex

// read computes the results whenever the database or the study's looks have changed.
func (b *board) read() {
	last := ""
	for {
		took := time.Now()
		if now := b.fingerprint(); now != last {
			reading.Lock()
			took = time.Now()
			r := b.site.tooMany(b.ctx, b.entry)
			if r == nil {
				r = b.site.results(b.ctx, b.entry)
			}
			reading.Unlock()
			if b.ctx.Err() != nil {
				return
			}
			last = now
			b.mu.Lock()
			b.results = r
			b.bump()
			b.mu.Unlock()
		}
		select {
		case <-b.ctx.Done():
			return
		case <-time.After(max(tick, 3*time.Since(took))): // large studies take at most a quarter of the time
		}
	}
}

// fingerprint changes when the results may have changed: with the database, the plan, the study's
// looks and the site file.
func (b *board) fingerprint() string {
	files := []string{b.site.options.Site}
	if db, err := b.site.options.Workspace.Database(); err == nil {
		files = append(files, store.Files(db)[:2]...) // the file and its write-ahead log
	}
	if b.folder != "" {
		files = append(files, b.folder.Plan(), b.folder.Looks())
	}
	text := ""
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			text += fmt.Sprintln(file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return text
}

// version names the present content of the study's pages; changed is closed at the next change.
func (b *board) version() (version string, changed <-chan struct{}) {
	number, changed := b.signal.now()
	return fmt.Sprintf("%s-%d", b.site.base, number), changed
}

// html returns the study's page and its version.
func (b *board) html() ([]byte, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	version, _ := b.version()
	if b.page == nil {
		text, err := renderStudy(b.entry, b.states, b.results, frame{Version: version, Made: b.site.made()})
		if err != nil {
			return nil, "", err
		}
		b.page = text
	}
	return b.page, version, nil
}

// json returns the states as JSON.
func (b *board) json() ([]byte, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	version, _ := b.version()
	text, err := json.Marshal(struct {
		Study string `json:"study"`
		states
	}{b.name, b.states})
	return append(text, '\n'), version, err
}
