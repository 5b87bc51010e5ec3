package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/export"
	"github.com/scalebench/scalebench/metrics/store"
)

// Text that is markup, or cannot be written, in some format.
const (
	hostileGood   = "good <b>&\"'{}=,|\nsecond\\ ü"
	hostileBad    = "fail ]]>"
	hostileDetail = "broken <input> & 'more'\n# EOF ]]> \x1b[31m\x00\xff"
)

// exportedStudy makes a database with the study "hostile" and returns its path. On each of 1 to 16 workers, 2 runs are
// good. On 1 and 2 workers, 2 more fail after one of 2 epochs. An epoch has 30 steps and an evaluation. A step takes
// 10 ms, or 12 ms in second repeats, and 1 ms more for each doubling of the workers; on each rank it waits 1 ms for
// data, computes for 3 ms and communicates for 0.5 ms.
func exportedStudy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "h.db")
	db, err := store.Open(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, label := range []string{hostileGood, hostileBad} {
		for doublings := range map[string]int{hostileGood: 5, hostileBad: 2}[label] {
			workers := 1 << doublings
			for repeat := 1; repeat <= 2; repeat++ {
				point := fmt.Sprintf("command-w%d-%.4s", workers, label)
				created := 1.7e9 + float64(1000*workers+10*repeat)
				run := metrics.Run{ID: fmt.Sprintf("hostile/%s-r%d-a1", point, repeat), Study: "hostile", Point: point, Repeat: repeat, Attempt: 1, Kind: "train",
					Framework: "command", Workers: workers, Nodes: 1, Status: metrics.Done, Dir: filepath.Join(dir, "runs"), CreatedUnix: created,
					Job: &metrics.Job{ID: fmt.Sprint(workers, repeat), StartUnix: created + 1, EndUnix: created + 5},
					Parameters: map[string]any{"workers": int64(workers), "parameters.label": label, "workload.batch": int64(8), "workload.scaling": "weak",
						"workload.targets": []any{0.75, 0.9}}}
				epochs := 2
				if label == hostileBad {
					run.Status, run.Detail, epochs = metrics.Failed, hostileDetail, 1
				}
				var files []metrics.EventFile
				for rank := range workers {
					file := filepath.Join(dir, fmt.Sprintf("%s-%d-%d.jsonl", point, repeat, rank))
					if err := os.WriteFile(file, exportedEvents(rank, workers, epochs, created, 0.008+0.002*float64(repeat)+0.001*float64(doublings)), 0o600); err != nil {
						t.Fatal(err)
					}
					files = append(files, metrics.EventFile{Path: file, Writer: "rank", Rank: rank})
				}
				if _, err := db.Ingest(t.Context(), run, files); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := db.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path
}

func exportedEvents(rank, workers, epochs int, began, step float64) []byte {
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	add := func(event metrics.Event) {
		if err := e.Encode(event); err != nil {
			panic(err)
		}
	}
	add(metrics.Event{Start: &metrics.Start{Format: metrics.FormatVersion, Unix: began, Writer: "rank", Framework: "command", Rank: rank, WorldSize: workers, LocalRank: rank, Host: "n<1>", PID: 100 + rank}})
	add(metrics.Event{Time: 1, Train: &metrics.Train{GlobalBatch: 8 * workers}})
	const steps = 30
	for epoch := 1; epoch <= epochs; epoch++ {
		columns := metrics.Steps{First: (epoch - 1) * steps, Tick: 1e-6}
		for range steps {
			columns.Duration = append(columns.Duration, int64(step*1e6+0.5))
			columns.Samples = append(columns.Samples, 8)
			columns.DataWait, columns.Compute, columns.Communication = append(columns.DataWait, 1000), append(columns.Compute, 3000), append(columns.Communication, 500)
		}
		at := 1 + float64(epoch)*steps*step
		add(metrics.Event{Time: at, Steps: &columns})
		add(metrics.Event{Time: at, Epoch: &metrics.Epoch{Epoch: epoch, Step: epoch * steps, Samples: steps * 8, Seconds: steps * step}})
		if rank == 0 {
			add(metrics.Event{Time: at, Evaluation: &metrics.Evaluation{Epoch: epoch, Step: epoch * steps, Accuracy: 0.25 + 0.25*float64(epoch), Samples: 100}})
		}
	}
	if epochs == 2 {
		if rank == 0 {
			add(metrics.Event{Time: 1 + 2*steps*step, Figure: &metrics.Figure{Name: "own_figure", Value: step * 1e7 / 3, Unit: "tokens/s/<GPU>", Better: "higher"}})
		}
		add(metrics.Event{Time: 1 + 2*steps*step, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: 2 * steps, Epochs: 2}})
	}
	return lines.Bytes()
}

// inProcess runs a command on a database and returns its output.
func inProcess(t *testing.T, db string, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	if got := invoke(append([]string{"scalebench", "--db", db}, args...), strings.NewReader(""), &out, &problems); got != code {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, out.String(), problems.String())
	}
	return out.String(), problems.String()
}

// Every format says how many runs it has and leaves an existing output alone. A file is replaced on request, a
// folder never.
func TestExportReplacesNothing(t *testing.T) {
	db := exportedStudy(t)
	for _, format := range export.Formats {
		t.Run(format.Name, func(t *testing.T) {
			dir := t.TempDir()
			output, subject, count := filepath.Join(dir, "output"), "hostile", "14 runs"
			if format.OneRun {
				subject, count = "hostile/command-w2-good-r1-a1", "1 run"
			}
			args := []string{"export", subject, "--to", format.Name, "-o", output}
			if _, said := inProcess(t, db, exitDone, args...); !strings.Contains(said, output+": "+count) {
				t.Errorf("it says %q", said)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("left: %v, %v", left, err)
			}
			_, said := inProcess(t, db, exitUsage, args...)
			if !strings.Contains(said, output+" exists and was left unchanged") {
				t.Errorf("it says %q", said)
			}
			code := exitDone
			if format.Folder() {
				code = exitUsage
			}
			inProcess(t, db, code, append(args, "--replace")...)
		})
	}
}
