package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

func TestLooks(t *testing.T) {
	s := openStore(t)
	two, p, x := 2, 0.97, 1.5
	looks := []metrics.Look{
		{Series: "a", Number: 1, Unix: 10, Runs: 4, Most: 12, Confidence: 0.96, Text: "No answer yet."},
		{Series: "a", Number: 2, Unix: 20, Runs: 8, Most: 12, Confidence: 0.96, Workers: &two, Probability: &p, Decided: true, Rival: 1, Ratio: &x, Low: &x, High: &x, Price: &p, Text: "Use 2 workers."},
	}
	for range 2 { // the second replaces the first
		if err := s.SetLooks(t.Context(), "s", looks); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetLooks(t.Context(), "other", looks[:1]); err != nil {
		t.Fatal(err)
	}
	if err := s.SetLooks(t.Context(), "longer", []metrics.Look{looks[0], {Series: "a", Number: 2, Unix: 30, Runs: 8, Most: 20, Confidence: 0.97, Text: "-"}}); err != nil {
		t.Fatal(err)
	}
	looked, err := s.Looked(t.Context())
	if diff := cmp.Diff(map[string]int{"s": 12, "other": 12, "longer": 20}, looked); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err := s.Looks(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(looks, got); diff != "" {
		t.Error(diff)
	}
	if got := value(t, s, "SELECT group_concat(coalesce(rival, 'none') || ' ' || decided, ', ') FROM (SELECT * FROM looks WHERE study = 's' ORDER BY look)"); got != "none 0, 1 1" {
		t.Error(got)
	}
}
