package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// variants is the number of damaged files that TestDamaged tries per format.
const variants = 10_000

// tokens matches the numbers of a line.
var tokens = regexp.MustCompile(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)

// stated reports whether a text contains a number.
func stated(text string, number float64) bool {
	for _, token := range tokens.FindAllString(text, -1) {
		for _, t := range []string{token, strings.TrimLeft(token, "+-")} {
			if x, err := strconv.ParseFloat(t, 64); err == nil && x == number {
				return true
			}
		}
	}
	return false
}

// check verifies an invariant of every result: each value is a complete number on its line.
func check(t *testing.T, format string, data []byte, r Content) {
	t.Helper()
	checkEvents(t, r)
	if format == tensorboard.Name {
		return // checksums protect these values; TestDamaged compares them
	}
	if format == "extract" {
		return // these values are in the pattern's unit
	}
	lines := strings.Split(string(data), "\n")
	for f := range r.Findings() {
		if format == mlperf.Name && (f.Event.Train != nil || f.Event.Figure != nil && f.Event.Figure.Unit == "s") {
			continue // differences of times
		}
		for _, v := range f.Values {
			where := string(data)
			if !strings.HasSuffix(format, "-json") && format != hfTrainerState.Name {
				if v.Line < 1 || v.Line > len(lines) {
					t.Fatalf("line %d of %d", v.Line, len(lines))
				}
				where = lines[v.Line-1]
			}
			if format == torchtitan.Name || format == nanoGPT.Name { // where 1,234 is one number
				where = strings.ReplaceAll(where, ",", "")
			}
			if !stated(where, v.Number) {
				t.Errorf("%s: %v is not in line %d: %q", written(f), v.Number, v.Line, where)
			}
		}
	}
}

// damage changes data at random, in ways that files get damaged.
func damage(r *rand.Rand, data []byte) []byte {
	out := bytes.Clone(data)
	for range 1 + r.IntN(3) {
		if len(out) == 0 {
			return out
		}
		at := r.IntN(len(out))
		lines := bytes.SplitAfter(out, []byte{'\n'})
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(13) {
		case 0:
			out = out[:at]
		case 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			out[at] = byte(r.IntN(256))
		case 3:
			out = append(out[:at:at], out[at+1:]...)
		case 4:
			lines[i], lines[j] = lines[j], lines[i]
			out = bytes.Join(lines, nil)
		case 5: // repeat a line
			lines[i] = append(bytes.Clone(lines[i]), lines[i]...)
			out = bytes.Join(lines, nil)
		case 6:
			lines[i] = nil
			out = bytes.Join(lines, nil)
		case 7: // replace a number
			all := tokens.FindAllIndex(out, -1)
			if len(all) > 0 {
				n := all[r.IntN(len(all))]
				values := []string{"nan", "NaN", "inf", "-1", "0", "1e400", "1e308", "99999999999999999999", "0x1p3", "1_000", "", "1,5", "null", "\"1\""}
				out = append(append(bytes.Clone(out[:n[0]]), values[r.IntN(len(values))]...), out[n[1]:]...)
			}
		case 8:
			out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
		case 9:
			out = append(append(bytes.Clone(out[:at]), 0xff, 0xfe, 0x80), out[at:]...)
		case 10: // cut out the middle, as after a full disk
			to := at + r.IntN(len(out)-at)
			out = append(bytes.Clone(out[:at]), out[to:]...)
		case 11: // join two files
			out = append(out, data...)
		case 12: // add rank prefixes
			prefix := []string{"0: ", "[default0]:", "[1,0]<stdout>:", "3: "}[r.IntN(4)]
			for k := range lines {
				if len(lines[k]) > 0 && (k == i || r.IntN(2) == 0) {
					lines[k] = append([]byte(prefix), lines[k]...)
				}
			}
			out = bytes.Join(lines, nil)
		}
	}
	return out
}

// A damaged file gives an error, or only values that it still states.
func TestDamaged(t *testing.T) {
	per := map[string]int{}
	for _, s := range samples {
		per[s.format]++
	}
	for _, s := range samples {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(s.path())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.extract(data); err != nil {
				t.Fatal(err)
			}
			known := map[string]bool{} // all values of tags
			for at := 0; s.format == tensorboard.Name && at < len(data); {
				record, next, err := tfRecord(data, at)
				if err != nil {
					t.Fatal(err)
				}
				_, scalars, err := tfEvent(record)
				if err != nil {
					t.Fatal(err)
				}
				for _, one := range scalars {
					known[fmt.Sprint(one.tag, one.step, one.v.Number)] = true
				}
				at = next
			}
			r := rand.New(rand.NewPCG(7, uint64(len(data))))
			n := (variants + per[s.format] - 1) / per[s.format]
			if testing.Short() {
				n /= 20
			}
			failed, began := 0, time.Now()
			for range n {
				bad := damage(r, data)
				got, err := s.extract(bad)
				if err != nil {
					failed++
					if !strings.HasPrefix(err.Error(), s.path()) {
						t.Errorf("the error does not begin with the file: %v", err)
					}
					continue
				}
				check(t, s.format, bad, got)
				if s.format == tensorboard.Name {
					for f := range got.Findings() {
						if g := f.Event.Figure; g != nil && !known[fmt.Sprint(g.Name, int64(g.At["step"].(float64)), g.Value)] {
							t.Errorf("%s is not in the whole file", written(f))
						}
					}
				}
				if t.Failed() {
					keep := filepath.Join(os.TempDir(), "damaged-"+filepath.Base(s.file))
					if err := os.WriteFile(keep, bad, 0o600); err != nil {
						t.Log(err)
					}
					t.Fatalf("kept as %s", keep)
				}
			}
			t.Logf("%d variants, %d of them errors, in %v", n, failed, time.Since(began).Round(time.Millisecond))
			if failed == 0 || failed == n {
				t.Errorf("%d of %d variants are errors", failed, n)
			}
		})
	}
}

// tableColumns maps Lightning's sample as a generic table.
var tableColumns = map[string]Column{"accuracy": {Name: "val_acc"}, "throughput": {Name: "train/device/samples_per_sec", Unit: "samples/s"}, "step": {Name: "step"},
	"the_epoch": {Name: "epoch"}}

func readTable(data []byte) (list []TableRun, err error) {
	for run, err := range Runs(bytes.NewReader(data), Options{File: "t.csv"}, tableColumns) {
		if err != nil {
			return nil, err
		}
		list = append(list, run)
	}
	return list, nil
}

func checkTable(t *testing.T, data []byte, list []TableRun) {
	t.Helper()
	for _, one := range list {
		check(t, "csv", data, one.Result)
	}
}

// TestDamagedTable checks the same as TestDamaged for a generic CSV table.
func TestDamagedTable(t *testing.T) {
	data := tableSample(t)
	if _, err := readTable(data); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(8, 8))
	failed, n := 0, variants
	if testing.Short() {
		n /= 20
	}
	for range n {
		bad := damage(r, data)
		list, err := readTable(bad)
		if err != nil {
			failed++
			continue
		}
		checkTable(t, bad, list)
		if t.Failed() {
			t.Fatalf("%q", bad)
		}
	}
	if failed == 0 || failed == n {
		t.Errorf("%d of %d variants are errors", failed, n)
	}
}

// tableSample returns the rows of Lightning's file that have a rate.
func tableSample(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/lightning-csv.csv")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i, row := range strings.SplitAfter(string(data), "\n") {
		if cells := strings.Split(row, ","); i == 0 || len(cells) > 4 && (cells[4] != "" || cells[8] != "") {
			rows = append(rows, row)
		}
	}
	return []byte(strings.Join(rows, ""))
}

func FuzzExtract(f *testing.F) {
	for _, s := range samples {
		data, err := os.ReadFile(s.path())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.format, data)
		f.Add(s.format, bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")))
		f.Add(s.format, data[:len(data)*2/3])
	}
	f.Fuzz(func(t *testing.T, format string, data []byte) {
		for _, o := range []Options{{Workers: 1}, {Workers: 1, At: map[string]float64{"batch": 2, "threads": 3}}, {At: map[string]float64{"rate": 2000}}} {
			s := sample{file: "fuzz", format: format, options: o}
			if r, err := s.extract(data); err == nil {
				check(t, format, data, r)
			}
		}
	})
}

func FuzzRuns(f *testing.F) {
	f.Add(tableSample(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if list, err := readTable(data); err == nil {
			checkTable(t, data, list)
		}
	})
}

func FuzzPatterns(f *testing.F) {
	e, err := Patterns([]Pattern{{Name: "throughput", Pattern: `^Train: .*\(.*s, +(?P<value>[\d.]+)/s\)`, Unit: "img/s", Per: "step"},
		{Name: "accuracy", Pattern: `Acc@1: +(?P<value>[\d.]+)`, Unit: "%", Per: "epoch"}})
	if err != nil {
		f.Fatal(err)
	}
	bar, err := Patterns([]Pattern{{Name: "throughput", Pattern: `, +(?P<value>[\d.,:]+) ?it/s`, Unit: "it/s", Per: "step"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("9/9 [00:10<00:10, 3.41s/it]\r10/9 [1:00:10<00:10, 1.02it/s]\n, 1,234.5 s/it\n, 0:01:02.5 s/it\n, 12K it/s\n"))
	data, err := os.ReadFile("testdata/timm.log")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range []Extractor{e, bar} {
			if r, err := e.Extract(bytes.NewReader(data), Options{File: "fuzz", Workers: 1, WorkerBatch: 8}); err == nil {
				check(t, e.Name, data, r)
			}
		}
	})
}

// The seeds of the fuzz functions exist.
func TestFuzzSeeds(t *testing.T) {
	for _, name := range []string{"FuzzExtract", "FuzzRuns", "FuzzPatterns"} {
		if files, err := os.ReadDir(filepath.Join("testdata", "fuzz", name)); err != nil || len(files) == 0 {
			t.Errorf("%s has no seeds: %v", name, err)
		}
	}
}
