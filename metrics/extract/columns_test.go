package extract

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// Spreadsheets write UTF-16 as "Unicode text".
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

// A mapping of one figure leaves the other columns with our names in place, and
// what makes rows the times of one run to the user.
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
