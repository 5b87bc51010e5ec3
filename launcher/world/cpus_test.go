package world

import (
	"runtime"
	"testing"
)

func TestCPUs(t *testing.T) {
	if n := CPUs(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d of %d CPUs", n, runtime.NumCPU())
	}
}
