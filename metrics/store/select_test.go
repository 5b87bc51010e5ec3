package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// recorded ingests a finished run of one rank on a CPU of the given model.
func recorded(t *testing.T, s *Store, study, point string, repeat int, created float64, cpu, commit string) {
	t.Helper()
	run := aRun()
	run.Study, run.Point, run.Repeat, run.Workers, run.CreatedUnix = study, point, repeat, 1, created
	run.ID = study + "/" + point + "-r" + string(rune('0'+repeat)) + "-a1"
	run.Parameters = map[string]any{"workload.batch": int64(16), "resources.device": "cpu"}
	run.Job = &metrics.Job{Cluster: "c", ID: "9", Partition: "p", StartUnix: created, EndUnix: created + 30}
	ingestRun(t, s, run, writeRanks(t, t.TempDir(), []string{lines(start(0, 1, 0),
		metrics.Event{Environment: &metrics.Environment{CPUModel: cpu, GitCommit: commit, GPUs: []metrics.GPU{{Name: "idle"}},
			Versions: map[string]string{"torch": "2.1"}}},
		metrics.Event{Time: 1, Train: &metrics.Train{DataSHA256: "feedbeef0123456789"}},
		stepsEvent(21, metrics.Steps{Tick: 1, Duration: fill(20, 1), Samples: fill(20, 16)}),
		metrics.Event{Time: 22, Stop: &metrics.Stop{Status: metrics.StopDone}})})...)
}

func TestSelect(t *testing.T) {
	s := openStore(t)
	recorded(t, s, "alpha", "one", 1, 1000, "Xeon", "abc123")
	recorded(t, s, "alpha", "one", 2, 2000, "EPYC", "abc999")
	recorded(t, s, "beta", "one", 1, 3000, "Xeon", "def")
	for _, test := range []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "alpha/one-r1-a1 beta/one-r1-a1 alpha/one-r2-a1"},
		{Filter{Commit: "abc"}, "alpha/one-r1-a1 alpha/one-r2-a1"},
		{Filter{Until: time.Unix(3000, 0), Since: time.Unix(2000, 0)}, "alpha/one-r2-a1"},
		{Filter{Where: "git_commit = 'def'"}, "beta/one-r1-a1"},
		{Filter{Where: "workload.batch > 16"}, ""},
		{Filter{Study: "beta", Statuses: []metrics.Status{metrics.Failed}, Limit: -1}, "beta/one-r1-a1"},
	} {
		list, _, err := s.Select(t.Context(), test.filter)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range list {
			names = append(names, o.Run)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%+v: %s, want %s", test.filter, got, test.want)
		}
	}
	list, _, err := s.Select(t.Context(), Filter{Study: "beta"})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	want := fingerprint.Print{fingerprint.CPU: "Xeon", fingerprint.Interface: "", fingerprint.Data: "feedbeef0123", "version.torch": "2.1"}
	if o := list[0]; o.Cluster != "c" || o.Partition != "p" || *o.JobSeconds != 30 || o.GitCommit != "def" || o.CreatedUnix != 3000 || o.BeganUnix != 1.7e9 || cmp.Diff([]string{"n0"}, o.Hosts) != "" || cmp.Diff(want, o.Fingerprint) != "" {
		t.Errorf("%+v", o)
	}
	if got := table(t, s, "SELECT field, count(*) FROM fingerprints GROUP BY field, value ORDER BY field, value"); cmp.Diff([]string{
		"cpu|1", "cpu|2", "data|3", "version.torch|3"}, got) != "" {
		t.Errorf("view fingerprints: %q", got)
	}
	if _, _, err := s.Select(t.Context(), Filter{Where: "nonsense ="}); err == nil || !strings.Contains(err.Error(), "--where") {
		t.Errorf("a wrong condition: %v", err)
	}
}
