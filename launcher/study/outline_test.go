package study

import (
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/worktest"
)

func TestOutlineFindsTheLines(t *testing.T) {
	got, err := outline([]byte(`
[sweep] # "[
workers = [1, # [[
  2,
  [3, "]"] ]
site.name = """
two
lines"""
[[prices]]
where = { a.b = 1, "c.d" = [
  '#' ] }
[[prices]]
per = 'x'
[prices.where]
nodes = 3
["a b".c]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := lines{"sweep": 2, "sweep.workers": 3, "sweep.workers[0]": 3, "sweep.workers[1]": 4, "sweep.workers[2]": 5,
		"sweep.workers[2][0]": 5, "sweep.workers[2][1]": 5, "sweep.site": 6, "sweep.site.name": 6,
		"prices": 9, "prices[0]": 9, "prices[0].where": 10, "prices[0].where.a": 10, "prices[0].where.a.b": 10,
		"prices[0].where.c.d": 10, "prices[0].where.c.d[0]": 11, "prices[1]": 12, "prices[1].per": 13,
		"prices[1].where": 14, "prices[1].where.nodes": 15, "a b": 16, "a b.c": 16}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

var indices = regexp.MustCompile(`\[[0-9]+\]`)

// checkOutline compares the outline of a file with what the toml package finds: it has
// every key and does not stop early.
func checkOutline(t *testing.T, source []byte) {
	o := outliner{text: string(source), line: 1, lines: lines{}, count: map[string]int{}}
	err := o.file()
	if err != nil && err != errLost {
		return // too deep for the parser
	}
	var top map[string]any
	md, parsed := toml.Decode(string(source), &top)
	if parsed != nil {
		return
	}
	if err != nil {
		t.Fatalf("the outline of a TOML file stops at byte %d: %q", o.at, source)
	}
	found := map[string]bool{}
	for path := range o.lines {
		found[indices.ReplaceAllString(path, "")] = true
	}
	for _, key := range md.Keys() {
		path := ""
		for _, name := range key {
			path = join(path, name)
		}
		if path = indices.ReplaceAllString(path, ""); path != "" && !found[path] {
			t.Fatalf("the outline lacks %q: %v of %q", path, o.lines, source)
		}
	}
}

// hostile are files for which a parser would need a gigabyte of stack, or hours.
var hostile = map[string]struct {
	source func(n int) string
	want   string
}{
	"lists":         {func(n int) string { return "a = 1\nb = " + strings.Repeat("[", n) }, "study.toml:2: lists, tables and dotted keys go more than 32 levels deep"},
	"closed lists":  {func(n int) string { return "b = " + strings.Repeat("[", n) + strings.Repeat("]", n) }, "study.toml:1: lists, tables"},
	"lines":         {func(n int) string { return "b = " + strings.Repeat("[\n", n) }, "study.toml:33: lists, tables"},
	"inline tables": {func(n int) string { return "b = " + strings.Repeat("{a=", n/3) }, "study.toml:1: lists, tables"},
	"dotted key":    {func(n int) string { return strings.Repeat("a.", n/2) + "a = 1" }, "study.toml:1: lists, tables"},
	"header":        {func(n int) string { return "[" + strings.Repeat("a.", n/2) + "a]" }, "study.toml:1: lists, tables"},
	"mixed":         {func(n int) string { return "[a.b.c]\n" + strings.Repeat("d.", 20) + "d = " + strings.Repeat("[", n) }, "study.toml:2: lists, tables"},
	"not TOML":      {func(n int) string { return "a = , " + strings.Repeat("[", n) }, "study.toml: "},
	"integer":       {func(n int) string { return "[study]\nrepeats = " + strings.Repeat("9", n) }, "study.toml:2: "},
}

func refused(t *testing.T, source, want string) {
	t.Helper()
	for _, read := range []func() error{
		func() error { _, err := Parse("study.toml", []byte(source), frameworks); return err },
		func() error { _, err := ParseSite("study.toml", []byte(source)); return err },
	} {
		if err := read(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.200v\nwant it to begin %s", err, want)
		}
	}
}

// They are rejected with the line.
func TestHostileFilesAreRefused(t *testing.T) {
	const n = 3 << 20
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) { refused(t, c.source(n), c.want) })
	}
	refused(t, hostile["not TOML"].source(n), "study.toml: 3145728 opening brackets")
	refused(t, "# "+strings.Repeat("x", maxFile), "study.toml: larger than 8 MiB")
	// Deep nesting within the limit is accepted.
	if _, err := ParseSite("site.toml", []byte("[[prices]]\nwhere = "+strings.Repeat("{a=", 20)+"1"+strings.Repeat("}", 20))); err == nil || strings.Contains(err.Error(), "levels") {
		t.Error(err)
	}
}

// The work grows at most in proportion to the length.
func TestHostileFilesAreRefusedEarly(t *testing.T) {
	count := worktest.New(t)
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			count.Linear(t, maxLoose+1, func(n int) { refused(t, c.source(n), c.want) })
		})
	}
}
