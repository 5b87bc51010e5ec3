package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// A process in a fence of 64 MiB that allocates 200 MiB is killed and counted. One that reads a file of 200 MiB
// is not killed.
func TestFence(t *testing.T) {
	fence := func(t *testing.T) *Fence {
		t.Helper()
		f, err := NewFence(fmt.Sprintf("scalebench-test-%d", os.Getpid()), 64<<20)
		if err != nil {
			t.Skipf("this user can make no memory cgroup: %v", err)
		}
		t.Cleanup(func() {
			if err := f.Remove(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(f.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", f.dir, err)
			}
		})
		return f
	}
	run := func(f *Fence, script string) error {
		cmd := exec.Command("sh", "-c", script)
		runtime.LockOSThread()
		err := f.Start(cmd, (*exec.Cmd).Start)
		runtime.UnlockOSThread()
		if err != nil {
			t.Fatal(err)
		}
		return cmd.Wait()
	}
	t.Run("too much", func(t *testing.T) {
		f := fence(t)
		if out := run(f, `grep -q scalebench-test /proc/self/cgroup`); out != nil {
			t.Errorf("it is not in the group from its start on: %v", out)
		}
		if err := run(f, `x=$(head -c 200000000 /dev/zero | tr '\0' x); echo ${#x}`); err == nil || f.Kills() == 0 {
			t.Errorf("200 MB in 64 MiB: %v, %d killed", err, f.Kills())
		}
	})
	t.Run("page cache", func(t *testing.T) {
		f := fence(t)
		name := t.TempDir() + "/file"
		if err := os.WriteFile(name, []byte(strings.Repeat("x", 200_000_000)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := run(f, "cat "+name+" "+name+" >/dev/null"); err != nil || f.Kills() != 0 {
			t.Errorf("reading 200 MB in 64 MiB: %v, %d killed", err, f.Kills())
		}
	})
}
