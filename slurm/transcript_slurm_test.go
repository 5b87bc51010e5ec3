//go:build slurm

package slurm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/scalebench/scalebench/slurm"
)

// recorder returns a client whose commands save their output in a folder. keep makes that a recording if
// -record is set; otherwise it compares its form with the existing recording.
func recorder(t *testing.T) (recording *slurm.Client, keep func(name string)) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sbatch", "squeue", "sacct", "scontrol", "scancel"} {
		write(t, filepath.Join(dir, name), fmt.Sprintf(`#!/bin/bash
{ echo "$ %[1]s${*:+ ${*@Q}}"; } >%[2]s/command
%[3]s/bin/%[1]s "$@" >%[2]s/stdout 2>%[2]s/stderr
echo $? >%[2]s/exit
cat %[2]s/stdout; cat %[2]s/stderr >&2; exit "$(cat %[2]s/exit)"
`, name, dir, cluster.Dir), 0o755)
	}
	env := append(cluster.Env(), "PATH="+dir+":"+os.Getenv("PATH"))
	return &slurm.Client{Env: env}, func(name string) {
		t.Helper()
		if !*record {
			command := read(t, filepath.Join(dir, "command"))
			if mark != "" {
				command = strings.ReplaceAll(command, mark, "")
			}
			now := transcript{command, read(t, filepath.Join(dir, "stdout")),
				read(t, filepath.Join(dir, "stderr")), strings.TrimSpace(read(t, filepath.Join(dir, "exit")))}
			if d := cmp.Diff(readTranscript(t, name).form(), now.form()); d != "" {
				t.Errorf("the recording %s no longer has the form of what Slurm prints; record again with `make record` (-recorded +now):\n%s", name, d)
			}
			return
		}
		a := &txtar.Archive{Comment: []byte(read(t, filepath.Join(dir, "command")))}
		for _, f := range []string{"stdout", "stderr", "exit"} {
			a.Files = append(a.Files, txtar.File{Name: f, Data: []byte(read(t, filepath.Join(dir, f)))})
		}
		write(t, filepath.Join("testdata", "transcripts", name+".txtar"), string(txtar.Format(a)), 0o644)
	}
}

var transcriptRuns int

// TestTranscripts brings jobs into many states and checks Slurm's answers against the facts that the recorded
// transcripts are checked against, so that the recordings stay up to date.
func TestTranscripts(t *testing.T) {
	ctx := context.Background()
	if transcriptRuns++; transcriptRuns > 1 {
		mark = fmt.Sprint("-again", transcriptRuns)
	}
	recording, keep := recorder(t)
	started := time.Now().Add(-time.Minute)
	scontrol := func(args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(cluster.Dir, "bin", "scontrol"), args...)
		cmd.Env = cluster.Env()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("scontrol %q: %v\n%s", args, err, out)
		}
	}

	again, againDir := job(t, "t-requeued"+mark, 1, 1, `touch "$SCALEBENCH_RUN/up-$SCALEBENCH_RESTART"; [ "$SCALEBENCH_RESTART" = 1 ] || sleep 600`)
	again.Requeue = true
	requeued := submit(t, again)
	awaitFile(t, filepath.Join(againDir, "up-0"), 1)
	// If accounting learns of the end before the start, the incarnation never gets a start.
	account(t, func(rows []slurm.Job) bool {
		return len(rows) == 1 && rows[0].State == slurm.Running && !rows[0].Start.IsZero()
	}, slurm.Filter{IDs: []string{requeued}})
	scontrol("requeue", requeued)

	ok, _ := job(t, "t-ok"+mark, 2, 1, "true")
	ids := []string{requeued, submit(t, ok)}
	fails, _ := job(t, "t-fails"+mark, 1, 1, "exit 3")
	ids = append(ids, submit(t, fails))
	for _, id := range ids {
		await(t, id, ended)
	}
	cancelled, cancelledDir := job(t, "t-cancelled"+mark, 1, 1, catches)
	id := submit(t, cancelled)
	awaitFile(t, filepath.Join(cancelledDir, "up-*"), 1)
	account(t, func(rows []slurm.Job) bool { return len(rows) == 1 && !rows[0].Start.IsZero() }, slurm.Filter{IDs: []string{id}})
	if err := client.Cancel(ctx, id); err != nil {
		t.Fatal(err)
	}
	await(t, id, ended)
	ids = append(ids, id)

	held, _ := job(t, "t-held"+mark, 1, 1, "true")
	held.Options = map[string]string{"comment": comment, "hold": ""}
	heldID := submit(t, held)
	busy, busyDir := job(t, "t-running"+mark, 2, 1, catches)
	busyID := submit(t, busy)
	awaitFile(t, filepath.Join(busyDir, "up-*"), 2)
	ids = append(ids, heldID, busyID)
	t.Cleanup(func() {
		if err := client.Cancel(ctx, ids...); err != nil {
			t.Error(err)
		}
	})

	names := []string{"t-requeued", "t-ok", "t-fails", "t-cancelled", "t-held", "t-running"}
	for i := range names {
		names[i] += mark
	}
	account(t, func(rows []slurm.Job) bool { // until sacct has caught up
		over, running := 0, 0
		for _, r := range rows {
			if r.State.Terminal() {
				over++
			}
			if r.State == slurm.Running { // its start may be reported late
				running++
			}
		}
		return len(rows) == len(accountingFacts)+1 && over == 4 && running == 1 // sacct finds the held job by id
	}, slurm.Filter{IDs: ids})
	jobs, err := recording.Queue(ctx, slurm.Filter{Names: names})
	if err != nil {
		t.Error(err)
	}
	keep("squeue-mixed")
	checkFacts(t, jobs, queueFacts)
	for _, j := range jobs {
		if j.Submit.Before(started) || j.Submit.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s was submitted at %v, not since %v", j.Name, j.Submit, started)
		}
	}
	jobs, err = recording.Accounting(ctx, started, slurm.Filter{Names: names})
	if err != nil {
		t.Error(err)
	}
	keep("sacct-mixed")
	checkFacts(t, jobs, accountingFacts)

	for _, tt := range []struct{ id, name string }{{busyID, "running"}, {heldID, "held"}} {
		j, err := recording.Show(ctx, tt.id)
		if err != nil {
			t.Error(err)
		}
		keep("scontrol-show-" + tt.name)
		if j.ID != tt.id || j.Name != "t-"+tt.name+mark {
			t.Errorf("%+v", j)
		}
	}

	if jobs, err := recording.Queue(ctx, slurm.Filter{IDs: []string{"999999"}}); err != nil || jobs != nil {
		t.Errorf("%+v, %v", jobs, err)
	}
	keep("squeue-unknown")
	if jobs, err := recording.Accounting(ctx, started, slurm.Filter{IDs: []string{"999999"}}); err != nil || jobs != nil {
		t.Errorf("%+v, %v", jobs, err)
	}
	keep("sacct-unknown")

	script := filepath.Join(busyDir, "small.sh")
	write(t, script, "#!/bin/bash\n#SBATCH --output=/dev/null\n", 0o644)
	sub, err := recording.Submit(ctx, script)
	if err != nil || strings.Trim(sub.ID, "0123456789") != "" {
		t.Errorf("%+v, %v", sub, err)
	}
	keep("sbatch-accepted")
	if _, err := recording.Submit(ctx, script, "--partition=nope"); err == nil {
		t.Error("accepted")
	}
	keep("sbatch-refused")
}
