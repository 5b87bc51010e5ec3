//go:build slurm

package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/scalebench/scalebench/slurm"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// diverse configures a cluster as heterogeneous as real ones: different nodes, typed GPUs, nodes that are down,
// memory reserved for the system, partitions restricted to some accounts, and a drained one.
const diverse = `NodeName=big[1-2] NodeAddr=10.213.0.[201-202] Port=21003 CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=16000 MemSpecLimit=1000 Gres=gpu:a100:2 Feature=a100,ib State=DOWN Reason="power supply"
PartitionName=mixed Nodes=node1,big1 MaxTime=2-00:00:00 MaxNodes=2 AllowAccounts=bench,physics
PartitionName=theirs Nodes=big[1-2] AllowAccounts=physics
PartitionName=draining Nodes=node4 State=DRAIN`

// TestDescribeRecorded checks a real cluster's description against the facts that the recordings are checked
// against, so that the recordings stay up to date.
func TestDescribeRecorded(t *testing.T) {
	c := slurmtest.Start(t, slurmtest.Options{Conf: diverse})
	dir := t.TempDir()
	for _, name := range []string{"scontrol", "sacctmgr"} {
		write(t, filepath.Join(dir, name), fmt.Sprintf(`#!/bin/bash
log=%[1]s/$(date +%%s%%N)
{ echo "$ %[2]s${*:+ ${*@Q}}"; } >$log.command
%[3]s/bin/%[2]s "$@" >$log.stdout 2>$log.stderr
echo $? >$log.exit
cat $log.stdout; cat $log.stderr >&2; exit "$(cat $log.exit)"
`, dir, name, c.Dir), 0o755)
	}
	described, err := (&slurm.Client{Env: append(c.Env(), "PATH="+dir+":"+os.Getenv("PATH"))}).Describe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	checkDescription(t, described)
	commands, err := filepath.Glob(filepath.Join(dir, "*.command"))
	if err != nil || len(commands) != len(describing) {
		t.Fatalf("%d calls, not %d (%v)", len(commands), len(describing), err)
	}
	if !*record {
		return
	}
	for i, command := range commands { // in the order of Describe's calls
		a := &txtar.Archive{Comment: []byte(strings.ReplaceAll(read(t, command), c.Dir, "DIR"))}
		for _, f := range []string{"stdout", "stderr", "exit"} {
			text := read(t, strings.TrimSuffix(command, "command")+f)
			a.Files = append(a.Files, txtar.File{Name: f, Data: []byte(strings.ReplaceAll(text, c.Dir, "DIR"))})
		}
		write(t, filepath.Join("testdata", "transcripts", describing[i]+".txtar"), string(txtar.Format(a)), 0o644)
	}
}

func TestDescribeWithoutAccounting(t *testing.T) {
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1, NoAccounting: true})
	d, err := (&slurm.Client{Env: c.Env()}).Describe(context.Background())
	if err != nil || len(d.Partitions) != 4 || d.Accounts != nil || !strings.Contains(d.AccountsUnknown, "no accounting storage") {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTestOnlySlurm(t *testing.T) {
	ok, dir := job(t, "t-only", 2, 1, "true")
	script := filepath.Join(dir, "job.sh")
	ask := func(s slurm.Script) (string, error) {
		var b strings.Builder
		if err := s.Render(&b); err != nil {
			t.Fatal(err)
		}
		write(t, script, b.String(), 0o755)
		return client.TestOnly(context.Background(), script)
	}
	said, err := ask(ok)
	if err != nil || !strings.Contains(said, "to start at") || strings.HasPrefix(said, "sbatch:") {
		t.Errorf("%q, %v", said, err)
	}
	if jobs, err := client.Queue(context.Background(), slurm.Filter{Names: []string{"t-only"}}); err != nil || len(jobs) != 0 {
		t.Errorf("something was submitted: %+v, %v", jobs, err)
	}
	ok.Nodes = 9
	var refused *slurm.RefusedError
	if _, err = ask(ok); !errors.As(err, &refused) || refused.Script != script || !strings.Contains(err.Error(), "Node count specification invalid") {
		t.Errorf("nine nodes: %v", err)
	}
}
