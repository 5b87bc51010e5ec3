package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// BenchmarkReport writes the page of a study of 1,000 runs on 1, 2, 4 and 8
// workers, each with 200 steps a rank and 4 evaluations.
func BenchmarkReport(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "history.db")
	db, err := store.Open(file, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	environment := &metrics.Environment{Hostname: "node1", CPUModel: "Test CPU", CPUs: 4, Versions: map[string]string{"native": "1"}}
	const runs = 1_000
	for i := range runs {
		workers := 1 << (i % 4)
		point := fmt.Sprintf("native-w%d", workers)
		run := metrics.Run{
			ID: fmt.Sprintf("large/%s-r%d-a1", point, i/4+1), Study: "large", Point: point, Repeat: i/4 + 1, Attempt: 1,
			Kind: "train", Framework: "native", Workers: workers, Nodes: 1, Status: metrics.Done, Dir: dir, CreatedUnix: 1795000000 + float64(i),
			Parameters: map[string]any{"framework": "native", "workers": int64(workers), "workload.batch": int64(32),
				"workload.scaling": "weak", "workload.targets": []any{0.5, 0.75}},
		}
		var files []metrics.EventFile
		for rank := range workers {
			path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", rank)) // read at once, so that the next run may have it
			if err := os.WriteFile(path, rankEvents(rank, workers, 1795000000, 32, 0.01*(1+0.1*float64(i%7)), environment), 0o644); err != nil {
				b.Fatal(err)
			}
			files = append(files, metrics.EventFile{Path: path, Writer: "rank", Rank: rank})
		}
		if _, err := db.Ingest(context.Background(), run, files); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"page.html", "page.md"} {
		b.Run(strings.TrimPrefix(filepath.Ext(name), "."), func(b *testing.B) {
			out := filepath.Join(dir, name)
			for b.Loop() {
				var complaint bytes.Buffer
				if err := run(context.Background(), &session{stdin: nil, stdout: &complaint, stderr: &complaint}, []string{appName, "--db", file, "--runs", dir, "report", "large", "-o", out, "-q"}); err != nil {
					b.Fatalf("%v\n%s", err, &complaint)
				}
			}
			info, err := os.Stat(out)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(2e9, "target-ns/op")
		})
	}
}
