package extract

import (
	"fmt"
	"strings"
	"testing"
)

// A variant is output that a program writes in another version or with other settings
// than those of testdata, and what must be read from it. Values are worked out by hand
// from the program's own definition of the figure.
type variant struct {
	name, format, text string
	o                  Options
	want               []string // parts of findings
	never              []string // likewise, which must not be there
	says               string   // part of a note
	refused            string   // part of the error; "": it is read
}

func (v variant) run(t *testing.T) {
	t.Helper()
	e, err := Find(v.format)
	if err != nil {
		t.Fatal(err)
	}
	if v.refused != "" {
		v.o.File = "log"
		r, err := e.Extract(strings.NewReader(v.text), v.o)
		if err == nil || !strings.Contains(err.Error(), v.refused) {
			var lines []string
			for f := range r.Findings() {
				lines = append(lines, written(f))
			}
			t.Errorf("error %v; want %q\n%s\n%s", err, v.refused, strings.Join(lines, "\n"), strings.Join(r.Notes, "\n"))
		}
		return
	}
	v.o.File = "log"
	r, err := e.Extract(strings.NewReader(v.text), v.o)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	var lines, wrong []string
	notes := strings.Join(r.Notes, "\n")
	for f := range r.Findings() {
		lines = append(lines, written(f)+" ")
		if f.Event.Figure != nil {
			notes += "\n" + f.Event.Figure.Note
		}
	}
	all := strings.Join(lines, "\n")
	for _, w := range v.want {
		if !strings.Contains(all, w) {
			wrong = append(wrong, fmt.Sprintf("%q is not there", w))
		}
	}
	for _, w := range v.never {
		if strings.Contains(all, w) {
			wrong = append(wrong, fmt.Sprintf("%q is there", w))
		}
	}
	if !strings.Contains(notes, v.says) {
		wrong = append(wrong, fmt.Sprintf("%q is not said", v.says))
	}
	if len(wrong) > 0 {
		t.Errorf("%s:\n%s\n%s", strings.Join(wrong, "; "), all, strings.Join(r.Notes, "\n"))
	}
}

func runVariants(t *testing.T, format string, list []variant) {
	t.Helper()
	for _, v := range list {
		if v.format == "" {
			v.format = format
		}
		t.Run(v.name, v.run)
	}
}

// What a terminal, an editor or a collector adds to a log changes no figure.
func TestLinesVariants(t *testing.T) {
	const log = "Summary:\n  Total:\t10.0000 secs\n  Average:\t0.0080 secs\n  Requests/sec:\t1000.0000\n\nLatency distribution:\n  99% in 0.0150 secs\n\nStatus code distribution:\n  [200]\t10000 responses\n"
	prefixed := func(prefix string) string {
		return prefix + strings.ReplaceAll(strings.TrimSuffix(log, "\n"), "\n", "\n"+prefix) + "\n"
	}
	var list []variant
	for name, text := range map[string]string{
		"a byte order mark":   "\ufeff" + log,
		"Windows' line ends":  strings.ReplaceAll(log, "\n", "\r\n"),
		"a hidden cursor":     "\x1b[?25l" + strings.ReplaceAll(log, "\n", "\x1b[K\n"),
		"a title":             "\x1b]0;hey\x07" + log,
		"colours":             strings.ReplaceAll(log, "\n", "\x1b[38;5;12m\x1b[0m\n"),
		"a bar overwritten":   "  10%\r  50%\r" + log,
		"containerd":          prefixed("2024-05-01T10:00:00.123456789+02:00 stdout F "),
		"kubectl":             prefixed("[pod/bench-0/hey] "),
		"kubectl, with times": prefixed("[pod/bench-0/hey] 2024-05-01T10:00:00.123Z "),
		"journald":            prefixed("May 01 10:00:00 n01 hey[4711]: "),
		"journald's ISO form": prefixed("2024-05-01T10:00:00+0200 n01 hey[4711]: "),
		"ts":                  prefixed("May 01 10:00:00 "),
		"Ray":                 prefixed("(Bench pid=7, ip=10.0.0.1) "),
		"Python's logging":    prefixed("2024-05-01 10:00:00,123 - bench - INFO - "),
		"Python, no name":     prefixed("2024-05-01 10:00:00,123 INFO "),
		"loguru":              prefixed("2024-05-01 10:00:00.123 | INFO     | "),
		"srun -l":             prefixed("0: "),
		"srun -l under ts":    prefixed("May 01 10:00:00 0: "),
		"GitHub":              prefixed("2024-05-01T10:00:00.1234567Z "),
	} {
		list = append(list, variant{name: name, text: text, o: Options{At: map[string]float64{"threads": 8}}, want: []string{" requests_per_second 1000 requests/s ", " latency_p99 0.015 s "}})
	}
	runVariants(t, "hey", list)
}
