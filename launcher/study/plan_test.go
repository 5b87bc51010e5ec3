package study

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// A plan in a colleague's folder may contain anything. Content that no study could have
// produced is rejected before it is used.
func TestReadPlan(t *testing.T) {
	good := `{"point":{"id":"a","workers":2,"nodes":1,"workers_per_node":2,"repeat":1},"partition":"p","exclusive":true}`
	for text, want := range map[string]string{
		`{"study":"s","points":[` + strings.Replace(good, `"workers":2`, `"workers":-9223372036854775808`, 1) + `]}`: "points[0]: workers",
		`{"study":"s","points":[` + good + `,` + strings.Replace(good, `"repeat":1`, `"repeat":0`, 1) + `]}`:         "points[1]: repeat",
		`{"study":"s","points":{}}`: "not a list",
		`{"study":"s","points":[` + strings.Repeat(good+",", maxPoints) + good + `]}`: "more than",
	} {
		var plan Plan
		if err := json.Unmarshal([]byte(text), &plan); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s…: %v, want %q", text, err, want)
		}
	}

	want := Plan{Study: "s", StudyFile: "/s.toml", Points: []Planned{{Partition: "p", Exclusive: true,
		Point: Point{ID: "a", Workers: 2, Nodes: 1, WorkersPerNode: 2, Repeat: 1}}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Plan
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
