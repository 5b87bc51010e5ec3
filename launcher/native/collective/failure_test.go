package collective

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test kills or stops a process during all-reduces over each transport. All other ranks must blame the
// right rank with the same error, immediately after a kill and within the timeout after a stop. No file
// may remain in /dev/shm.
func TestProcessFailures(t *testing.T) {
	const timeout = 2 * time.Second // for the stopped process
	before := sharedFiles(t)
	for _, test := range []struct {
		name            string
		signal          syscall.Signal
		timeout, within time.Duration // far apart, so that a busy machine cannot fail the test
		want            string
	}{
		{"killed", syscall.SIGKILL, 2 * time.Minute, 20 * time.Second, "is gone: its connection was closed; its own log or events say why"},
		{"stopped", syscall.SIGSTOP, timeout, 10 * timeout, "its process is stopped, or its host hangs"},
	} {
		for _, w := range []way{ways[0], ways[1], ways[2]} {
			for victim, elements := range map[int]int{0: 100, 2: 2_000_000} {
				t.Run(fmt.Sprintf("rank %d %s over %s with %d elements", victim, test.name, w.name, elements), func(t *testing.T) {
					ranks := startRanks(t, 3, func(a *assignment) {
						a.Transport, a.Timeout, a.Elements = w.transport, test.timeout, elements
						if w.hosts != nil {
							a.Host = w.hosts(a.World.Rank)
						}
					})
					for _, p := range ranks {
						p.output.await(t, "joined")
					}
					begin := time.Now()
					if err := ranks[victim].Process.Signal(test.signal); err != nil {
						t.Fatal(err)
					}
					var said []string
					for r, p := range ranks {
						if r == victim {
							continue
						}
						err := p.Wait()
						said = append(said, p.said())
						who := fmt.Sprintf(": rank %d ", victim)
						if err == nil || !strings.Contains(said[len(said)-1], who) || !strings.Contains(said[len(said)-1], test.want) || !strings.Contains(said[len(said)-1], "all-reduce ") {
							t.Errorf("rank %d: %v, %q; want%s%s", r, err, p.output.String(), who, test.want)
						}
					}
					if d := time.Since(begin); d > test.within {
						t.Errorf("the others ended after %v, with a timeout of %v", d, test.timeout)
					}
					if _, a, _ := strings.Cut(said[0], ": "); !strings.HasSuffix(said[1], a) {
						t.Errorf("they differ: %q", said)
					}
					_ = ranks[victim].Process.Kill()
					_ = ranks[victim].Wait()
				})
			}
		}
	}
	if after := sharedFiles(t); after != before {
		t.Errorf("/dev/shm had %q, now %q", before, after)
	}
}

// said returns the last line of a rank's output.
func (p *process) said() string {
	lines := strings.Split(strings.TrimSpace(p.output.String()), "\n")
	return lines[len(lines)-1]
}

// sharedFiles lists scalebench's files in /dev/shm.
func sharedFiles(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.Contains(e.Name(), "scalebench") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}
