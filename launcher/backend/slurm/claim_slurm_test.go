//go:build slurm

package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
	"github.com/scalebench/scalebench/slurm"
)

// batchScript writes the real batch script of a run folder. Its srun appends a line to a ledger on a local file
// system.
func batchScript(t *testing.T, run, ledger string) (script string, env []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"srun":   fmt.Sprintf("#!/bin/bash\necho \"$SLURM_JOB_ID $SLURM_RESTART_COUNT\" >>'%s'\n", ledger),
		"worker": "#!/bin/bash\necho 127.0.0.1 40000\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := slurm.Script{JobName: "s/p-r1-a1", Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, Time: time.Hour,
		Output: filepath.Join(run, "job.log"), RunDir: run, Worker: filepath.Join(dir, "worker"), Command: []string{"true"}}
	var text bytes.Buffer
	if err := s.Render(&text); err != nil {
		t.Fatal(err)
	}
	script = filepath.Join(dir, "job.sh")
	if err := os.WriteFile(script, text.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return script, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SLURM_JOB_NODELIST=n1"}
}

// Copies of one attempt start at once on two hosts: under different ids, the same one twice, and a command that
// takes the claim. Exactly one gets the claim, and a script that gets it runs. The others report it and change
// nothing. A requeue of the one that ran runs again.
func TestNFSClaim(t *testing.T) {
	began, lost := 0, int64(0)
	for seed := range uint64(12) {
		folder, ledger := t.TempDir(), filepath.Join(t.TempDir(), "ledger")
		if err := os.Mkdir(filepath.Join(folder, "run"), 0o755); err != nil {
			t.Fatal(err)
		}
		plan := nfstest.Plan{Lost: 0.3, Twice: 0.1, Stale: 0.1, Delay: time.Duration(seed%3) * 5 * time.Millisecond, Memory: time.Duration(seed%4) * 100 * time.Millisecond}
		var hosts []*nfstest.Client
		var scripts []string
		var envs [][]string
		for i := range 2 {
			plan.Seed = 2*seed + uint64(i)
			hosts = append(hosts, nfstest.Mount(t, folder, plan))
			script, env := batchScript(t, filepath.Join(hosts[i].Path, "run"), ledger)
			scripts, envs = append(scripts, script), append(envs, env)
		}
		type result struct {
			job, said string
			code      int
		}
		copies := func(restart string, jobs ...string) (list []result) {
			list = make([]result, len(jobs))
			var all sync.WaitGroup
			for i, job := range jobs {
				all.Go(func() {
					list[i].job = job
					if job == "" { // a command that takes the claim from a job that is not visible
						err := rundir.Folder(filepath.Join(hosts[i%2].Path, "run")).TakeClaim(0, "")
						if list[i].said = fmt.Sprint(err); errors.Is(err, fs.ErrExist) {
							list[i].code = slurm.DuplicateExit
						} else if err != nil {
							list[i].code = -1
						}
						return
					}
					cmd := exec.Command("bash", scripts[i%2])
					cmd.Env = append(envs[i%2], "SLURM_JOB_ID="+job, "SLURM_RESTART_COUNT="+restart)
					runtime.LockOSThread() // Pdeathsig is the death of this thread
					defer runtime.UnlockOSThread()
					cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
					out, _ := cmd.CombinedOutput()
					list[i].said, list[i].code = string(out), cmd.ProcessState.ExitCode()
				})
			}
			all.Wait()
			return list
		}
		ran := func(results []result) (owner string) {
			t.Helper()
			first := 0
			for _, r := range results {
				switch {
				case r.code == 0:
					first, owner = first+1, r.job
				case r.code != slurm.DuplicateExit || r.job != "" && !strings.Contains(r.said, "second copy of this attempt"):
					t.Errorf("seed %d: job %q ended with %d: %s", seed, r.job, r.code, r.said)
				}
			}
			text, _ := os.ReadFile(ledger) // missing if no script ran
			os.Remove(ledger)
			want := first
			if owner == "" && first == 1 {
				want = 0
			}
			if lines := strings.Count(string(text), "\n"); first != 1 || lines != want {
				t.Errorf("seed %d: %d have the claim, and the programs of %q were started: %+v", seed, first, text, results)
			}
			began += want
			return owner
		}
		jobs := []string{"41", "42", "41", "43"}
		if seed%3 == 2 {
			jobs = append(jobs, "")
		}
		owner := ran(copies("0", jobs...))
		if owner != "" {
			if got := ran(copies("1", owner, owner, "99")); got != owner {
				t.Errorf("seed %d: job %s ran, and %s was requeued", seed, owner, got)
			}
			for _, r := range copies("0", owner, "44") {
				if r.code != slurm.DuplicateExit || r.job == "44" && !strings.Contains(r.said, "job "+owner+" has claimed it") {
					t.Errorf("seed %d: much later, job %s ended with %d: %s", seed, r.job, r.code, r.said)
				}
			}
		}
		for _, h := range hosts {
			n, _, _, _ := h.Fired()
			lost += n
		}
	}
	if began < 12 || lost < 50 {
		t.Errorf("%d copies ran, %d answers were lost", began, lost)
	}
}

// On a full disk no claim and no second copy are made: the script reports the error, and the next submission
// runs.
func TestNFSClaimOnAFullDisk(t *testing.T) {
	folder, ledger, full := t.TempDir(), filepath.Join(t.TempDir(), "ledger"), true
	if err := os.Mkdir(filepath.Join(folder, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := nfstest.Mount(t, folder, nfstest.Plan{Fail: func(string) syscall.Errno {
		if full {
			return syscall.ENOSPC
		}
		return 0
	}})
	script, env := batchScript(t, filepath.Join(c.Path, "run"), ledger)
	run := func() (string, int) {
		cmd := exec.Command("bash", script)
		cmd.Env = append(env, "SLURM_JOB_ID=41")
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := run(); code != 1 || !strings.Contains(out, "cannot write in the run folder") {
		t.Errorf("full: exit code %d: %s", code, out)
	}
	if left, err := os.ReadDir(filepath.Join(folder, "run")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	full = false
	if out, code := run(); code != 0 {
		t.Errorf("with room again: exit code %d: %s", code, out)
	}
	if text, err := os.ReadFile(ledger); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("started: %q, %v", text, err)
	}
}
