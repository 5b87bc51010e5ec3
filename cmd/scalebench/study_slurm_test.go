//go:build slurm

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// realPath is PATH before TestMain puts the fakes of Slurm's commands on it.
var realPath = os.Getenv("PATH")

// longest is the time limit for events that take seconds on an idle machine; only a failure
// takes longer, not a busy machine.
const longest = 5 * time.Minute

// startCluster starts a real cluster, without the fakes on its PATH.
func startCluster(t *testing.T, o slurmtest.Options) *slurmtest.Cluster {
	t.Helper()
	o.Path = realPath
	return slurmtest.Start(t, o)
}

// A bench is the two real programs with a real cluster, as a user would have them.
type bench struct {
	t   *testing.T
	dir string // the user's folder, which the nodes see
	env []string
}

// newBench creates its folder within the cluster's, which is removed after the daemons have
// ended. A t.TempDir would be removed earlier, while jobs still write to it.
func newBench(t *testing.T, c *slurmtest.Cluster) *bench {
	t.Helper()
	dir, err := os.MkdirTemp(c.Dir, "bench")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	copyPrograms(t, filepath.Join(dir, "bin"))
	return &bench{t, dir, append(c.Env(), "SCALEBENCH_DB="+filepath.Join(dir, "scalebench.db"))}
}

// copyPrograms puts the two programs into a new folder.
func copyPrograms(t *testing.T, bin string) {
	t.Helper()
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"scalebench", "scalebench-worker"} {
		text, err := os.ReadFile(program(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs scalebench and returns its output and exit code.
func (b *bench) run(args ...string) (stdout, stderr string, code int) {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(b.dir, "bin", "scalebench"), args...)
	var out, complaint bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, b.env, &out, &complaint
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return out.String(), complaint.String(), cmd.ProcessState.ExitCode()
}

// must runs scalebench, checks its exit code, and reads its JSON output into into unless that is nil.
func (b *bench) must(want int, into any, args ...string) {
	b.t.Helper()
	out, complaint, code := b.run(args...)
	if code != want {
		b.t.Fatalf("scalebench %s: exit code %d, want %d\n%s\n%s%s", strings.Join(args, " "), code, want, b.logs(), out, complaint)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			b.t.Fatalf("scalebench %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// logs returns the last lines of ranks' and jobs' output for failure messages, because the
// folder is removed with the test.
func (b *bench) logs() string {
	var text strings.Builder
	paths, _ := filepath.Glob(filepath.Join(b.dir, "runs/*/*/*.log"))
	for _, path := range paths {
		log, _ := os.ReadFile(path)
		fmt.Fprintf(&text, "-- %s\n%s\n", path, log[max(0, len(log)-2000):])
	}
	return text.String()
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// scaled reads the rows of `scaling` and reports whether any exist. If other work on this
// machine prevents a steady state in all runs of the base, scaling only reports
// that.
func (b *bench) scaled(into any, study string) bool {
	b.t.Helper()
	out, complaint, code := b.run("scaling", study, "--format", "json")
	if code == exitUsage && strings.Contains(complaint, "none with a steady state") {
		b.t.Logf("no run of the base had a steady state: %s", complaint)
		return false
	}
	if code != 0 {
		b.t.Fatalf("scaling %s: exit code %d\n%s%s", study, code, out, complaint)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		b.t.Fatalf("scaling %s: %v\n%s", study, err, out)
	}
	return true
}

type statusRow struct {
	Run        string
	Workers    int
	Status     metrics.Status
	Job        *string
	SlurmState *string `json:"slurm_state"`
	Epoch      *int
	Throughput *float64
	Detail     string
}

// TestSlurmStudy tests the whole workflow on a real cluster: study, submit, running,
// collect while it runs, collect, scaling, plot; 1, 2 and 4 workers on 1 and 2
// nodes.
func TestSlurmStudy(t *testing.T) {
	t.Parallel()
	// One licence makes the jobs run one at a time: side by side on this
	// machine's few CPUs their step times would change whenever one ends, and
	// fewer runs would have a steady state.
	b := newBench(t, startCluster(t, slurmtest.Options{Conf: "Licenses=turn:1"}))
	b.write("study.toml", `
[study]
name = "way"
repeats = 2
[workload]
model = "mlp"
batch = 32
epochs = 3
learning_rate = 0.01
warmup_epochs = 0
targets = [0.2]
[data]
kind = "synthetic"
train_samples = 2048
test_samples = 256
[resources]
time = "1h"
[sweep]
workers = [1, 2, 4]
workers_per_node = [1, 2]
[[exclude]]
workers_per_node = 1
workers = [1, 4]
`)
	b.write("site.toml", "[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\noptions = { licenses = \"turn\" }\n")
	b.must(0, nil, "submit", "study.toml", "--site", "site.toml")

	seen := map[metrics.Status]bool{}
	collected := false
	var rows []statusRow
	for deadline := time.Now().Add(4 * longest); ; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not done after %v: %+v", 4*longest, rows)
		}
		rows = nil
		b.must(0, &rows, "status", "way", "--format", "json")
		open := 0
		for _, r := range rows {
			seen[r.Status] = true
			if !r.Status.Terminal() {
				open++
			}
		}
		if seen[metrics.Running] && !collected {
			b.must(0, nil, "collect", "way")
			collected = true
		}
		if open == 0 {
			break
		}
	}
	if len(rows) != 8 || !collected {
		t.Errorf("%d runs, want 8; seen on the way: %v", len(rows), seen)
	}
	for _, r := range rows {
		if r.Status != metrics.Done || r.SlurmState == nil || *r.SlurmState != "COMPLETED" || r.Epoch == nil || *r.Epoch != 3 {
			t.Errorf("run %+v, want done, COMPLETED and 3 epochs", r)
		}
	}

	b.must(0, nil, "collect")
	b.must(0, nil, "collect") // a second time, nothing changes
	var runs []struct {
		Run string
		Job string
	}
	b.must(0, &runs, "runs", "--study", "way", "--format", "json")
	if len(runs) != 8 {
		t.Errorf("%d runs stored, want 8", len(runs))
	}
	var curve []struct {
		Series              string
		Workers             int
		Runs                int
		Throughput, Speedup *float64
		TimeToAccuracy      map[string]struct{ Reached, Runs int } `json:"time_to_accuracy"`
	}
	if b.scaled(&curve, "way") && len(curve) != 4 {
		t.Errorf("%d rows of scaling, want 4: %+v", len(curve), curve)
	}
	for _, r := range curve {
		if tta, ok := r.TimeToAccuracy["0.2"]; !ok || tta.Runs != 2 {
			t.Errorf("row without its target: %+v", r)
		}
	}
	b.must(0, nil, "plot", "accuracy", "way", "-o", "accuracy.png")
	picture, err := os.Open(filepath.Join(b.dir, "accuracy.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Close()
	if _, err := png.Decode(picture); err != nil {
		t.Error(err)
	}

	// Submitting again finds nothing to do.
	var again []any
	b.must(0, &again, "submit", "study.toml", "--site", "site.toml", "--format", "json")
	if len(again) > 0 {
		t.Errorf("submitted again: %v", again)
	}

	places(t, rundir.OpenStudy(filepath.Join(b.dir, "runs"), "way"))
}

// places checks where each run's ranks were: on as many hosts as planned and, with two
// hosts, connected over addresses other than loopback.
func places(t *testing.T, folder rundir.Study) {
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		t.Fatal(err)
	}
	twoNodes := 0
	for _, a := range attempts {
		hosts, hashes := map[string]bool{}, map[string]bool{}
		files, err := a.Run.EventFiles()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			in, err := os.Open(f.Path)
			if err != nil {
				t.Fatal(err)
			}
			for r := metrics.NewReader(in, f.Path, 0, 0); ; {
				e, err := r.Next()
				if err != nil {
					break
				}
				if e.Stop != nil && f.Writer == "rank" {
					hashes[e.Stop.ParameterSHA256] = true
				}
				if e.Environment == nil || f.Writer != "supervisor" {
					continue
				}
				hosts[e.Environment.Hostname] = true
				i := e.Environment.Interface
				if i == nil {
					t.Errorf("%s: no interface recorded", f.Path)
				} else if a.Point.Nodes > 1 && net.ParseIP(i.Address).IsLoopback() {
					t.Errorf("%s: rank %d of a run on %d nodes is at %s", a.Record.ID, f.Rank, a.Point.Nodes, i.Address)
				}
			}
			in.Close()
		}
		if len(hosts) != a.Point.Nodes {
			t.Errorf("%s ran on %v, want %d hosts", a.Record.ID, hosts, a.Point.Nodes)
		}
		if len(hashes) != 1 {
			t.Errorf("%s: the ranks ended with %d different sets of parameters", a.Record.ID, len(hashes))
		}
		if a.Point.Nodes == 2 {
			twoNodes++
		}
	}
	if twoNodes != 4 {
		t.Errorf("%d runs on two nodes, want 4", twoNodes)
	}
}

// TestSlurmRefusal checks that sbatch's own message is shown with the script's path, and
// that submission works once the site file is corrected.
func TestSlurmRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	b.write("study.toml", `
[study]
name = "refused"
[workload]
model = "mlp"
max_steps = 20
[data]
kind = "synthetic"
train_samples = 512
test_samples = 128
[sweep]
workers = [1]
`)
	b.write("site.toml", "[[partitions]]\nname = \"nosuch\"\n")
	_, complaint, code := b.run("submit", "study.toml", "--site", "site.toml")
	for _, want := range []string{"sbatch: error: Batch job submission failed: Invalid partition name specified", "job.sh"} {
		if code != exitRunsFailed || !strings.Contains(complaint, want) {
			t.Errorf("exit code %d, and the output does not say %q:\n%s", code, want, complaint)
		}
	}
	b.write("site.toml", "")
	b.must(0, nil, "submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	var rows []statusRow
	b.must(0, &rows, "status", "refused", "--format", "json")
	if got := fmt.Sprintf("%s %s", rows[0].Status, rows[1].Status); len(rows) != 2 || got != "failed done" {
		t.Errorf("attempts are %s, want the refused one and a good one", got)
	}
}

// TestSlurmAway checks that a cluster which does not answer gives exit code 4, and that nothing
// is lost.
func TestSlurmAway(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	b := newBench(t, c)
	b.write("study.toml", "[study]\nname = \"away\"\n[workload]\nmodel = \"mlp\"\nmax_steps = 20\n[data]\nkind = \"synthetic\"\ntrain_samples = 512\ntest_samples = 128\n[sweep]\nworkers = [1]\n")
	if err := c.Stop("slurmctld", "TERM"); err != nil {
		t.Fatal(err)
	}
	_, complaint, code := b.run("submit", "study.toml")
	if code != exitScheduler || !strings.Contains(complaint, "Slurm cannot be reached") {
		t.Errorf("exit code %d:\n%s", code, complaint)
	}
	if err := c.Restart("slurmctld"); err != nil {
		t.Fatal(err)
	}
	b.must(0, nil, "submit", "study.toml", "--wait", "--interval", "1s")
	var rows []statusRow
	b.must(0, &rows, "status", "away", "--format", "json")
	if len(rows) != 1 || rows[0].Status != metrics.Done {
		t.Errorf("runs %+v, want one, done", rows)
	}
}
