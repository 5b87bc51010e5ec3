package extract

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// Packing and unpacking preserves findings and sorts them by time.
func TestFindingsRoundTrip(t *testing.T) {
	one := []Value{{2.5, 7}}
	figure := func(g metrics.Figure) metrics.Event { g.File, g.Line = "log", 7; return metrics.Event{Figure: &g} }
	loss, spread := 0.5, 0.25
	want := []Finding{
		{Event: metrics.Event{Train: &metrics.Train{GlobalBatch: 8}}, Scale: 1},
		{Event: metrics.Event{Evaluation: &metrics.Evaluation{Epoch: 3, Step: 1 << 40, Accuracy: 0.5, Samples: 99}}, Line: 7, Scale: 0.01, Values: one},
		{Event: metrics.Event{Evaluation: &metrics.Evaluation{Epoch: 3, Accuracy: 0.5, Loss: &loss}}, Line: 7, Scale: 1, Values: one},
		{Event: metrics.Event{Evaluation: &metrics.Evaluation{Epoch: 3, Accuracy: 0.5, Seconds: 2}}, Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 2.5, Unit: "s", Better: "lower", Note: "n"}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, At: map[string]any{"epoch": 0.0}}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, At: map[string]any{"b": 2.0, "a": 1.0, "op": "x"}}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, At: map[string]any{"op": ""}}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, At: map[string]any{"a": 1.0, "b": 2.0, "c": 3.0}}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, At: map[string]any{"a": "x", "b": "y"}}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, PlusMinus: &spread, PlusMinusIs: "σ"}), Line: 7, Scale: 1, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, Reduce: "mean", Of: 1}), Line: 7, Scale: 2, Values: one},
		{Event: figure(metrics.Figure{Name: "a", Value: 3, Reduce: "mean", Of: 2}), Line: 7, Scale: 2, Values: []Value{{1, 6}, {2, 7}}},
	}
	want = slices.Concat(slices.Repeat(want[:1], few), want)
	for range block / 16 { // across a block's end, with more than maxKinds kinds
		for i := range maxKinds + 2 {
			want = append(want, Finding{Event: figure(metrics.Figure{Name: string(rune('A' + i)), Value: float64(i)}), Line: 7, Scale: 1, Values: one})
		}
	}
	for _, sorted := range []bool{true, false} {
		l := findings{file: "log"}
		list := slices.Clone(want)
		if !sorted { // every second one is later; otherwise the order is kept
			for i := range list {
				list[i].Event.Time = float64(i % 2)
			}
		}
		for _, f := range list {
			l.add(f)
		}
		l.arrange()
		slices.SortStableFunc(list, func(a, b Finding) int { return int(a.Event.Time - b.Event.Time) })
		if d := cmp.Diff(list, slices.Collect(l.all())); d != "" || l.len() != len(want) {
			t.Errorf("sorted %v: %d (-want +got):\n%.2000s", sorted, l.len(), d)
		}
	}
}

// A stored finding takes less than a tenth of the memory of a Finding.
func TestFindingsUseLittleMemory(t *testing.T) {
	for _, e := range everyFormat(t) {
		t.Run(e.Name, func(t *testing.T) {
			log := longLog(t, e, 30000)
			live := func() int {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int(m.HeapAlloc)
			}
			before := live()
			r, err := e.Extract(bytes.NewReader(log), long[e.Name].options)
			if err != nil {
				t.Fatal(err)
			}
			// 48 each, plus spare room in the last block and a few lists
			held, most := live()-before, 56*r.Found()+1<<20
			for f := range r.Findings() {
				if n := len(f.Values); n > 1 { // 16 each, plus spare capacity of append
					most += 20 * n
				}
			}
			if held > most {
				t.Errorf("%d findings take %d bytes, want %d at most", r.Found(), held, most)
			}
			runtime.KeepAlive(log)
			runtime.KeepAlive(r)
		})
	}
}
