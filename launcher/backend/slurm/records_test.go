package slurm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// A record with a value that Slurm's commands do not accept, or that would select other
// jobs, is unreadable; the other run stays readable.
func TestRecordsThatReachSlurm(t *testing.T) {
	plan := launchtest.SmallPlan(t, "[2, 4]")
	long := strings.Repeat("9", 19)
	for name, c := range map[string]struct {
		file, key string
		value     any // replaces key's value; nil keeps it
		want      string
	}{
		"as it was":           {"attempt.json", "job_name", nil, ""},
		"two names":           {"attempt.json", "job_name", "a,b", `job_name: "a,b" is not a job name`},
		"a blank":             {"attempt.json", "job_name", "a b", `job_name: "a b"`},
		"a newline":           {"attempt.json", "job_name", "a\nb", `job_name: "a\nb"`},
		"no name":             {"attempt.json", "job_name", "", `job_name: ""`},
		"an escape":           {"attempt.json", "job_name", "a\x1b[2J", `job_name: "a\x1b[2J"`},
		"a long name":         {"attempt.json", "job_name", strings.Repeat("a", 201), "job_name: "},
		"two allocations":     {"attempt.json", "allocation", "1,2", `allocation: "1,2" is not a job id`},
		"an option":           {"attempt.json", "allocation", "--user=root", `allocation: "--user=root"`},
		"two nodes in one":    {"attempt.json", "exclude", []string{"n1", "n2,n3"}, `exclude: "n2,n3" is not a node name`},
		"two jobs":            {"job.json", "job_id", "1,2", `the job's id: "1,2" is not a job id`},
		"an array's tasks":    {"job.json", "job_id", "7_[1-9]", `the job's id: "7_[1-9]"`},
		"no job":              {"job.json", "job_id", "", "job_id is missing"},
		"a huge id":           {"job.json", "job_id", long, "the job's id: "},
		"a job's user":        {"job.json", "job_id", "7 --user=root", `the job's id: "7 --user=root"`},
		"a cluster's option":  {"job.json", "cluster", "-x", `the job's cluster: "-x"`},
		"two clusters":        {"job.json", "cluster", "a,b", `the job's cluster: "a,b"`},
		"to wait for all":     {"job.json", "after", "7:8?afterany", `the job's id: "7:8?afterany"`},
		"a task of an array":  {"job.json", "job_id", "7_3", ""},
		"a verdict's job":     {"state.json", "job", map[string]any{"id": "7,8"}, `the job's id: "7,8"`},
		"a verdict's cluster": {"state.json", "job", map[string]any{"id": "7", "cluster": "a b"}, `the job's cluster: "a b"`},
		"failed nodes":        {"state.json", "failed_nodes", []string{"n[1-4]"}, `failed_nodes: "n[1-4]" is not a node name`},
	} {
		folder := rundir.Study(filepath.Join(t.TempDir(), "s"))
		for i, planned := range plan.Points {
			run := folder.Run(planned.Point.ID, 1, 1)
			if err := os.MkdirAll(run.Path(), 0o700); err != nil {
				t.Fatal(err)
			}
			for file, record := range map[string]any{
				"point.json":   planned.Point,
				"attempt.json": launcher.Record{ID: run.ID(), Backend: backendName, JobName: "s-1", CreatedUnix: 1.7e9},
				"job.json":     launcher.Submission{JobID: "7", SubmittedUnix: 1.7e9},
				"state.json":   launcher.Verdict{Status: metrics.Done, Job: &metrics.Job{ID: "7"}},
			} {
				text, err := json.Marshal(record)
				if err == nil && i == 0 && file == c.file && c.value != nil {
					var keys map[string]any
					if err = json.Unmarshal(text, &keys); err == nil {
						keys[c.key] = c.value
						text, err = json.Marshal(keys)
					}
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(run.Path(), file), text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		list, err := launcher.Attempts(folder)
		if err != nil || len(list) != 2 {
			t.Fatalf("%s: %d attempts, %v", name, len(list), err)
		}
		for _, a := range list {
			bad := a.Point.ID == plan.Points[0].Point.ID
			switch why := a.Unreadable; {
			case (!bad || c.want == "") && why != nil:
				t.Errorf("%s: %v", name, why)
			case bad && c.want != "" && (why == nil || !strings.Contains(why.Error(), c.want) || !strings.Contains(why.Error(), filepath.Join(a.Run.Path(), c.file))):
				t.Errorf("%s: %v, want %q in %s", name, why, c.want, c.file)
			}
		}
	}
}
