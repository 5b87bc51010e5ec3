package metrics

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStep measures the cost of recording a step, including its share of writing to the file.
// It should stay below 5 µs.
func BenchmarkStep(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "events.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := mustWriter(b, f)
	d, c, m := 100*time.Microsecond, 12345*time.Microsecond, 678*time.Microsecond
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Step(Step{Duration: 13 * time.Millisecond, Samples: 128, DataWait: &d, Compute: &c, Communication: &m}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(5000, "target-ns/op")
}
