package store

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// The view has a sampler's values unchanged, one row per sample and quantity, and the run has
// the measures computed from them. A damaged batch is a bad line.
func TestTelemetry(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "history.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	files := map[string]string{
		"rank": `{"t":0,"start":{"format":1,"unix":1000,"writer":"rank","rank":0,"world_size":1,"local_rank":0,"restart":0,"host":"n1","pid":1}}
{"t":0,"train":{}}
{"t":2,"steps":{"first":0,"tick":1,"duration":[1,1],"samples":[10,10]}}
{"t":2,"stop":{"status":"done","steps":2,"epochs":0}}
`,
		"telemetry": `{"t":0,"start":{"format":1,"unix":1000,"writer":"telemetry","rank":0,"world_size":1,"local_rank":0,"restart":0,"host":"n1","pid":1}}
{"t":2,"telemetry":{"tick":0.001,"at":[0,1000,2000],"missing":{"power":"none"},"columns":[{"name":"energy","of":"package-0","source":"RAPL","unit":"J","counter":true,"scale":0.001,"least":5000,"above":[0,null,80000]},{"name":"memory","source":"cgroup","unit":"B","scale":1,"least":700}]}}
{"t":3,"telemetry":{"tick":0.001,"at":[3000,2500],"columns":[]}}
{"t":3,"telemetry":{"tick":0.001,"at":[3000],"columns":[{"name":"memory","source":"cgroup","unit":"B","scale":1,"least":-1}]}}
`}
	var list []metrics.EventFile
	for writer, text := range files {
		path := filepath.Join(dir, writer+"-00000-0.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		list = append(list, metrics.EventFile{Path: path, Writer: writer})
	}
	run := metrics.Run{ID: "s/p-r1-a1", Study: "s", Point: "p", Repeat: 1, Attempt: 1, Kind: "train", Framework: "native", Workers: 1, Nodes: 1,
		Status: "done", CreatedUnix: metrics.Unix(time.Unix(1000, 0))}
	report, err := s.Ingest(context.Background(), run, list)
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for _, b := range report.BadLines {
		bad = append(bad, b.Err.Error())
	}
	if text := strings.Join(bad, "\n"); len(bad) != 2 || !strings.Contains(text, "ascending") || !strings.Contains(text, "least of memory") {
		t.Errorf("bad lines: %q", bad)
	}
	for query, want := range map[string]string{
		"SELECT group_concat(unix || ' ' || coalesce(value, 'none'), ', ') FROM (SELECT * FROM telemetries WHERE name = 'energy' ORDER BY unix)": "1000.0 5.0, 1001.0 none, 1002.0 85.0",
		"SELECT count(*) || ' ' || min(value) || ' ' || min(host) FROM telemetries WHERE name = 'memory'":                                        "3 700 n1",
		"SELECT source || of || unit || counter FROM telemetries WHERE name = 'energy' LIMIT 1":                                                  "RAPLpackage-0J1",
	} {
		if got := value(t, s, query); got != want {
			t.Errorf("%s\nis %q, want %q", query, got, want)
		}
	}
	d, err := s.Show(context.Background(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	// 80 J in the 2 s of the training clock, for 20 samples.
	for name, want := range map[string]float64{measure.Watts: 40, measure.JoulesPerSample: 4, measure.PeakMemory: 700} {
		if got := d.Result.Known(name); got == nil || math.Abs(*got-want) > 1e-9 {
			t.Errorf("%s is %v, want %g", name, got, want)
		}
	}
	if len(d.Telemetry) != 1 || d.TrainingClock.From != 1000 || d.TrainingClock.To != 1002 {
		t.Errorf("%+v, %+v", d.TrainingClock, d.Telemetry)
	}
}
