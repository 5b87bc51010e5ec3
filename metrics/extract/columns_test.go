package extract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// Spreadsheets' "Unicode text" files are UTF-16.
func TestTableInUTF16(t *testing.T) {
	for name, order := range map[string][2]int{"little-endian": {0, 8}, "big-endian": {8, 0}} {
		var file strings.Builder
		for _, unit := range utf16.Encode([]rune("\ufeffworkers,throughput\n1,100\n")) {
			file.WriteByte(byte(unit >> order[0]))
			file.WriteByte(byte(unit >> order[1]))
		}
		for _, err := range Runs(strings.NewReader(file.String()), Options{File: "t.csv"}, nil) {
			if err == nil || !strings.Contains(err.Error(), "t.csv: encoded in UTF-16; save it in UTF-8") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
}

// Mapping one figure must not affect other columns with our names, except the columns that
// would make rows epochs: those then need a mapping too.
func TestMappingOneFigureKeepsTheOthers(t *testing.T) {
	const file = "workers,throughput,train_seconds,accuracy,epoch,started\n2,1430,41.5,0.76,9,1795000000\n"
	var runs []TableRun
	for run, err := range Runs(strings.NewReader(file), Options{File: "t.csv"}, map[string]Column{"elapsed": {Name: "train_seconds"}, "the_epoch": {Name: "epoch", Label: true}}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	if len(runs) != 1 {
		t.Fatalf("%+v", runs)
	}
	figures, evaluated := map[string]float64{}, ""
	for e := range runs[0].Result.Events() {
		if e.Figure != nil {
			figures[e.Figure.Name] = e.Figure.Value
		}
		if e.Evaluation != nil {
			evaluated = fmt.Sprintf("%g after %g s", e.Evaluation.Accuracy, e.Time)
		}
	}
	if figures["throughput"] != 1430 || evaluated != "0.76 after 41.5 s" {
		t.Errorf("%v and an evaluation of %q", figures, evaluated)
	}
}

// A unit in brackets after one of our names is not part of the name. Two columns that
// differ only in this unit are ambiguous, and both are ignored.
func TestUnitAfterOurName(t *testing.T) {
	for file, want := range map[string]string{
		"replicas,threads,requests_per_second,latency_p95 (ms)\n1,4,80,36.5\n":                        "latency_p95 0.0365, requests_per_second 80, samples_per_second 80",
		"replicas,threads,requests_per_second,latency_p95 [s]\n1,4,80,0.25\n":                         "latency_p95 0.25, requests_per_second 80, samples_per_second 80",
		"replicas,threads,requests_per_second,latency_p95 (ms),latency_p95 (s)\n1,4,80,36.5,0.0365\n": "requests_per_second 80, samples_per_second 80",
	} {
		figures := map[string]float64{}
		for run, err := range Runs(strings.NewReader(file), Options{File: "t.csv"}, nil) {
			if err != nil {
				t.Fatalf("%q: %v", file, err)
			}
			for e := range run.Result.Events() {
				if e.Figure != nil {
					figures[e.Figure.Name] = e.Figure.Value
				}
			}
		}
		var got []string
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			got = append(got, fmt.Sprintf("%s %.4g", name, figures[name]))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %v, want %s", file, got, want)
		}
	}
}

// A caller may stop after any run, and no run follows an error.
func TestRunsStop(t *testing.T) {
	const file = "workers,throughput\n1,100\n2,190\n4,350\n"
	for stop := 1; stop <= 3; stop++ {
		seen := 0
		for _, err := range Runs(strings.NewReader(file), Options{File: "t.csv"}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen == stop {
				break
			}
		}
		if seen != stop {
			t.Errorf("%d runs, want %d", seen, stop)
		}
	}
	seen, failed := 0, 0
	for _, err := range Runs(strings.NewReader(strings.Replace(file, "2,190", "2,", 1)), Options{File: "t.csv"}, nil) {
		if err != nil {
			failed++
			continue
		}
		if seen++; failed > 0 {
			t.Error("a run after an error")
		}
	}
	if failed != 1 {
		t.Errorf("%d errors, want 1", failed)
	}
}

// The training time is the last elapsed time, which every row must have.
func TestElapsed(t *testing.T) {
	const file = "workers,epoch,throughput,elapsed\n2,1,100,40\n2,2,110,80\n"
	for text, want := range map[string]string{
		file:                                 "train_seconds 80",
		strings.Replace(file, ",80", ",", 1): "t.csv:3: no number in column elapsed",
	} {
		got := ""
		for run, err := range Runs(strings.NewReader(text), Options{File: "t.csv"}, nil) {
			if err != nil {
				got = err.Error()
				break
			}
			for e := range run.Result.Events() {
				if e.Figure != nil && e.Figure.Name == "train_seconds" {
					got = fmt.Sprint("train_seconds ", e.Figure.Value)
				}
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A table without a mapped figure is refused with the mappings that its names state: rates and step
// times with units, times of whole runs, and numbers of all devices. A latency is not a run's time.
func TestSuggestedMappings(t *testing.T) {
	const general = "--map throughput=COLUMN, --map train_seconds=COLUMN or --map latency_p95=COLUMN"
	for names, want := range map[string]string{
		"GPUs,Step time (ms),Global batch,Loss":                       "--map workers=GPUs --map 'step_seconds=Step time (ms)'",
		"nodes,gpus_per_node,tokens/sec/gpu":                          "--map tokens_per_second_per_gpu=tokens/sec/gpu",
		"Runtime (s),GPUs per node,Total GPUs,images/sec,img/s again": "--map 'train_seconds=Runtime (s)' --map 'workers=Total GPUs' --map throughput=images/sec",
		"Concurrency,Request throughput (req/s),P95 latency (ms)":     "--map 'requests_per_second=Request throughput (req/s)'",
		"date,rank,GPUs,score":                                        general,
	} {
		row := "1" + strings.Repeat(",1", strings.Count(names, ","))
		var refusal string
		for _, err := range Runs(strings.NewReader(names+"\n"+row+"\n"), Options{File: "t.csv"}, nil) {
			refusal = fmt.Sprint(err)
		}
		if full := "map one or more, such as " + want + " ("; !strings.Contains(refusal, full) {
			t.Errorf("%s: %s, want %q", names, refusal, full)
		}
	}
}
