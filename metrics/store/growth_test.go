package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// longFile returns a rank's file across three blocks, with bad lines, a gap, a part that is
// measured only in some steps, two ticks, and an overlap.
func longFile(rank int, rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString(lines(start(rank, 2, 0), metrics.Event{Time: 0.5, Train: &metrics.Train{GlobalBatch: 8}}))
	for first := 0; first < 2500; first += 100 {
		s := metrics.Steps{First: first, Tick: 1e-6}
		for range 100 {
			s.Duration = append(s.Duration, 1000+rng.Int64N(50))
			s.Samples = append(s.Samples, 4)
			if first < 1500 {
				s.Compute = append(s.Compute, 500+rng.Int64N(9))
			}
		}
		switch first {
		case 300:
			b.WriteString("{broken\n")
			continue // the gap
		case 700:
			s.Tick = 1e-7 // finer than what the block has so far
		case 1000:
			b.WriteString(lines(metrics.Event{Time: 2, Evaluation: &metrics.Evaluation{Step: 1000, Accuracy: 0.6}}))
		case 2000:
			b.WriteString(lines(stepsEvent(3, metrics.Steps{First: 1950, Tick: 1e-6, Duration: fill(60, 1), Samples: fill(60, 1)})))
		}
		b.WriteString(lines(stepsEvent(1+float64(first)/1000, s)))
	}
	b.WriteString("\n" + lines(metrics.Event{Time: 9, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: 2500}}))
	return b.String()
}

// Reading a file in pieces while it grows gives the same as reading it at once.
func TestGrowthEqualsOneShot(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	texts := []string{longFile(0, rng), longFile(1, rng)}
	once := openStore(t)
	ingestRun(t, once, aRun(), writeRanks(t, t.TempDir(), texts)...)
	want := dump(t, once)
	// 2500 steps less the gap of 100.
	if got := value(t, once, "SELECT steps FROM result"); got != "2400" {
		t.Fatalf("%s complete steps, want 2400", got)
	}
	for round := range 6 {
		s := openStore(t)
		dir := t.TempDir()
		files := writeRanks(t, dir, []string{"", ""})
		at := []int{0, 0}
		for at[0] < len(texts[0]) || at[1] < len(texts[1]) {
			for rank, text := range texts {
				n := min(rng.IntN(len(text)/(2+3*round)), len(text)-at[rank])
				f, err := os.OpenFile(files[rank].Path, os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteString(text[at[rank] : at[rank]+n]); err != nil {
					t.Fatal(err)
				}
				f.Close()
				at[rank] += n
			}
			ingestRun(t, s, aRun(), files...)
		}
		if got := dump(t, s); got != want {
			t.Fatalf("round %d: %s", round, firstDifference(want, got))
		}
	}
}

// A short run is cut at every byte.
func TestEveryCut(t *testing.T) {
	texts := twoRanks()
	once := openStore(t)
	ingestRun(t, once, aRun(), writeRanks(t, t.TempDir(), texts[:])...)
	want := dump(t, once)
	dir := t.TempDir()
	s := openStore(t)
	files := writeRanks(t, dir, []string{"", texts[1]})
	for i := range texts[0] {
		f, err := os.OpenFile(files[0].Path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(texts[0][i : i+1]); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if r := ingestRun(t, s, aRun(), files...); r.BadLines != nil {
			t.Fatalf("at byte %d: %v", i, r.BadLines)
		}
	}
	if got := dump(t, s); got != want {
		t.Error(firstDifference(want, got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("want %.300s\n got %.300s", w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

func TestReplacedFile(t *testing.T) {
	texts := twoRanks()
	tests := map[string]func(t *testing.T, path string){
		"shrank": func(t *testing.T, path string) {
			if err := os.Truncate(path, 10); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, texts[1])
		},
		"another file": func(t *testing.T, path string) {
			writeFile(t, path+".new", texts[1])
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
		"written anew": func(t *testing.T, path string) { writeFile(t, path, texts[1]) },
	}
	for name, replace := range tests {
		t.Run(name, func(t *testing.T) {
			once := openStore(t)
			ingestRun(t, once, aRun(), writeRanks(t, t.TempDir(), texts[:])...)

			other := strings.ReplaceAll(texts[1], `"pid":101`, `"pid":555`)
			switch name {
			case "shrank":
				other += lines(metrics.Event{Time: 50, Error: &metrics.Error{Where: "train", Message: strings.Repeat("long ", 99)}})
			case "written anew":
				other = other[:len(other)/2]
			}
			s := openStore(t)
			files := writeRanks(t, t.TempDir(), []string{texts[0], other})
			ingestRun(t, s, aRun(), files...)
			replace(t, files[1].Path)
			r := ingestRun(t, s, aRun(), files...)
			if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "read again from the start") {
				t.Errorf("warnings %q", r.Warnings)
			}
			for _, view := range []string{"runs", "rank_step", "steps", "evaluations", "bad_lines"} {
				query := "SELECT * FROM " + view
				if diff := cmp.Diff(table(t, once, query), table(t, s, query)); diff != "" {
					t.Errorf("%s: %s", view, diff)
				}
			}
			if got := value(t, s, "SELECT count(*) FROM error"); got != "0" {
				t.Error("rows of the former file are left")
			}
		})
	}
}
