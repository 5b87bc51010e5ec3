package main

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
)

func sample() *table {
	t := &table{columns: []column{
		{key: "run"},
		{key: "workers"},
		{key: "throughput", unit: "samples/s"},
		{key: "time_to_accuracy", head: "to 0.75", show: seconds},
		{key: "good"},
		{key: "created"},
		{key: "parameters"},
	}}
	half, none := 1234.5678, (*float64)(nil)
	t.add("a|b", 1, &half, 75.25, true, time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC), map[string]any{"b": 1, "a": "<x>"})
	t.add("=cmd()", 64, math.NaN(), none, false, time.Time{}, nil)
	t.notes = []string{"base: 1 worker"}
	return t
}

func printed(t *testing.T, tab *table, format string, on screen) string {
	t.Helper()
	var b strings.Builder
	if err := tab.write(&b, format, on); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	for format, want := range map[string]string{
		formatTable: `
run     workers  throughput (samples/s)  to 0.75  good  created              parameters
a|b           1                    1230   75.2 s  yes   2026-11-21 01:02:03  a=<x>, b=1
=cmd()       64                       –        –  no    –                    –
base: 1 worker
`,
		formatCSV: `
run,workers,throughput,time_to_accuracy,good,created,parameters
a|b,1,1234.5678,75.25,true,2026-11-21T01:02:03Z,"{""a"":""<x>"",""b"":1}"
'=cmd(),64,,,false,,
`,
		formatJSON: `
[
  {"run": "a|b", "workers": 1, "throughput": 1234.5678, "time_to_accuracy": 75.25, "good": true, "created": "2026-11-21T01:02:03Z", "parameters": {"a":"<x>","b":1}},
  {"run": "=cmd()", "workers": 64, "throughput": null, "time_to_accuracy": null, "good": false, "created": null, "parameters": null}
]
`,
		formatMarkdown: `
| run | workers | throughput (samples/s) | to 0.75 | good | created | parameters |
| --- | ---: | ---: | ---: | --- | --- | --- |
| a\|b | 1 | 1230 | 75.2 s | yes | 2026-11-21 01:02:03 | a=&lt;x>, b=1 |
| =cmd() | 64 | – | – | no | – | – |

base: 1 worker
`,
	} {
		t.Run(format, func(t *testing.T) {
			if diff := cmp.Diff(want[1:], printed(t, sample(), format, screen{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyTable(t *testing.T) {
	for format, want := range map[string]string{
		formatTable: "run  workers\n", formatCSV: "run,workers\n", formatJSON: "[]\n",
		formatMarkdown: "| run | workers |\n| --- | --- |\n",
	} {
		empty := &table{columns: []column{{key: "run"}, {key: "workers"}}}
		if got := printed(t, empty, format, screen{}); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
}

// On a terminal the table keeps to its width by breaking text, and no letter
// gets lost.
func TestTableFitsTheTerminal(t *testing.T) {
	tab := &table{columns: []column{{key: "point"}, {key: "workers"}, {key: "detail"}}}
	detail := "srun: error: node 7 did not answer within three hundred seconds"
	tab.add("native-resnet20", 128, detail)
	got := printed(t, tab, formatTable, screen{width: 50})
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
	if wide := printed(t, tab, formatTable, screen{}); strings.Count(wide, "\n") != 2 {
		t.Errorf("a pipe gets broken lines:\n%s", wide)
	}
}

func TestNarrowTerminalLeavesColumnsOut(t *testing.T) {
	tab := &table{columns: []column{{key: "run"}, {key: "nodes", optional: true}, {key: "throughput", unit: "samples/s"}, {key: "job", optional: true}}}
	tab.add("study/native-w1-r1-a1", 4, 512.25, "4711")
	for width, want := range map[int]string{
		// 21 + 2 + 5 + 2 + 22 + 2 + 4 columns, and fewer
		58: "run                    nodes  throughput (samples/s)  job\nstudy/native-w1-r1-a1      4                     512  4711\n",
		57: "run                    nodes  throughput (samples/s)\nstudy/native-w1-r1-a1      4                     512\nLeft out for want of room: job.\n",
		51: "run                    throughput (samples/s)\nstudy/native-w1-r1-a1                     512\nLeft out for want of room: nodes, job.\n",
	} {
		if diff := cmp.Diff(want, printed(t, tab, formatTable, screen{width: width})); diff != "" {
			t.Errorf("width %d (-want +got):\n%s", width, diff)
		}
	}
}

func TestBoldOnlyWhereWanted(t *testing.T) {
	if got := printed(t, sample(), formatTable, screen{}); strings.Contains(got, "\x1b") {
		t.Errorf("escape codes in a pipe: %q", got)
	}
	bold := printed(t, sample(), formatTable, screen{width: 200, bold: true})
	if !strings.HasPrefix(bold, "\x1b[1mrun\x1b[0m") {
		t.Errorf("no bold head: %q", bold)
	}
	plain := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(bold)
	if diff := cmp.Diff(printed(t, sample(), formatTable, screen{width: 200}), plain); diff != "" {
		t.Errorf("bold changes the layout:\n%s", diff)
	}
}

// FuzzTable puts any text through every format: no format lets a terminal be
// steered, CSV and JSON parse again, JSON without loss.
func FuzzTable(f *testing.F) {
	f.Add("plain", 1.5)
	f.Add("\x1b[2J|`\"',\r\n=x", math.Inf(1))
	f.Add("\u202eabc\u009b \xff", math.NaN())
	f.Fuzz(func(t *testing.T, s string, v float64) {
		tab := &table{columns: []column{{key: "text"}, {key: "value"}}}
		tab.add(s, v)
		for _, format := range formats {
			got := printed(t, tab, format, screen{width: 40})
			for _, r := range got {
				// CSV may break a quoted field over lines, as the format has it.
				if clean.Steers(r) && r != '\n' && (format != formatCSV || r != '\t') {
					t.Fatalf("%s lets %q through: %q", format, r, got)
				}
			}
		}
		rows, err := csv.NewReader(strings.NewReader(printed(t, tab, formatCSV, screen{}))).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) != 2 {
			t.Fatalf("CSV reads back as %q, %v", rows, err)
		}
		var objects []struct {
			Text  string
			Value *float64
		}
		if err := json.Unmarshal([]byte(printed(t, tab, formatJSON, screen{})), &objects); err != nil {
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
	tab := &table{columns: []column{{key: "run"}, {key: "workers"}, {key: "throughput", unit: "samples/s"}, {key: "training", show: seconds}, {key: "created"}}}
	for i := range 100_000 {
		tab.add("study/native-w8-0123456789-r1-a1", i, float64(i)*1.234, float64(i)/7, time.Unix(int64(1795000000+i), 0))
	}
	for _, format := range formats {
		b.Run(format, func(b *testing.B) {
			for range b.N {
				if err := tab.write(io.Discard, format, screen{width: 80}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
