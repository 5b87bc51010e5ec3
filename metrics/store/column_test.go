package store

import (
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

func TestColumnForm(t *testing.T) {
	make1024 := func(values ...int64) column {
		c := newColumn()
		copy(c, values)
		return c
	}
	tests := []struct {
		name           string
		exists, column column
		minimum        int64
		array          string // "" for none
	}{
		{"offsets from the least", make1024(7, 5, 9), nil, 5, "[2,0,4]"},
		{"a gap", make1024(7, absent, 9), nil, 7, "[0,null,2]"},
		{"duration keeps its array", make1024(7, 7), nil, 7, "[0,0]"},
		{"a constant has none", make1024(1, 2, absent, 3), make1024(8, 8, absent, 8), 8, ""},
		{"measured for a while", make1024(1, 2, 3), make1024(8, 8), 8, "[0,0]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := test.column
			if c == nil {
				c = test.exists
			}
			minimum, array := c.encode(test.exists)
			if *minimum != test.minimum {
				t.Errorf("minimum %d, want %d", *minimum, test.minimum)
			}
			got := ""
			if array != nil {
				got = *array
			}
			if got != test.array {
				t.Errorf("array %s, want %s", got, test.array)
			}
		})
	}
	var empty column = newColumn()
	if minimum, array := empty.encode(newColumn()); minimum != nil || array != nil {
		t.Error("a column without a value has a minimum")
	}
}

func TestDecodeRefusesDamage(t *testing.T) {
	zero := int64(0)
	for _, text := range []string{"", "[", "]", "1,2", "[1,]", "[1,,2]", "[-1]", "[x]", "[1.5]", "[99999999999999999999]", "[1,2"} {
		if err := newColumn().decode(newColumn(), &zero, &text); err == nil {
			t.Errorf("%q was taken for a column", text)
		}
	}
	long := "[0" + string(slices.Repeat([]byte(",0"), blockSteps)) + "]"
	if err := newColumn().decode(newColumn(), &zero, &long); err == nil {
		t.Error("1025 entries were taken for a column")
	}
}

// Encode and decode are each other's inverse, and no text makes decode panic.
func FuzzColumn(f *testing.F) {
	f.Add([]byte{1, 2, 3, 255, 9}, []byte{8, 8, 8, 8, 8}, "[1,null,2]")
	f.Add([]byte{255, 255}, []byte{}, "[")
	f.Add([]byte{5}, []byte{7}, "[]")
	f.Fuzz(func(t *testing.T, durations, values []byte, text string) {
		exists, c := newColumn(), newColumn()
		for i, v := range durations[:min(len(durations), blockSteps)] {
			if v == 255 {
				continue
			}
			exists[i] = int64(v) << (v % 40)
			if i < len(values) && values[i] != 255 {
				c[i] = int64(values[i])
			}
		}
		for _, column := range []column{exists, c} {
			minimum, array := column.encode(exists)
			got := newColumn()
			if err := got.decode(exists, minimum, array); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, column) {
				t.Fatalf("%v became %v", column[:8], got[:8])
			}
		}
		zero := int64(0)
		if err := newColumn().decode(exists, &zero, &text); err != nil && err != errColumn {
			t.Fatal(err)
		}
	})
}

// If a program changes its unit between lines, both are stored in the finer one.
func TestTicksMix(t *testing.T) {
	for _, ticks := range [][2]float64{{1e-3, 1e-6}, {1e-6, 1e-3}} {
		s := openStore(t)
		run := aRun()
		run.Workers = 1
		ms := func(tick float64, n int64) int64 { return n * map[float64]int64{1e-3: 1, 1e-6: 1000}[tick] }
		ingestRun(t, s, run, rankFile(t, t.TempDir(), 0, 0, lines(start(0, 1, 0),
			stepsEvent(1, metrics.Steps{First: 0, Tick: ticks[0], Duration: fill(2, ms(ticks[0], 40)), Samples: fill(2, 3)}),
			stepsEvent(2, metrics.Steps{First: 2, Tick: ticks[1], Duration: fill(2, ms(ticks[1], 7)), Samples: fill(2, 3)}))))
		got := table(t, s, "SELECT step, round(duration, 9), samples FROM rank_step ORDER BY step")
		if want := []string{"0|0.04|3", "1|0.04|3", "2|0.007|3", "3|0.007|3"}; !slices.Equal(got, want) {
			t.Errorf("ticks %v: %q, want %q", ticks, got, want)
		}
	}
	// 1e-300 s and hours cannot share a unit.
	s := openStore(t)
	run := aRun()
	run.Workers = 1
	r := ingestRun(t, s, run, rankFile(t, t.TempDir(), 0, 0, lines(start(0, 1, 0),
		stepsEvent(1, metrics.Steps{First: 0, Tick: 3600, Duration: fill(2, 1), Samples: fill(2, 3)}),
		stepsEvent(2, metrics.Steps{First: 2, Tick: 1e-300, Duration: fill(2, 1), Samples: fill(2, 3)}))))
	if len(r.BadLines) != 1 || r.Steps != 2 {
		t.Errorf("report %+v", r)
	}
}
