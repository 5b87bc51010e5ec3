// Package worktest counts, for tests, the statements that a piece of work
// executes. They are the same on a busy machine as on an idle one, which its time
// is not.
package worktest

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// size is the variable that tells the counted process how much to do.
const size = "SCALEBENCH_WORK"

// packages are those that are counted: ours, and what loops on their behalf.
const packages = "github.com/scalebench/scalebench/...,slices,strings,bytes,bufio,regexp,encoding/json,github.com/BurntSushi/toml"

// Counter is the tested package built to count.
type Counter struct{ program string }

// New builds the package whose tests run.
func New(t *testing.T) Counter {
	t.Helper()
	if os.Getenv(size) != "" {
		return Counter{} // it is the one that counts
	}
	c := Counter{filepath.Join(t.TempDir(), "test")}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-covermode=count", "-coverpkg="+packages, "-o", c.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return c
}

// Linear fails a test whose work grows faster than its size: 16 times the size
// are at most 32 times the statements, where each part compared with each is 256
// times as many. The work is carried out by processes of their own, and whatever
// they fail at fails the test; it takes few or 16 times few.
func (c Counter) Linear(t *testing.T, few int, work func(n int)) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv(size)); err == nil {
		work(n)
		return
	}
	const times = 16
	one, many := c.statements(t, few), c.statements(t, times*few)
	if one == 0 {
		t.Errorf("%d of them execute no statement that is counted", few)
	}
	if many > 2*times*one {
		t.Errorf("%d of them execute %d statements, %d times as many %d, which is %.0f times as much", few, one, times, many, float64(many)/float64(one))
	}
}

// statements is how many the test executes with a size.
func (c Counter) statements(t *testing.T, n int) (sum int) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), c.program, "-test.timeout=5m", "-test.run", pattern, "-test.coverprofile", profile)
	cmd.Env = append(os.Environ(), size+"="+strconv.Itoa(n))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("size %d: %v\n%s", n, err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	// file.go:3.14,5.2 STATEMENTS COUNT
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) != 3 {
			continue // mode: count
		}
		in, err := strconv.Atoi(fields[1])
		times, err2 := strconv.Atoi(fields[2])
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		sum += in * times
	}
	return sum
}
