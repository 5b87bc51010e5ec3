package table

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/worktest"
)

func sample() *Table {
	t := &Table{Columns: []Column{
		{Key: "run"},
		{Key: "workers"},
		{Key: "throughput", Unit: "samples/s"},
		{Key: "time_to_accuracy", Head: "to 0.75", Show: number.Seconds},
		{Key: "good"},
		{Key: "created"},
		{Key: "parameters"},
	}}
	half, none := 1234.5678, (*float64)(nil)
	t.Add("a|b", 1, &half, 75.25, true, time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC), map[string]any{"b": 1, "a": "<x>"})
	t.Add("=cmd()", 64, math.NaN(), none, false, time.Time{}, nil)
	t.Notes = []string{"base: 1 worker"}
	return t
}

func printed(t *testing.T, tab *Table, format string, on Screen) string {
	t.Helper()
	var b strings.Builder
	if err := tab.Write(&b, format, on); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	for format, want := range map[string]string{
		FormatTable: `
run     workers  throughput (samples/s)  to 0.75  good  created              parameters
a|b           1                    1230   75.2 s  yes   2026-11-21 01:02:03  a=<x>, b=1
=cmd()       64                       –        –  no    –                    –
base: 1 worker
`,
		FormatCSV: `
run,workers,throughput,time_to_accuracy,good,created,parameters
a|b,1,1234.5678,75.25,true,2026-11-21T01:02:03Z,"{""a"":""<x>"",""b"":1}"
'=cmd(),64,,,false,,
`,
		FormatJSON: `
[
  {"run": "a|b", "workers": 1, "throughput": 1234.5678, "time_to_accuracy": 75.25, "good": true, "created": "2026-11-21T01:02:03Z", "parameters": {"a":"<x>","b":1}},
  {"run": "=cmd()", "workers": 64, "throughput": null, "time_to_accuracy": null, "good": false, "created": null, "parameters": null}
]
`,
		FormatMarkdown: `
| run | workers | throughput (samples/s) | to 0.75 | good | created | parameters |
| --- | ---: | ---: | ---: | --- | --- | --- |
| a\|b | 1 | 1230 | 75.2 s | yes | 2026-11-21 01:02:03 | a=&lt;x>, b=1 |
| =cmd() | 64 | – | – | no | – | – |

base: 1 worker
`,
	} {
		t.Run(format, func(t *testing.T) {
			if diff := cmp.Diff(want[1:], printed(t, sample(), format, Screen{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyTable(t *testing.T) {
	for format, want := range map[string]string{
		FormatTable: "run  workers\n", FormatCSV: "run,workers\n", FormatJSON: "[]\n",
		FormatMarkdown: "| run | workers |\n| --- | --- |\n",
	} {
		empty := &Table{Columns: []Column{{Key: "run"}, {Key: "workers"}}}
		if got := printed(t, empty, format, Screen{}); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
}

// On a terminal, the table breaks text to fit the width, without losing
// characters.
func TestTableFitsTheTerminal(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "point"}, {Key: "workers"}, {Key: "detail"}}}
	detail := "srun: error: node 7 did not answer within three hundred seconds"
	tab.Add("native-resnet20", 128, detail)
	got := printed(t, tab, FormatTable, Screen{Width: 50})
	letters := ""
	for line := range strings.Lines(got) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 50 {
			t.Errorf("line of %d columns: %q", n, line)
		}
		if fields := line[min(len(line), 26):]; !strings.Contains(line, "detail") {
			letters += strings.TrimSpace(fields) + " "
		}
	}
	if strings.TrimSpace(letters) != detail {
		t.Errorf("the detail reads %q in\n%s", letters, got)
	}
	if !strings.Contains(got, "native-resnet20") {
		t.Errorf("a name is broken:\n%s", got)
	}
	if wide := printed(t, tab, FormatTable, Screen{}); strings.Count(wide, "\n") != 2 {
		t.Errorf("a pipe gets broken lines:\n%s", wide)
	}
}

func TestNarrowTerminalFoldsColumns(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "run"}, {Key: "nodes", Optional: true}, {Key: "throughput", Unit: "samples/s"}, {Key: "job", Optional: true}}}
	tab.Add("study/native-w1-r1-a1", 4, 512.25, "4711")
	for width, want := range map[int]string{
		// 21 + 2 + 5 + 2 + 22 + 2 + 4 columns, and fewer
		58: "run                    nodes  throughput (samples/s)  job\nstudy/native-w1-r1-a1      4                     512  4711\n",
		57: "                               throughput\nrun                    nodes  (samples/s)  job\nstudy/native-w1-r1-a1      4          512  4711\n",
		// 21 + 2 + 5 + 2 + 11 + 2 + 4 columns; below that each part of the table begins with the run
		47: "                               throughput\nrun                    nodes  (samples/s)  job\nstudy/native-w1-r1-a1      4          512  4711\n",
		46: "                               throughput\nrun                    nodes  (samples/s)\nstudy/native-w1-r1-a1      4          512\n\nrun                    job\nstudy/native-w1-r1-a1  4711\n",
		40: "run                    nodes\nstudy/native-w1-r1-a1      4\n\n                        throughput\nrun                    (samples/s)  job\nstudy/native-w1-r1-a1          512  4711\n",
		33: "run                    nodes\nstudy/native-w1-r1-a1      4\n\n                        throughput\nrun                    (samples/s)\nstudy/native-w1-r1-a1          512\n\nrun                    job\nstudy/native-w1-r1-a1  4711\n",
	} {
		if diff := cmp.Diff(want, printed(t, tab, FormatTable, Screen{Width: width})); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

// An optional column that is empty in all rows is omitted for people, and kept for programs,
// which rely on it.
func TestEmptyColumns(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "run"}, {Key: "job", Optional: true}, {Key: "reason", Optional: true}, {Key: "accuracy"}}}
	tab.Add("a", nil, "", nil)
	tab.Add("b", "4711", nil, math.NaN())
	for format, want := range map[string]string{
		FormatTable:    "run  job   accuracy\na    –     –\nb    4711  –\n",
		FormatMarkdown: "| run | job | accuracy |\n| --- | --- | --- |\n| a | – | – |\n| b | 4711 | – |\n",
		FormatCSV:      "run,job,reason,accuracy\na,,,\nb,4711,,\n",
	} {
		if diff := cmp.Diff(want, printed(t, tab, format, Screen{Width: 80})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	tab.Rows = nil
	if diff := cmp.Diff("run  job  reason  accuracy\n", printed(t, tab, FormatTable, Screen{})); diff != "" {
		t.Errorf("without rows (-want +got):\n%s", diff)
	}
}

// A narrow terminal gets intervals below their values, and then parts of the table with
// the columns that identify its rows. A number stays with its unit, a command whole.
func TestNarrowTerminalFoldsNumbers(t *testing.T) {
	tab := &Table{
		Columns: []Column{{Key: "series", ID: true}, {Key: "workers", ID: true, Right: true}, {Key: "time", Right: true}, {Key: "speedup", Right: true}},
		Notes:   []string{"Measure next: `scalebench run a.toml`."},
	}
	tab.Add("a", "1", "1.75 s [at least 1.49 s] reached 5/6", "1.00")
	tab.Add("a", "16", "95 ms [90 ms, 99 ms]", "18.4 [17.0, 19.5]")
	for width, want := range map[int]string{
		50: `
series  workers               time       speedup
a             1             1.75 s          1.00
                 [at least 1.49 s]
                       reached 5/6
a            16              95 ms          18.4
                    [90 ms, 99 ms]  [17.0, 19.5]
Measure next: ` + "`scalebench run a.toml`." + `
`,
		36: `
series  workers               time
a             1             1.75 s
                 [at least 1.49 s]
                       reached 5/6
a            16              95 ms
                    [90 ms, 99 ms]

series  workers            speedup
a             1               1.00
a            16  18.4 [17.0, 19.5]
Measure next:
` + "`scalebench run a.toml`." + `
`,
	} {
		if diff := cmp.Diff(want[1:], printed(t, tab, FormatTable, Screen{Width: width})); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

// Notes are broken at spaces to fit the terminal; words are not broken.
func TestNotesFitTheTerminal(t *testing.T) {
	tab := &Table{Columns: []Column{{Key: "run"}, {Key: "nodes", Optional: true}}, Notes: []string{"Größe: as many workers as a node has, unless-somebody-says-otherwise."}}
	tab.Add("a-run-1", 4)
	for width, want := range map[int]string{
		0:  "Größe: as many workers as a node has, unless-somebody-says-otherwise.\n",
		69: "Größe: as many workers as a node has, unless-somebody-says-otherwise.\n",
		68: "Größe: as many workers as a node has,\nunless-somebody-says-otherwise.\n",
		22: "Größe: as many workers\nas a node has,\nunless-somebody-says-otherwise.\n",
		21: "Größe: as many\nworkers as a node\nhas,\nunless-somebody-says-otherwise.\n",
	} {
		_, notes, _ := strings.Cut(printed(t, tab, FormatTable, Screen{Width: width}), "a-run-1      4\n")
		if diff := cmp.Diff(want, notes); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

func TestBoldOnlyOnTerminals(t *testing.T) {
	if got := printed(t, sample(), FormatTable, Screen{}); strings.Contains(got, "\x1b") {
		t.Errorf("escape codes in a pipe: %q", got)
	}
	bold := printed(t, sample(), FormatTable, Screen{Width: 200, Bold: true})
	if !strings.HasPrefix(bold, "\x1b[1mrun\x1b[0m") {
		t.Errorf("no bold head: %q", bold)
	}
	plain := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(bold)
	if diff := cmp.Diff(printed(t, sample(), FormatTable, Screen{Width: 200}), plain); diff != "" {
		t.Errorf("bold changes the layout:\n%s", diff)
	}
}

// FuzzTable prints any text in every format: no output has control characters, CSV and JSON can
// be parsed, and JSON loses nothing.
func FuzzTable(f *testing.F) {
	f.Add("plain", 1.5)
	f.Add("\x1b[2J|`\"',\r\n=x", math.Inf(1))
	f.Add("\u202eabc\u009b \xff", math.NaN())
	f.Fuzz(func(t *testing.T, s string, v float64) {
		tab := &Table{Columns: []Column{{Key: "text"}, {Key: "value"}, {Key: s + " as a name"}, {Key: "head", Head: s, Unit: s}}, Notes: []string{s}}
		tab.Add(s, v, 1, 2)
		for _, format := range Formats {
			got := printed(t, tab, format, Screen{Width: 40})
			for _, r := range got {
				// CSV allows line breaks in quoted fields.
				if clean.Steers(r) && r != '\n' && (format != FormatCSV || r != '\t') {
					t.Fatalf("%s lets %q through: %q", format, r, got)
				}
			}
		}
		rows, err := csv.NewReader(strings.NewReader(printed(t, tab, FormatCSV, Screen{}))).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) != 4 {
			t.Fatalf("CSV reads back as %q, %v", rows, err)
		}
		for _, row := range rows {
			for _, field := range row[:3] {
				if field != "" && strings.ContainsRune("=@", rune(field[0])) {
					t.Errorf("CSV has a formula: %q", field)
				}
			}
		}
		var objects []struct {
			Text  string
			Value *float64
		}
		if err := json.Unmarshal([]byte(printed(t, tab, FormatJSON, Screen{})), &objects); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); !cmp.Equal([]rune(s), []rune(objects[0].Text)) && objects[0].Text != want {
			t.Errorf("JSON gives %q for %q", objects[0].Text, s)
		}
		finite := !math.IsNaN(v) && !math.IsInf(v, 0)
		if (objects[0].Value != nil) != finite || finite && *objects[0].Value != v {
			t.Errorf("JSON gives %v for %v", objects[0].Value, v)
		}
	})
}

// BenchmarkPrint prints 100,000 runs.
func BenchmarkPrint(b *testing.B) {
	tab := &Table{Columns: []Column{{Key: "run"}, {Key: "workers"}, {Key: "throughput", Unit: "samples/s"}, {Key: "training", Show: number.Seconds}, {Key: "created"}}}
	for i := range 100_000 {
		tab.Add("study/native-w8-0123456789-r1-a1", i, float64(i)*1.234, float64(i)/7, time.Unix(int64(1795000000+i), 0))
	}
	for _, format := range Formats {
		b.Run(format, func(b *testing.B) {
			for range b.N {
				if err := tab.Write(io.Discard, format, Screen{Width: 80}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The work of writing a table is linear in its rows, with an optional column that is
// empty in all of them.
func TestManyRows(t *testing.T) {
	worktest.New(t).Linear(t, 200, func(n int) {
		table := Table{Columns: []Column{{Key: "run"}, {Key: "note", Optional: true}}}
		for range n {
			table.Add("r", nil)
		}
		var b strings.Builder
		if err := table.Write(&b, FormatMarkdown, Screen{}); err != nil || strings.Contains(b.String(), "note") {
			t.Errorf("%v: %.100s", err, b.String())
		}
	})
}
