// Package worktest counts, for tests, how many statements a piece of work executes. Unlike the
// time, this number does not depend on the machine's load.
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

// size is the environment variable with the size of the work for the counted process.
const size = "SCALEBENCH_WORK"

// packages are the packages whose statements are counted: ours, and some of the standard library
// that loop over our data.
const packages = "github.com/scalebench/scalebench/...,slices,strings,bytes,bufio,regexp,encoding/json,github.com/BurntSushi/toml"

// Counter is a test binary of the tested package that counts statements.
type Counter struct{ program string }

// New builds the package whose tests are running.
func New(t *testing.T) Counter {
	t.Helper()
	if os.Getenv(size) != "" {
		return Counter{} // this process runs the counted program
	}
	c := Counter{filepath.Join(t.TempDir(), "test")}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-covermode=count", "-coverpkg="+packages, "-o", c.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return c
}

// Linear fails the test if the work grows faster than linearly: at 16 times the size, work may
// execute at most 32 times the statements. (Comparing each item with every other would take 256
// times as many.) work runs in separate processes, with n = few and n = 16·few; their failures fail
// the test.
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

// statements returns the number of statements that the test executes for size n.
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
