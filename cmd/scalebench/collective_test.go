package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/store"
)

// benchmarked stores a run of a benchmark of collectives with known results:
// "benchmarked STUDY BACKEND WORKERS LATENCY BANDWIDTH" stores an in-place all-reduce on one
// node, in which s bytes take LATENCY + s/BANDWIDTH seconds, for 1000 bytes, 1 MB and 10 MB.
// The results of a real run would be unpredictable, because other work delays small
// messages. The database is $SCALEBENCH_DB.
func benchmarked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: benchmarked study backend workers latency bandwidth")
	}
	study, backend := args[0], args[1]
	workers, err := strconv.Atoi(args[2])
	ts.Check(err)
	latency, err := strconv.ParseFloat(args[3], 64)
	ts.Check(err)
	bandwidth, err := strconv.ParseFloat(args[4], 64)
	ts.Check(err)
	var lines strings.Builder
	add := func(e metrics.Event) {
		line, err := json.Marshal(e)
		ts.Check(err)
		lines.Write(append(line, '\n'))
	}
	add(metrics.Event{Start: &metrics.Start{Format: metrics.FormatVersion, Unix: 1795000000, Writer: "rank", Framework: "native",
		WorldSize: workers, Ranks: workers, Host: "node1", PID: 100}})
	for _, bytes := range []float64{1e3, 1e6, 1e7} {
		seconds := latency + bytes/bandwidth
		busBW := 2 * float64(workers-1) / float64(workers) * bytes / seconds
		for _, f := range (busbw.Measurement{Op: "all_reduce", Bytes: bytes, InPlace: true, Seconds: &seconds, BusBW: &busBW}).Figures() {
			add(metrics.Event{Time: 1, Figure: &f})
		}
	}
	add(metrics.Event{Time: 2, Stop: &metrics.Stop{Status: metrics.StopDone}})
	path := filepath.Join(ts.MkAbs("events"), study+"-0.jsonl")
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, []byte(lines.String()), 0o644))

	db, err := store.Open(ts.MkAbs(ts.Getenv("SCALEBENCH_DB")), store.Options{})
	ts.Check(err)
	defer db.Close()
	_, err = db.Ingest(context.Background(), metrics.Run{
		ID: study + "/native-r1-a1", Study: study, Point: "native", Repeat: 1, Attempt: 1, Kind: "collective", Framework: "native", Workers: workers, Nodes: 1,
		Parameters: map[string]any{"framework": "native", "workers": int64(workers), "workload.kind": "collective", "workload.backend": backend},
		Status:     metrics.Done, Dir: ts.MkAbs(filepath.Join("runs", study)), CreatedUnix: 1795000000,
	}, []metrics.EventFile{{Path: path, Writer: "rank"}})
	ts.Check(err)
	ts.Check(db.Arrange(context.Background()))
}
