package slurm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignalIsPassedOnAndWaitedFor signals the script while its fake srun runs. srun records the signals and
// exits a little later with its own status.
func TestSignalIsPassedOnAndWaitedFor(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM} {
		dir := t.TempDir()
		files := map[string]string{
			"worker": "#!/bin/bash\necho 10.0.0.7 40123\n",
			"srun": `#!/bin/bash
trap 'echo USR1 >>"$FAKE_OUT/got"; sleep 0.3; exit 7' USR1
trap 'echo TERM >>"$FAKE_OUT/got"; sleep 0.3; exit 7' TERM
touch "$FAKE_OUT/up"; while :; do sleep 0.02; done
`,
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s := plainScript()
		s.RunDir, s.Worker = dir, filepath.Join(dir, "worker")
		script := filepath.Join(dir, "job.sh")
		if err := os.WriteFile(script, render(t, s), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", script)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "FAKE_OUT=" + dir, "SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, "up")); err == nil {
				break
			}
			if time.Now().After(deadline) {
				_ = cmd.Process.Kill()
				t.Fatal("srun was not started")
			}
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		name := map[syscall.Signal]string{syscall.SIGUSR1: "USR1", syscall.SIGTERM: "TERM"}[sig]
		got, err := os.ReadFile(filepath.Join(dir, "got"))
		if err != nil || string(got) != name+"\n" {
			t.Errorf("%s: srun got %q, %v", name, got, err)
		}
		if r := readExit(t, filepath.Join(dir, "exit-0.json")); cmd.ProcessState.ExitCode() != 7 || r.ExitCode != 7 || r.Signal != name {
			t.Errorf("%s: exit %d, record %+v", name, cmd.ProcessState.ExitCode(), r)
		}
	}
}

func TestSlurmIsNotInstalled(t *testing.T) {
	c := &Client{Env: []string{"PATH=" + t.TempDir()}}
	_, err := c.Submit(t.Context(), "job.sh")
	var gone *UnreachableError
	if !errors.As(err, &gone) || gone.MaybeQueued || !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "login node") {
		t.Errorf("%v", err)
	}

	dir := t.TempDir()
	for _, name := range []string{"sbatch", "squeue"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec sleep 30\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c = &Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}, Timeout: 100 * time.Millisecond}
	if _, err = c.Submit(t.Context(), "job.sh"); !errors.As(err, &gone) || !gone.MaybeQueued || !strings.Contains(err.Error(), "no answer within 100ms") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err = c.Queue(ctx, Filter{}); !errors.As(err, &gone) || gone.MaybeQueued || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err = c.Queue(t.Context(), Filter{Names: []string{"a,b"}}); err == nil || errors.As(err, new(*UnreachableError)) {
		t.Errorf("a name with a comma was asked for: %v", err)
	}
}
