package launcher

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// Any plan.json is read as a plan, or gives an error that names the file. A plan stays the same when it is
// written and read again, and status can count its runs.
func FuzzPlan(f *testing.F) {
	plan := launchtest.SmallPlan(f, "[1, 2]")
	text, err := json.Marshal(plan)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(strings.ReplaceAll(string(text), ":1", ":-9223372036854775808")))
	f.Add([]byte(strings.ReplaceAll(string(text), ":2", ":1e300")))
	f.Add([]byte(strings.ReplaceAll(string(text), "\"s\"", "\"../s\"")))
	f.Add(text[:len(text)/2])
	f.Add([]byte(strings.Repeat("[", 20000)))
	f.Add([]byte("null"))
	f.Add([]byte(`{"points": [null, {}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		folder := rundir.Study(filepath.Join(t.TempDir(), "s"))
		if err := os.MkdirAll(string(folder), 0o700); err != nil {
			t.Fatal(err)
		}
		write := func(text []byte) {
			if err := os.WriteFile(folder.Plan(), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(content)
		plan, err := ReadPlan(folder)
		if err != nil {
			if !strings.Contains(err.Error(), "plan.json") || len(err.Error()) > 2000 {
				t.Errorf("%.3000v", err)
			}
			return
		}
		if plan.Study != "s" {
			t.Errorf("a plan of study %q", plan.Study)
		}
		one, err := json.Marshal(plan)
		if err != nil {
			t.Fatal(err)
		}
		write(one)
		again, err := ReadPlan(folder)
		if err != nil {
			t.Fatalf("written again it cannot be read: %v", err)
		}
		if two, err := json.Marshal(again); err != nil || string(two) != string(one) {
			t.Errorf("%v\n%.500s\n%.500s", err, one, two)
		}
		for _, p := range plan.Points {
			if p := p.Point; p.Check() != nil || p.ID == "" || strings.ContainsAny(p.ID, "/\x00") || p.Repeat < 1 || p.Workers < 1 || p.Workers > metrics.MaxRanks || p.Nodes < 0 {
				t.Errorf("point %q of study %q, repeat %d, %d workers on %d nodes: %v", p.ID, p.Study, p.Repeat, p.Workers, p.Nodes, p.Check())
			}
		}
	})
}
