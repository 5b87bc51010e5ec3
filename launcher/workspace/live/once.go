package live

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/scalebench/scalebench/templates"
)

// WriteOnce writes the list and the page of each study as files into a folder, which it creates. put
// writes a file. It returns the path of the list. The pages have no logs, which may contain secrets,
// and no pages of single runs.
func (s *Site) WriteOnce(ctx context.Context, dir string, put func(path string, content []byte) error) (string, error) {
	list, err := s.find(ctx)
	if err != nil {
		return "", err
	}
	now := time.Now()
	var rows []listed
	for _, e := range list {
		st := s.tally(ctx, e).look(ctx)
		page, err := renderStudy(e, st, s.results(ctx, e), s.static(now))
		if err != nil {
			return "", err
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		folder := filepath.Join(dir, "study", e.name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		if err := put(filepath.Join(folder, "index.html"), page); err != nil {
			return "", err
		}
		rows = append(rows, listed{Name: e.name, Href: studyHref(e.name), Progress: st.Progress})
	}
	index, err := renderList(rows, "", "", s.static(now))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{templates.Style, templates.LiveStyle} {
		text, err := templates.Files.ReadFile(name)
		if err != nil {
			return "", err
		}
		if err := put(filepath.Join(dir, name), text); err != nil {
			return "", err
		}
	}
	path := filepath.Join(dir, "index.html")
	return path, put(path, index)
}
