package slurmtest

import (
	"errors"
	"os/exec"
	"testing"
)

func TestClusterScriptIsClean(t *testing.T) {
	out, err := exec.Command("shellcheck", "cluster.sh").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("shellcheck is missing; apt-get install --no-install-recommends shellcheck")
	}
	if err != nil || len(out) > 0 {
		t.Errorf("shellcheck cluster.sh: %v\n%s", err, out)
	}
}
