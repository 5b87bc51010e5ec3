package extract

import (
	"fmt"
	"strings"
	"testing"
)

// A rate of one device or node is multiplied by their number, which a column or the user
// gives. A rate of steps is multiplied by the batch and the workers.
func TestRatesOfOne(t *testing.T) {
	node, device := []string{"throughput=r:samples/s/node"}, []string{"throughput=r:samples/s/worker"}
	for _, c := range []struct {
		name, csv string
		o         Options
		maps      []string
		want      string // the run
		note      string // of the figure
		why       string
	}{
		{"of a node, a column named nodes", "workers,nodes,r\n8,2,100\n", Options{}, node, "throughput 200", "from column r, one node's rate times their number", ""},
		{"of a node, a mapped column", "workers,n,r\n8,2,100\n", Options{}, append(node, "nodes=n"), "throughput 200", "", ""},
		{"of a node, workers are nodes", "hosts,r\n3,100\n", Options{}, append(node, "workers=hosts"), "throughput 300", "", ""},
		{"of a node, an unmapped column", "workers,hosts,r\n8,3,100\n", Options{}, node, "throughput 300", "", ""},
		{"of a node, nodes given", "workers,r\n8,100\n", Options{Nodes: 4}, node, "throughput 400", "", ""},
		{"of a node, no number", "workers,r\n8,100\n", Options{}, node, "", "", "t.csv: column \"r\" is the rate of one node: give the number of nodes with --map nodes=COLUMN or --set nodes=N; if it is the rate of all nodes, use --map throughput=r:samples/s"},
		{"of a node, half a node", "workers,nodes,r\n8,1.5,100\n", Options{}, node, "", "", "t.csv:2: no count in column nodes, and the rate is one node's"},
		{"of a node, no node", "workers,nodes,r\n8,0,100\n", Options{}, node, "", "", "no count in column nodes"},
		{"of a node, an empty cell", "workers,nodes,r\n8,,100\n", Options{}, node, "", "", "no count in column nodes"},
		{"of a node, one", "workers,nodes,r\n8,1,100\n", Options{}, node, "throughput 100", "", ""},
		{"of a device", "workers,r\n8,100\n", Options{}, device, "throughput 800", "from column r, one device's rate times their number", ""},
		{"of a replica", "replicas,r\n3,100\n", Options{}, device, "throughput 300", "", ""},
		{"of a device, workers given", "x,r\n8,100\n", Options{Workers: 2}, device, "throughput 200", "", ""},
		{"of a device, no number", "x,r\n8,100\n", Options{}, device, "", "", "t.csv: column \"r\" is the rate of one device: give the number of devices with --map workers=COLUMN or --set workers=N; if it is the rate of all devices, use --map throughput=r:samples/s"},
		{"of a device, nodes and devices of each", "nodes,gpus/node,r\n2,4,100\n", Options{}, append(device, "workers=nodes"), "throughput 800", "", ""},
		{"of a device, only nodes", "nodes,r\n2,100\n", Options{}, append(device, "workers=nodes"), "", "",
			"t.csv: column \"r\" is the rate of one device, but column \"nodes\" counts nodes, judging by its name: map the number of devices with --map workers=COLUMN; or, if it is the rate of one node, use --map throughput=r:samples/s/node"},
		{"of a device, both rates", "workers,tokens_per_second,tokens_per_second_per_gpu\n2,20,10\n", Options{}, nil, "tokens_per_second 20, tokens_per_second_per_gpu 10", "", ""},
		{"of all", "workers,r\n8,100\n", Options{}, []string{"throughput=r:samples/s"}, "throughput 100", "from column r", ""},
		{"steps, 5 a second of 2 batches of 32", "workers,r\n2,5\n", Options{WorkerBatch: 32}, []string{"throughput=r:steps/s"}, "throughput 320", "", ""},
		{"0.2 s a step", "workers,r\n2,0.2\n", Options{WorkerBatch: 32}, []string{"throughput=r:s/step"}, "throughput 320", "", ""},
		{"200 ms a step", "workers,r\n2,200\n", Options{WorkerBatch: 32}, []string{"throughput=r:ms/step"}, "throughput 320", "", ""},
		{"200 ms in the cell", "workers,r\n2,200 ms\n", Options{WorkerBatch: 32}, []string{"throughput=r:ms/step"}, "throughput 320", "", ""},
		{"0.2 s in the cell of ms", "workers,r\n2,0.2 s\n", Options{WorkerBatch: 32}, []string{"throughput=r:ms/step"}, "", "", "in another unit than the column"},
		{"steps, end to end", "workers,r\n2,5\n", Options{WorkerBatch: 32}, []string{"end_to_end=r:steps/s"}, "end_to_end 320", "", ""},
		{"steps without a batch", "workers,r\n2,5\n", Options{}, []string{"throughput=r:steps/s"}, "", "", "--worker-batch N; or write --map step_seconds=r"},
		{"steps without workers", "x,r\n2,5\n", Options{WorkerBatch: 32}, []string{"throughput=r:steps/s"}, "", "", "give the number of devices"},
		{"an empty cell", "workers,r,train_seconds\n2,,7\n", Options{}, device, "train_seconds 7", "", ""},
	} {
		runs, _, err := readRuns(c.csv, c.o, c.maps...)
		want := []string{c.want}
		checkRuns(t, c.name, runs, want, err, c.why)
		if c.note != "" {
			if got := firstNote(t, c.csv, c.o, c.maps...); got != c.note {
				t.Errorf("%s: note %q, want %q", c.name, got, c.note)
			}
		}
	}
}

// A cell may state the unit of its number. 204.5 ms are 0.2045 s; 23.97 min are 1438.2 s; 1 h 2 min
// 3 s are 3723 s; 46.7k samples/s are 46,700.
func TestUnitsInCells(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		maps      []string
		want      string
		why       string
	}{
		{"ms", "workers,r\n8,204.5 ms\n", []string{"step_seconds=r"}, "step_seconds 0.2045", ""},
		{"minutes", "workers,r\n8,23.97 mins\n", []string{"train_seconds=r"}, "train_seconds 1438.2", ""},
		{"a length of time", "workers,r\n8,1h 2m 3s\n", []string{"train_seconds=r"}, "train_seconds 3723", ""},
		{"a prefix", "workers,r\n8,46.7k\n", []string{"throughput=r"}, "throughput 46700", ""},
		{"a prefix of a large one", "workers,r\n1,700\n2,1.5k\n", []string{"throughput=r"}, "throughput 700; throughput 1500", ""},
		{"a rate", "workers,r\n8,120 img/min\n", []string{"throughput=r"}, "throughput 2", ""},
		{"as the column says", "workers,r (ms)\n8,204.5 ms\n", []string{"step_seconds=r (ms)"}, "step_seconds 0.2045", ""},
		{"not as the column says", "workers,r (ms)\n8,204.5 s\n", []string{"step_seconds=r (ms)"}, "", "in another unit than the column"},
		{"not as the user says", "workers,r\n8,204.5 s\n", []string{"step_seconds=r:ms"}, "", "in another unit than the column"},
		{"another quantity", "workers,r\n8,204.5 ms\n", []string{"throughput=r"}, "", `throughput cannot be in "ms"`},
		{"of a device", "workers,r\n8,120 img/s/GPU\n", []string{"throughput=r"}, "", "write the number alone, and --map throughput=r:img/s/GPU"},
		{"only one", "workers,r\n8,204.5 ms\n16,1.2\n", []string{"step_seconds=r"}, "", "t.csv:3: column r: some cells state a unit and others do not"},
		{"only the second", "workers,r\n8,1.2\n16,204.5 ms\n", []string{"step_seconds=r"}, "", "t.csv:3: column r: some cells state a unit and others do not"},
		{"minutes or metres", "workers,r\n8,62m\n", []string{"train_seconds=r"}, "", "m may be minutes or metres; for minutes write 62min"},
		{"billions of tokens a day", "workers,tokens/day (B)\n8,0.864\n", []string{"tokens_per_second=tokens/day (B)"}, "tokens_per_second 10000", ""},
		{"an unknown unit", "workers,r\n8,204.5 wibbles\n", []string{"step_seconds=r"}, "", "is not a finite number"},
	} {
		runs, _, err := readRuns(c.csv, Options{}, c.maps...)
		checkRuns(t, c.name, runs, strings.Split(c.want, "; "), err, c.why)
	}
	if runs, notes, err := readRuns("workers,r\n8,23.97 mins\n", Options{}, "train_seconds=r"); err != nil || len(runs) != 1 || strings.Contains(fmt.Sprint(notes), "does not state its unit") {
		t.Errorf("%v, %v: %v", runs, err, notes)
	}
}

// firstNote returns the note of the first figure of a table.
func firstNote(t *testing.T, csv string, o Options, maps ...string) string {
	t.Helper()
	columns := map[string]Column{}
	for _, text := range maps {
		ours, c, err := ParseColumn(text)
		if err != nil {
			t.Fatal(err)
		}
		columns[ours] = c
	}
	for r, err := range Runs(strings.NewReader(csv), o, columns) {
		if err != nil {
			t.Fatal(err)
		}
		for f := range r.Result.Findings() {
			if g := f.Event.Figure; g != nil {
				return g.Note
			}
		}
	}
	return ""
}

func TestCountsNodes(t *testing.T) {
	for name, want := range map[string]bool{
		"nodes": true, "# hosts": true, "Number of nodes": true, "": false, "workers": false, "gpus": false,
		"gpus per node": false, "gpus/node": false, "node hours": false, "nodes (gpus)": false,
	} {
		if got := countsNodes(name); got != want {
			t.Errorf("%q counts nodes: %v", name, got)
		}
	}
}

func TestParseDecimal(t *testing.T) {
	for text, want := range map[string]Decimal{"": "", "point": DecimalPoint, ".": DecimalPoint, "comma": DecimalComma, ",": DecimalComma} {
		if got, err := ParseDecimal(text); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ParseDecimal("dot"); err == nil || !strings.Contains(err.Error(), `"dot"; valid: comma`) {
		t.Error(err)
	}
}

// Which cell is evidence for a decimal comma or point, and which has two meanings.
func TestEvidenceOfDecimals(t *testing.T) {
	for cell, want := range map[string]string{
		"1,5": "comma", "0,125": "comma", "1.234,5": "comma", "1 234,5": "comma", "12,3456": "comma", "1.234.567": "comma", "98,5 %": "comma",
		"1.5": "point", "0.125": "point", "1,234.5": "point", "1'234.5": "point", "1234.567": "point", "1.2e5": "point", ".5": "point",
		"1,234": "", "1234": "", "x1,5": "", "": "", "1.598": "either", "12.345": "either", "0.598": "point", "1598": "",
	} {
		var d locale
		d.hint(cell)
		d.see(cell, 7, "rate")
		got := ""
		switch {
		case d.comma == cell && cell != "":
			got = "comma"
		case d.point == cell && cell != "":
			got = "point"
		case d.ambiguous == cell && cell != "" && d.line == 7 && d.column == "rate":
			got = "either"
		}
		if got != want {
			t.Errorf("%q: %+v, want %q", cell, d, want)
		}
	}
	// The first cell of each kind is the one that an error names.
	var d locale
	for _, cell := range []string{"1,5", "2,5", "1.5", "2.5", "3,5"} {
		d.hint(cell)
	}
	d.see("1.598", 3, "a")
	d.see("2.598", 4, "b")
	if got := fmt.Sprint(d); got != "{1,5 1.5 1.598 3 a}" {
		t.Errorf("evidence: %s", got)
	}
}

// 1.598 is refused where a comma elsewhere, or semicolons between fields, make 1598 likely.
func TestAmbiguousNumbers(t *testing.T) {
	rate := []string{"throughput=r:samples/s"}
	for _, c := range []struct {
		name, csv string
		o         Options
		want      []string
		why       string
	}{
		{"points", "workers,r\n1,1.598\n2,3.1\n", Options{}, []string{"throughput 1.598", "throughput 3.1"}, ""},
		{"a comma elsewhere", "workers;r;x\n1;1.598;0,5\n", Options{}, nil, "t.csv:2: column \"r\": 1.598 is 1598 if \"0,5\" has a decimal comma: write --decimal comma"},
		{"semicolons", "workers;r\n1;1.598\n", Options{}, nil, "t.csv:2: column \"r\": 1.598 may be 1598, since files with semicolons often have decimal commas: write --decimal comma for 1598, or --decimal point for 1.598"},
		{"semicolons and a point", "workers;r;x\n1;1.598;0.5\n", Options{}, []string{"throughput 1.598"}, ""},
		{"as the user says", "workers;r\n1;1.598\n", Options{Decimal: DecimalComma}, []string{"throughput 1598"}, ""},
		{"or so", "workers;r\n1;1.598\n", Options{Decimal: DecimalPoint}, []string{"throughput 1.598"}, ""},
		{"separators", "workers;r\n1;1,598\n", Options{}, nil, `has separators: write --decimal point for 1598, or --decimal comma for 1.598`},
		{"apostrophes", "workers;r\n1;1'598\n", Options{Decimal: DecimalPoint}, []string{"throughput 1598"}, ""},
		{"both", "workers;r\n1;-1.598,25e1\n", Options{Decimal: DecimalComma}, nil, "throughput is -15982.5; want 0 or more"},
		{"no number", "workers;r\n1;1,59,8\n", Options{Decimal: DecimalComma}, nil, "is not a finite number"},
	} {
		runs, _, err := readRuns(c.csv, c.o, rate...)
		checkRuns(t, c.name, runs, c.want, err, c.why)
	}
}
