package summary

import (
	"bufio"
	"compress/gzip"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// MLPerf Training 4.0, GPT-3 on 64 nodes of 8 H100: the power of each node every two
// seconds for 57 minutes, whose total was published as 415.22 kWh
// (mlcommons/training_results_v4.0, smc-ac-power, 64xSMC-H100-SXM-80GB, gpt3,
// result_5848-240517221859825376616_2). Nodes that were read at the same instants are
// added up in the file, since an area is linear. Three lines each: how many nodes and
// the first instant (ms), the times between readings (ms), their watts.
func TestPublishedTotal(t *testing.T) {
	const published = 415.22 // kWh
	f, err := os.Open("testdata/mlperf-v4.0-gpt3-64-nodes.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	numbers := func() []float64 {
		if !lines.Scan() {
			t.Fatal("the file ends early")
		}
		var list []float64
		for word := range strings.FieldsSeq(lines.Text()) {
			v, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		return list
	}
	nodes, joules := 0, 0.0
	for lines.Scan() {
		head := strings.Fields(lines.Text()) // "3 nodes from 1715…"
		count, err1 := strconv.Atoi(head[0])
		at, err2 := strconv.ParseFloat(head[len(head)-1], 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("%q", lines.Text())
		}
		gaps, watts := numbers(), numbers()
		s := Series{Name: metrics.TelemetryPower, Of: "node", Unit: "W", Samples: []NodeSample{{at / 1000, watts[0]}}}
		for i, gap := range gaps {
			at += gap
			s.Samples = append(s.Samples, NodeSample{at / 1000, watts[i+1]})
		}
		n := SampledNode{Series: []Series{s}}
		w, ok := n.Span()
		if !ok {
			t.Fatal("no span")
		}
		e, err := n.Energy(w)
		if err != nil {
			t.Fatal(err)
		}
		nodes += count
		joules += e.Joules
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	kWh := joules / 3.6e6
	if off := kWh/published - 1; nodes != 64 || math.Abs(off) > 1e-4 {
		t.Errorf("%.3f kWh of %d nodes, %.4f %% off the published total", kWh, nodes, 100*off)
	} else {
		t.Logf("%.3f kWh, %.4f %% off the published total", kWh, 100*off)
	}
}
