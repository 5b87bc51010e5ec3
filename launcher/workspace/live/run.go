package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/table"
)

// tail is the largest part of a log that a page shows, in bytes.
const tail = 32 << 10

// A runPage is the content of a run's page.
type runPage struct {
	frame
	Study, State string
	LogNote, Log string
	Figure       *drawing
	FigureNote   string
	Tables       []report.Table
	TablesNote   string
}

// run renders the page of an attempt that the grid shows; nil if it shows none of that name.
func (b *board) run(ctx context.Context, name string) ([]byte, error) {
	b.await(ctx, func() bool { return b.states.begun })
	state, err := b.stateOf(ctx, name)
	if state == nil {
		return nil, err
	}
	version, _ := b.runVersion(name)
	p := runPage{frame: frame{Title: clean.Line(name), Root: "../../", Version: version, Events: url.PathEscape(name) + ".events", Made: b.site.made()}, Study: clean.Line(b.name)}
	p.State = clean.Line(strings.Join(slices.DeleteFunc([]string{string(state.Status), state.Detail, query.Reached(*state)}, func(s string) bool { return s == "" }), "; "))
	p.readLog(*state)
	p.readResults(ctx, b.site.reader(func(string) {}), state.Run.ID())
	return render("run", p)
}

// stateOf returns the state of an attempt that the grid names; nil if it names none of that name.
func (b *board) stateOf(ctx context.Context, name string) (*launcher.State, error) {
	b.mu.Lock()
	state, ok := b.states.runs[name]
	b.mu.Unlock()
	if state != nil || !ok {
		return state, nil
	}
	a, err := launcher.OneAttempt(b.folder, name)
	if err != nil {
		return nil, err
	}
	states, err := launcher.Survey(ctx, []*launcher.Attempt{a})
	if err != nil {
		return nil, err
	}
	return &states[0], nil
}

// runVersion names the present content of a run's page, which also changes with its log. changed is
// closed when it is time to look again.
func (b *board) runVersion(name string) (version string, changed <-chan struct{}) {
	version, changed = b.version()
	b.mu.Lock()
	state, ok := b.states.runs[name]
	b.mu.Unlock()
	if !ok || state == nil || state.Status.Terminal() {
		return version, changed
	}
	if info, err := os.Stat(state.Log()); err == nil {
		version += fmt.Sprintf("-%d-%d", info.Size(), info.ModTime().UnixNano())
	}
	soon := make(chan struct{})
	time.AfterFunc(tick, func() { close(soon) })
	return version, soon
}

// readLog reads the end of the log that `logs` prints.
func (p *runPage) readLog(state launcher.State) {
	path := state.Log()
	if path == "" {
		p.LogNote = "There is no log yet."
		return
	}
	text, size, err := endOf(state.Run, path)
	if err != nil {
		p.LogNote = clean.Line(err.Error())
		return
	}
	p.LogNote = clean.Line(filepath.Base(path)) + ", " + number.Bytes(float64(size))
	if size > int64(len(text)) {
		p.LogNote += fmt.Sprintf(": the last %s; `scalebench logs` prints all", number.Bytes(tail))
	}
	p.LogNote += ". What looks like a secret is replaced."
	p.Log = clean.Lines(redact.Text(strings.ToValidUTF8(text, "\uFFFD")))
}

// endOf returns the last whole lines of a file in a run folder, at most tail bytes, and the file's
// size.
func endOf(run rundir.Folder, path string) (text string, size int64, err error) {
	f, err := run.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	from := max(0, info.Size()-tail)
	content, err := io.ReadAll(io.NewSectionReader(f, from, tail))
	if err != nil {
		return "", 0, err
	}
	text = string(content)
	if from > 0 {
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return text, info.Size(), nil
}

// readResults reads what `show` and `plot utilisation` print about the run.
func (p *runPage) readResults(ctx context.Context, reader *query.Reader, id string) {
	picture, err := reader.Picture(ctx, figure.OfRun, query.Figure{Question: query.Question{Study: id}, Kind: "utilisation"})
	if err == nil {
		p.Figure, err = drawn(picture)
	}
	if err != nil {
		p.FigureNote = explained(err)
	}
	db, err := reader.Open()
	if err != nil {
		p.TablesNote = explained(err)
		return
	}
	defer db.Close()
	d, err := db.Show(ctx, id)
	if err != nil {
		p.TablesNote = explained(err)
		return
	}
	for _, section := range report.Run(d) {
		if section.Table != nil && len(section.Table.Rows) > 0 {
			title := strings.ReplaceAll(section.Key, "_", " ")
			text := section.Table.Text()
			if section.Record {
				text = upright(text)
			}
			p.Tables = append(p.Tables, *tableOf(section.Key, title, text))
		}
	}
}

// upright returns a table of one row with a row for each of its cells that is known.
func upright(t table.Text) table.Text {
	u := table.Text{Columns: []table.Title{{Title: "key"}, {Title: "value"}}, Notes: t.Notes}
	for i, c := range t.Columns {
		if cell := t.Rows[0][i]; cell != number.Absent && cell != "" {
			u.Rows = append(u.Rows, []string{c.Title, cell})
		}
	}
	return u
}

// drawn draws the use of a run's nodes.
func drawn(p *query.Picture) (*drawing, error) {
	k, ok := figure.Find("utilisation")
	if !ok {
		return nil, errors.New("there is no such figure")
	}
	p.Options.NoCaption = true
	f, err := k.Draw(p.Data, p.Options)
	if err != nil {
		return nil, err
	}
	d := &drawing{ID: "utilisation", Title: f.Name(), Caption: clean.Line(f.Caption())}
	d.Wide, err = inline(f)
	return d, err
}
