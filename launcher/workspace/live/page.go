package live

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/table"
	"github.com/scalebench/scalebench/templates"
)

// policy is the content security policy of every page: own files only, nothing inline.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"

var pages = sync.OnceValues(func() (*template.Template, error) {
	t, err := report.PageTemplates()
	if err != nil {
		return nil, err
	}
	return t.ParseFS(templates.Files, templates.Live)
})

// A frame is what all pages have.
type frame struct {
	Title   string
	Root    string // relative path of the list's folder
	Version string // of the content
	Events  string // relative path of the events
	Made    string
	Static  bool   // a file that no server keeps up to date
	Written string // time at which a static page was written
}

func (frame) Policy() string { return policy }

func (s *Site) made() string { return "Made by scalebench " + s.options.Workspace.Version + "." }

// static returns a frame for pages that are files.
func (s *Site) static(now time.Time) frame {
	return frame{Made: s.made(), Static: true, Written: now.Format(time.DateTime + " MST")}
}

func render(name string, data any) ([]byte, error) {
	t, err := pages()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// studyHref returns the relative address of a study's page, seen from the list.
func studyHref(name string) string { return "study/" + url.PathEscape(name) + "/index.html" }

// A shownGrid is a grid as a page shows it.
type shownGrid struct {
	Heads, Columns []string
	Rows           []shownRow
	Notable        []shownCell // runs that are not done, if the cells are counts
	Note           string
}

type shownRow struct {
	Values []string
	Cells  []shownCell
}

type shownCell struct{ Status, Text, Href, Detail, Run string }

// shown returns the grid for a page. Cells of single runs link to their pages, unless the page is
// static.
func shown(g *query.Grid, static bool) *shownGrid {
	if g == nil || len(g.Rows) == 0 {
		return nil
	}
	s := &shownGrid{Heads: g.Heads, Columns: g.Columns, Note: "A column for each repeat."}
	for _, row := range g.Rows {
		r := shownRow{Values: row.Values}
		for _, c := range row.Cells {
			if r.Cells = append(r.Cells, shownCellOf(c, static)); c.Runs > 0 {
				s.Note = "The number of runs in each state. `scalebench status -v` lists each run."
			}
		}
		s.Rows = append(s.Rows, r)
	}
	for _, c := range g.Notable {
		s.Notable = append(s.Notable, shownCellOf(c, static))
	}
	return s
}

func shownCellOf(c query.GridCell, static bool) shownCell {
	cell := shownCell{Status: string(c.Status), Text: strings.ReplaceAll(string(c.Status), "_", " "), Detail: c.Detail, Run: clean.Line(c.Run)}
	if c.Runs > 0 {
		cell.Text = fmt.Sprint(c.Runs)
	}
	if c.Run != "" && !static {
		cell.Href = url.PathEscape(c.Run) + ".html"
	}
	return cell
}

// renderStudy renders the page of a study. r is nil before the results were read.
func renderStudy(e entry, st states, r *results, f frame) ([]byte, error) {
	f.Title, f.Root, f.Events = clean.Line(e.name), "../../", "events"
	if !st.begun {
		st.Progress = "Reading the runs…"
	}
	if r == nil {
		r = &results{Lead: "Reading the results…"}
	}
	return render("study", struct {
		frame
		Progress, Used string
		Troubles       []string
		Grid           *shownGrid
		*results
	}{f, st.Progress, used(st.Spending), st.Troubles, shown(st.Grid, f.Static), r})
}

// used returns a sentence on the cost so far; "" if no attempt has ended.
func used(spent query.Spending) string {
	if spent.NodeHours == 0 {
		return ""
	}
	return "Attempts that have ended, also failed ones, used " + spent.Text() + "."
}

// A listed study is a row of the list.
type listed struct{ Name, Href, Progress string }

// renderList renders the list of studies.
func renderList(studies []listed, problem, note string, f frame) ([]byte, error) {
	f.Title, f.Events = "Studies", "events"
	return render("list", struct {
		frame
		Studies       []listed
		Problem, Note string
	}{f, studies, problem, note})
}

// tableOf returns a table for a page.
func tableOf(id, title string, text table.Text) *report.Table {
	t := shortened(report.Table{ID: id, Title: title, Text: text})
	return &t
}
