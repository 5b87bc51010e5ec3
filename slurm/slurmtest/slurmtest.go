// Package slurmtest starts a real Slurm cluster on this machine for tests. It runs the daemons of the
// distribution's packages in a temporary folder, with fake GPUs and accounting. If the machine lets root create
// namespaces, each node has its own host name, address and ports. The script cluster.sh does the work and can
// also be run from a shell:
//
//	bash slurm/slurmtest/cluster.sh up /tmp/demo && . /tmp/demo/env.sh
//	bash slurm/slurmtest/cluster.sh down /tmp/demo
//
// Nothing is simulated. A missing daemon is an error that says what to install; tests never skip.
package slurmtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/slurm"
)

//go:embed cluster.sh
var script []byte

// Options configure a cluster. The zero value has four nodes with four CPUs, 4000 MB and four GPUs each, and
// accounting.
type Options struct {
	Nodes        int    // 0 means 4
	Plain        bool   // no namespaces, even if the machine allows them
	NoAccounting bool   // neither slurmdbd nor a database
	Watts        int    // node N draws N times this power, by a counter that Slurm reads; 0 means no counter. Needs namespaces
	Conf         string // further lines of slurm.conf
	Path         string // PATH of Slurm's programs; "" means this process's
}

// A Cluster is a running cluster. Its partitions are main (the default), short (5 minutes at most), scavenge
// (preempted by the others, requeued) and closed (down). Its account is bench.
type Cluster struct {
	Dir string // holds everything the daemons write; logs are in log/
	// Namespaces is set if every node has its own host name and address. Otherwise nodes share this machine's,
	// and tests of communication between nodes prove nothing.
	Namespaces bool

	path   string // Options.Path
	script string
	hold   *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer
}

// Start starts a cluster that is shut down when the test ends.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	c, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Open starts a cluster. Close shuts it down; so does the end of this process for any reason.
func Open(o Options) (*Cluster, error) {
	// TMPDIR may be longer than the limit for a unix socket's path.
	dir, err := os.MkdirTemp("/tmp", "slurm")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // munged requires that all users can reach its socket
		return nil, err
	}
	if o.Path == "" {
		o.Path = os.Getenv("PATH")
	}
	c := &Cluster{Dir: filepath.Join(dir, "c"), path: o.Path, script: filepath.Join(dir, "cluster.sh"), stderr: new(bytes.Buffer)}
	if err := os.WriteFile(c.script, script, 0o644); err != nil {
		return nil, err
	}
	nodes := o.Nodes
	if nodes == 0 {
		nodes = 4
	}
	c.hold = exec.Command("bash", c.script, "hold", c.Dir, strconv.Itoa(nodes))
	c.hold.Env = append(slurm.Scrub(os.Environ()), "PATH="+o.Path, "CLUSTER_CONF="+o.Conf)
	if o.Watts > 0 {
		c.hold.Env = append(c.hold.Env, "CLUSTER_WATTS="+strconv.Itoa(o.Watts))
	}
	if o.Plain {
		c.hold.Env = append(c.hold.Env, "CLUSTER_NET=plain")
	}
	if o.NoAccounting {
		c.hold.Env = append(c.hold.Env, "CLUSTER_ACCOUNTING=no")
	}
	// An interrupt from the terminal must not end the script before it has shut down the daemons; it notices
	// the end of this process by its standard input.
	c.hold.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.hold.Stderr = c.stderr
	stdout, err := c.hold.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.hold.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.hold.Start(); err != nil {
		return nil, err
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
		err := c.hold.Wait()
		return nil, fmt.Errorf("no Slurm cluster (%v), logs are in %s:\n%s", err, c.Dir, c.stderr)
	}
	settings, err := os.ReadFile(filepath.Join(c.Dir, "settings"))
	if err != nil {
		c.Close()
		return nil, err
	}
	c.Namespaces = bytes.Contains(settings, []byte("net=namespaces"))
	return c, nil
}

// Close ends all jobs and daemons and removes the cluster's folder.
func (c *Cluster) Close() error {
	c.stdin.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.hold.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("ending the Slurm cluster in %s: %w\n%s", c.Dir, err, c.stderr)
		}
		return os.RemoveAll(filepath.Dir(c.Dir))
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("the Slurm cluster in %s does not end; bash %s down %s", c.Dir, c.script, c.Dir)
	}
}

// Env returns this process's environment, changed so that Slurm's commands use the cluster.
func (c *Cluster) Env() []string {
	env := append(slurm.Scrub(os.Environ()), "SLURM_CONF="+filepath.Join(c.Dir, "etc", "slurm.conf"))
	return append(env, "PATH="+filepath.Join(c.Dir, "bin")+":"+c.path)
}

// Stop ends a daemon: munged, mariadbd, slurmdbd, slurmctld or slurmd-nodeN.
// signal is TERM, or KILL for a crash.
func (c *Cluster) Stop(daemon, signal string) error { return c.verb("stop", daemon, signal) }

// Signal sends a daemon a signal: STOP makes it hang, CONT resumes it.
func (c *Cluster) Signal(daemon, signal string) error { return c.verb("signal", daemon, signal) }

// Restart starts a daemon that was stopped.
func (c *Cluster) Restart(daemon string) error { return c.verb("start", daemon) }

// CrashNode kills everything on a node at once, like a kernel panic.
func (c *Cluster) CrashNode(node string) error { return c.verb("crash", node) }

// SilenceNode is CrashNode without closing the node's connections: they stay open at the other end, as after a
// power cut.
func (c *Cluster) SilenceNode(node string) error { return c.verb("silence", node) }

// BootNode restarts a crashed node.
func (c *Cluster) BootNode(node string) error { return c.verb("boot", node) }

func (c *Cluster) verb(verb string, args ...string) error {
	cmd := exec.Command("bash", append([]string{c.script, verb, c.Dir}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+c.path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster.sh %s %s: %w\n%s", verb, strings.Join(args, " "), err, out)
	}
	return nil
}
