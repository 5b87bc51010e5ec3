package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/rundir"
)

// A damaged plan is an error that users understand. It never counts as a plan without runs, which would make
// every result belong to a removed point.
func TestReadDamagedPlan(t *testing.T) {
	const point = `{"point": {"id": "command-w1", "study": "mine", "framework": "command", "workers": 1, "nodes": 1, "workers_per_node": 1, "repeat": 1}}`
	for _, tt := range []struct{ text, want string }{
		{`{"study": "mine", "points": [` + point + `]}`, ""},
		{`{"study": "mine", "points": [` + point, "plan.json cannot be read: unexpected end of JSON input"},
		{`null`, "plan.json cannot be read: it has no points"},
		{`{}`, "plan.json cannot be read: it has no points"},
		{`{"study": "mine", "points": null}`, "plan.json cannot be read: it has no points"},
		{`[]`, "plan.json cannot be read: its content is a list; it must be an object {…}"},
		{`{"study": "yours", "points": [` + point + `]}`, `plan.json is the plan of another study, "yours"`},
		{`{"study": "mine", "points": [{"point": {"workers": 1e400}}]}`, "plan.json cannot be read: points[0]: point.workers is 1e400; it must be an integer"},
		{`{"study": "mine", "points": [{"point": {"framework": 7}}]}`, "plan.json cannot be read: points[0]: point.framework is a number; it must be a string"},
		{`{"study": "mine", "points": [` + strings.Replace(point, `"workers": 1`, `"workers": -3`, 1) + `]}`, "plan.json cannot be read: points[0]: workers = -3, want 1 to 1048576"},
	} {
		folder := rundir.OpenStudy(t.TempDir(), "mine")
		if err := os.Mkdir(folder.Path(), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(folder.Plan(), []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadPlan(folder)
		said := ""
		if err != nil {
			said = strings.TrimPrefix(err.Error(), filepath.Dir(folder.Plan())+"/")
		}
		if said != tt.want {
			t.Errorf("%.60s: %q, want %q", tt.text, said, tt.want)
		}
	}
}
