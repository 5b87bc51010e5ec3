//go:build slurm

package slurm

import (
	"errors"
	"os/exec"
	"testing"
)

func init() {
	shellcheck = func(t *testing.T, path string) {
		t.Helper()
		out, err := exec.Command("shellcheck", path).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatal("shellcheck is missing; apt-get install --no-install-recommends shellcheck")
		}
		if err != nil || len(out) > 0 {
			t.Errorf("shellcheck %s: %v\n%s", path, err, out)
		}
	}
}
