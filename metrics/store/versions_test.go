package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// If a repeat was measured with two versions, the later attempt counts, or the earlier one
// if the earlier version is requested.
func TestVersions(t *testing.T) {
	s := openStore(t)
	for attempt, v := range []struct{ sum, commit string }{{"aaaa1111bbbb2222", "c0ffee0"}, {"dddd1111bbbb2222", "beef000"}} {
		path := filepath.Join(t.TempDir(), "supervisor-00000-0.jsonl")
		text := lines(start(0, 1, 0), metrics.Event{Environment: &metrics.Environment{Files: map[string]string{"train.py": v.sum}, GitCommit: v.commit}},
			metrics.Event{Time: 1, Stop: &metrics.Stop{Status: metrics.StopDone}})
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		run := metrics.Run{ID: fmt.Sprintf("s/p-r1-a%d", attempt+1), Study: "s", Point: "p", Repeat: 1, Attempt: attempt + 1, Framework: "command", Workers: 1, Status: metrics.Done}
		if _, err := s.Ingest(t.Context(), run, []metrics.EventFile{{Path: path, Writer: "rank"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "s/p-r1-a2"},
		{Filter{Files: "aaaa"}, "s/p-r1-a1"},
		{Filter{Files: "dddd"}, "s/p-r1-a2"},
		{Filter{Commit: "c0ffee0"}, "s/p-r1-a1"},
		{Filter{Commit: "beef"}, "s/p-r1-a2"},
	} {
		list, _, err := s.Select(t.Context(), test.filter)
		if err != nil || len(list) != 1 || list[0].Run != test.want {
			t.Errorf("%+v: %+v, %v; want %s", test.filter, list, err, test.want)
		}
	}
	made, err := s.MadeWith(t.Context(), "s")
	if diff := cmp.Diff([]MadeWith{{"p", 1, map[string]string{"train.py": "dddd1111bbbb"}}}, made); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
