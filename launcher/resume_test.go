package launcher

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// resume finds the newest complete checkpoint of failed attempts. It ignores an attempt that was good or may be
// running, and everything before it.
func TestResume(t *testing.T) {
	for _, test := range []struct {
		name     string
		statuses []metrics.Status // of the attempts, from the first; "" means no verdict yet
		files    []string         // "ATTEMPT/NAME", each a second newer than the one before
		want     string
		attempt  int
	}{
		{"nothing before", nil, nil, "", 0},
		{"no checkpoint", []metrics.Status{metrics.Failed}, nil, "", 0},
		{"the newest", []metrics.Status{metrics.Failed}, []string{"1/b", "1/a"}, "1/a", 1},
		{"whole ones only", []metrics.Status{metrics.TimedOut}, []string{"1/a", "1/b.tmp", "1/.c", "1/d.part", "1/e~"}, "1/a", 1},
		{"of the latest that has one", []metrics.Status{metrics.Failed, metrics.Failed}, []string{"2/x.tmp", "1/a"}, "1/a", 1},
		{"of the latest", []metrics.Status{metrics.Failed, metrics.NodeFailed}, []string{"2/old", "1/new"}, "2/old", 2},
		{"measured again", []metrics.Status{metrics.Done}, []string{"1/a"}, "", 0},
		{"behind a good one", []metrics.Status{metrics.Failed, metrics.Done, metrics.Failed}, []string{"1/a", "2/a"}, "", 0},
		{"at work", []metrics.Status{metrics.Failed, ""}, []string{"1/a", "2/a"}, "", 0},
	} {
		c := Creator{Folder: rundir.OpenStudy(t.TempDir(), "s")}
		todo := Todo{Planned: study.Planned{Point: study.Point{ID: "p", Repeat: 1}}, Number: len(test.statuses) + 1}
		run := func(n int) rundir.Folder { return c.Folder.Run("p", 1, n) }
		for i, status := range test.statuses {
			if err := os.MkdirAll(run(i+1).Checkpoints(), 0o755); err != nil {
				t.Fatal(err)
			}
			if status != "" {
				if err := rundir.WriteJSON(run(i+1).State(), Verdict{Status: status}, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		path := func(file string) string {
			return filepath.Join(run(int(file[0]-'0')).Checkpoints(), file[2:])
		}
		for i, file := range test.files {
			if err := os.WriteFile(path(file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1_800_000_000+int64(i), 0)
			if err := os.Chtimes(path(file), at, at); err != nil {
				t.Fatal(err)
			}
		}
		want := ""
		if test.want != "" {
			want = path(test.want)
		}
		if got, attempt, err := c.resume(todo); got != want || attempt != test.attempt || err != nil {
			t.Errorf("%s: %q of attempt %d, %v; want %q of %d", test.name, got, attempt, err, want, test.attempt)
		}
	}
}
