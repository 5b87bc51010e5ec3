//go:build slurm

package slurmtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClusterStartsHealsAndEnds runs with and without namespaces.
func TestClusterStartsHealsAndEnds(t *testing.T) {
	for _, plain := range []bool{true, false} {
		c, err := Open(Options{Nodes: 2, Plain: plain, NoAccounting: true})
		if err != nil {
			t.Fatal(err)
		}
		if plain && c.Namespaces {
			t.Error("namespaces, though they were not asked for")
		}
		srun := func(args ...string) string {
			t.Helper()
			cmd := exec.Command(filepath.Join(c.Dir, "bin", "srun"), args...)
			cmd.Env = c.Env()
			var complaint strings.Builder // srun complains once that it waits for the node
			cmd.Stderr = &complaint
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("srun %q: %v\n%s%s", args, err, out, &complaint)
			}
			return string(out)
		}
		if got := srun("--nodes=2", "--ntasks-per-node=1", "bash", "-c", "echo $SLURMD_NODENAME"); len(strings.Fields(got)) != 2 {
			t.Errorf("ran on %q", got)
		}
		if err := c.CrashNode("node2"); err != nil {
			t.Error(err)
		}
		if err := c.BootNode("node2"); err != nil {
			t.Error(err)
		}
		want := "node2\n"
		if got := srun("--nodelist=node2", "bash", "-c", "echo $SLURMD_NODENAME"); got != want {
			t.Errorf("after a crash node2 says %q", got)
		}
		if c.Namespaces {
			if got := srun("--nodelist=node2", "hostname"); got != want {
				t.Errorf("node2's host name is %q", got)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if left := processes(t, c.Dir); len(left) > 0 {
			t.Errorf("still there: %q", left)
		}
		if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: %v", c.Dir, err)
		}
	}
}

// processes lists the running processes of the cluster in dir, by environment or arguments.
func processes(t *testing.T, dir string) []string {
	var list []string
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(entries) == 0 {
		t.Fatal("no /proc")
	}
	for _, p := range entries {
		args, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		if bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte("SLURM_CONF="+dir)) {
			list = append(list, p+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		}
	}
	return list
}

func TestClusterScriptIsClean(t *testing.T) {
	out, err := exec.Command("shellcheck", "cluster.sh").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("shellcheck is missing; apt-get install --no-install-recommends shellcheck")
	}
	if err != nil || len(out) > 0 {
		t.Errorf("shellcheck cluster.sh: %v\n%s", err, out)
	}
}
