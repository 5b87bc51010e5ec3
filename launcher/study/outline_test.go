package study

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
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

// checkOutline holds the outline of a file against what the toml package finds
// in it: every key, and no stop before the end.
func checkOutline(t *testing.T, source []byte) {
	o := outliner{text: string(source), line: 1, lines: lines{}, count: map[string]int{}}
	err := o.file()
	if err != nil && err != errLost {
		return // too deep: the parser is not asked
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

// A file that a parser would need a gigabyte of stack for, or hours, is refused
// at once, with the line.
func TestHostileFilesAreRefusedEarly(t *testing.T) {
	const n = 3 << 20
	for name, c := range map[string]struct{ source, want string }{
		"lists":         {"a = 1\nb = " + strings.Repeat("[", n), "study.toml:2: lists, tables and dotted keys go more than 32 levels deep"},
		"closed lists":  {"b = " + strings.Repeat("[", n) + strings.Repeat("]", n), "study.toml:1: lists, tables"},
		"lines":         {"b = " + strings.Repeat("[\n", n), "study.toml:33: lists, tables"},
		"inline tables": {"b = " + strings.Repeat("{a=", n/3), "study.toml:1: lists, tables"},
		"dotted key":    {strings.Repeat("a.", n/2) + "a = 1", "study.toml:1: lists, tables"},
		"header":        {"[" + strings.Repeat("a.", n/2) + "a]", "study.toml:1: lists, tables"},
		"mixed":         {"[a.b.c]\n" + strings.Repeat("d.", 20) + "d = " + strings.Repeat("[", 20), "study.toml:2: lists, tables"},
		"not TOML":      {"a = , " + strings.Repeat("[", n), "study.toml: 3145728 opening brackets"},
		"size":          {"# " + strings.Repeat("x", maxFile), "study.toml: larger than 8 MiB"},
		"integer":       {"[study]\nrepeats = " + strings.Repeat("9", n), "study.toml:2: "},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			for _, read := range []func() error{
				func() error { _, err := Parse("study.toml", []byte(c.source), frameworks); return err },
				func() error { _, err := ParseSite("study.toml", []byte(c.source)); return err },
			} {
				if err := read(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
					t.Errorf("%.200v\nwant it to begin %s", err, c.want)
				}
			}
			if took := time.Since(started); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	// What is deep, but not too deep, is read.
	if _, err := ParseSite("site.toml", []byte("[[prices]]\nwhere = "+strings.Repeat("{a=", 20)+"1"+strings.Repeat("}", 20))); err == nil || strings.Contains(err.Error(), "levels") {
		t.Error(err)
	}
}
