package report

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/table"
)

// hostile is text that a log from elsewhere might contain.
const hostile = `</td></svg></style><script>alert(1)</script><img src=x onerror="alert(2)"> " ' {{.}} javascript:alert(3) <!-- ]]> | **b** [l](http://example.org)`

func observations(series string) []scaling.Observation {
	var list []scaling.Observation
	for _, n := range []int{1, 2, 4} {
		x := 100 * float64(n)
		list = append(list, scaling.Observation{Run: series + string(rune('0'+n)), Framework: series, Workers: n,
			Parameters: map[string]any{"workload.scaling": "weak"}, Values: map[string]float64{"throughput": x}})
	}
	return list
}

func report(t *testing.T, text string) *Report {
	t.Helper()
	obs := observations(text)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := drawFigure("speedup", func(o figure.Options) (*figure.Drawing, error) {
		return figure.Draw("speedup", figure.Data{Curves: curves, Observations: obs}, o)
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := table.Text{Columns: []table.Title{{Title: text}, {Title: "n", Right: true}}, Rows: [][]string{{text, "1"}, {"–", "2"}}, Notes: []string{text}}
	return &Report{
		Title: text, About: []string{text}, Answer: Answer{Lead: text, Reasons: []string{text}, Table: &Table{Text: table.Text{Columns: rows.Columns, Rows: rows.Rows}}},
		Figures: []Drawing{f}, NotDrawn: []Fact{{text, []string{text}}}, Tables: []Table{{ID: "t", Title: text, Text: rows}}, Warnings: []string{text},
		Method: []Fact{{text, []string{text}}}, Provenance: []Fact{{text, []string{text, text}}},
		Downloads: []Download{{Name: "runs.csv", About: text, Type: "text/csv", Data: []byte(text)}}, Made: text,
	}
}

func html(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The answer comes first, nothing is missing, and the page loads nothing.
func TestPage(t *testing.T) {
	page := html(t, report(t, "plain"))
	last := -1
	for _, part := range []string{"<title>plain</title>", `class="skip" href="#answer"`, `id="answer"`, `id="warnings"`, `id="figures"`, `id="speedup"`,
		`role="img" aria-label="Speedup against workers"`, "<title>Speedup against workers</title>", "<figcaption>Weak scaling", `id="tables"`,
		`role="region" aria-label="plain" tabindex="0"`, `id="method"`, `id="provenance"`, `id="data"`, `download="runs.csv"`} {
		at := strings.Index(page, part)
		if at < 0 {
			t.Fatalf("the page lacks %s", part)
		}
		if at < last {
			t.Errorf("%s stands too early", part)
		}
		last = at
	}
	if n := strings.Count(page, "<svg"); n != 2 {
		t.Errorf("%d drawings, want a wide and a narrow one", n)
	}
	want := `href="data:text/csv;base64,` + base64.StdEncoding.EncodeToString([]byte("plain")) + `"`
	if !strings.Contains(page, want) {
		t.Error("the data is not in the page")
	}
	addresses := regexp.MustCompile(`(?:href|src|action|url)\s*[=(]\s*["']?([^"'>)]*)`).FindAllStringSubmatch(page, -1)
	for _, a := range addresses {
		if !strings.HasPrefix(a[1], "#") && !strings.HasPrefix(a[1], "data:") {
			t.Errorf("the page refers to %s", a[1])
		}
	}
	if len(addresses) < 8 {
		t.Errorf("only %d references were found", len(addresses))
	}
}

// No part of a hostile string becomes markup; the browser tests check this too.
func TestHostileText(t *testing.T) {
	elements := func(page string) map[string]int {
		count := map[string]int{}
		for _, e := range regexp.MustCompile(`<[a-zA-Z/!][^\s>]*`).FindAllString(page, -1) {
			count[e]++
		}
		return count
	}
	plain, page := elements(html(t, report(t, "plain"))), elements(html(t, report(t, hostile)))
	for _, many := range []string{"<text", "</text>", "</text", "<path", "<g", "</g"} { // labels wrap into several lines
		delete(plain, many)
		delete(page, many)
	}
	if diff := cmp.Diff(plain, page); diff != "" {
		t.Errorf("elements of the page (-plain +hostile):\n%s", diff)
	}
	if strings.Contains(html(t, report(t, hostile)), `onerror="`) {
		t.Error("an attribute got into the page")
	}
	steering := html(t, report(t, "a\u202eb\u2066c\x1bd\u200be"))
	if i := strings.IndexFunc(steering, func(r rune) bool { return clean.Steers(r) && r != '\n' && r != '\t' }); i >= 0 {
		t.Errorf("the page steers the eye: %.80q", steering[i:])
	}
	if !strings.Contains(steering, `a\u202eb\u2066c\x1bd\u200be`) {
		t.Error("what steers is not made readable")
	}
}

func TestSaveMarkdown(t *testing.T) {
	dir := t.TempDir()
	r := report(t, hostile)
	files, err := r.Save(filepath.Join(dir, "out put.md"), put)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"out put-speedup.svg", "out put-runs.csv", "out put.md"}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out put.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"(out%20put-speedup.svg)", "[runs.csv](out%20put-runs.csv)", "| ---: |"} {
		if !strings.Contains(string(text), s) {
			t.Errorf("the text lacks %s", s)
		}
	}
	if !regexp.MustCompile(`!\[[^\n.]*\]\(out%20put-speedup.svg\)\n\n[A-Z][^\n]{20}`).Match(text) {
		t.Errorf("the figure's caption is no text behind it:\n%s", text)
	}
	if strings.Contains(string(text), "<script") || strings.Contains(string(text), "<img") || regexp.MustCompile(`[^\\]\]\(http`).Match(text) {
		t.Error("markup of a hostile string is in the text")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*Report){
		"the report has no title":      func(r *Report) { r.Title = "" },
		"an id may have only":          func(r *Report) { r.Figures[0].ID = "../x" },
		`have the id "speedup"`:        func(r *Report) { r.Figures = append(r.Figures, r.Figures[0]) },
		`figure "speedup" is missing`:  func(r *Report) { r.Figures[0].Wide = nil },
		`figure and a table, have the`: func(r *Report) { r.Tables[0].ID = "speedup" },
	} {
		r := report(t, "plain")
		change(r)
		if err := r.WriteHTML(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := r.Save(filepath.Join(t.TempDir(), "a.md"), put); err == nil {
			t.Errorf("%s: Markdown was written", want)
		}
	}
	if _, err := report(t, "plain").Save(filepath.Join(t.TempDir(), "a.pdf"), put); err == nil || !strings.Contains(err.Error(), ".html, .md") {
		t.Error(err)
	}
	if _, err := report(t, "plain").Save(filepath.Join(t.TempDir(), "none", "a.html"), put); err == nil || !strings.Contains(err.Error(), "cannot write") {
		t.Error(err)
	}
}

func put(path string, content []byte) error { return sharedfs.Write(path, content, sharedfs.ModeOpen) }

// Data over 1 MiB is a file next to the page, under a name that starts with the page's;
// smaller data is part of the page.
func TestSaveLargeData(t *testing.T) {
	dir := t.TempDir()
	r := report(t, "plain")
	large := bytes.Repeat([]byte("12345678"), 1<<17+1)
	r.Downloads = []Download{{Name: "small.csv", Type: "text/csv", Data: []byte("a,b\n")}, {Name: "large.csv", Type: "text/csv", Data: large}}
	written, err := r.Save(filepath.Join(dir, "my page.html"), func(path string, content []byte) error { return os.WriteFile(path, content, 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "my page-large.csv"), filepath.Join(dir, "my page.html")}
	if d := cmp.Diff(want, written); d != "" {
		t.Errorf("wrote (-want +got):\n%s", d)
	}
	if got, err := os.ReadFile(want[0]); err != nil || !bytes.Equal(got, large) {
		t.Errorf("%s has %d bytes, want %d: %v", want[0], len(got), len(large), err)
	}
	page, err := os.ReadFile(want[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{`href="./my%20page-large.csv"`, `href="data:text/csv;base64,` + base64.StdEncoding.EncodeToString([]byte("a,b\n"))} {
		if !bytes.Contains(page, []byte(link)) {
			t.Errorf("the page has no %s", link)
		}
	}
	if len(page) > 1<<20 {
		t.Errorf("the page has %d bytes with data next to it", len(page))
	}
}
