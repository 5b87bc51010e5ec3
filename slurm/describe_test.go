package slurm_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/scalebench/scalebench/slurm"
)

// describing lists the recordings of Client.Describe, in the order of its calls.
var describing = []string{"scontrol-config", "scontrol-partitions", "scontrol-nodes", "sacctmgr-associations", "sacctmgr-default"}

// checkDescription compares a description with the configuration of the cluster that was started for it
// (slurmtest's, and diverse).
func checkDescription(t *testing.T, d *slurm.Description) {
	t.Helper()
	if d.Name != "bench" || d.Enforce != "ALL" || !strings.Contains(d.Version, ".") || d.AccountsUnknown != "" {
		t.Errorf("name %q, enforce %q, version %q, %q", d.Name, d.Enforce, d.Version, d.AccountsUnknown)
	}
	day, minutes, two := 24*time.Hour, 5*time.Minute, 2
	twoDays := 2 * day
	all := []string{"node1", "node2", "node3", "node4", "big1", "big2"}
	want := []slurm.Partition{
		{Name: "main", Default: true, State: "UP", Nodes: all, MaxTime: &day},
		{Name: "short", State: "UP", Nodes: all, MaxTime: &minutes},
		{Name: "scavenge", State: "UP", Nodes: all, MaxTime: &day},
		{Name: "closed", State: "DOWN", Nodes: all},
		{Name: "mixed", State: "UP", Nodes: []string{"node1", "big1"}, MaxTime: &twoDays, MaxNodes: &two, AllowAccounts: []string{"bench", "physics"}},
		{Name: "theirs", State: "UP", Nodes: []string{"big1", "big2"}, AllowAccounts: []string{"physics"}},
		{Name: "draining", State: "DRAIN", Nodes: []string{"node4"}},
	}
	byName := cmp.Transformer("sort", func(list []string) map[string]bool { // Slurm uses a sort order that differs from Go's
		m := map[string]bool{}
		for _, s := range list {
			m[s] = true
		}
		return m
	})
	if diff := cmp.Diff(want, d.Partitions, byName); diff != "" {
		t.Errorf("partitions (-want +got):\n%s", diff)
	}
	if len(d.Nodes) != 6 {
		t.Fatalf("%d nodes", len(d.Nodes))
	}
	n := d.Node("node3")
	if n == nil || !n.Usable() || n.CPUs != 4 || n.Threads != 1 || n.MemoryMB != 4000 ||
		!reflect.DeepEqual(n.GPUs, []slurm.GPUs{{Count: 4}}) || len(n.Partitions) != 4 {
		t.Errorf("%+v", n)
	}
	n = d.Node("big2")
	if n == nil || n.Usable() || n.CPUs != 8 || n.Threads != 2 || n.MemoryMB != 15000 || !strings.HasPrefix(n.Reason, "power supply") ||
		!reflect.DeepEqual(n.GPUs, []slurm.GPUs{{Type: "a100", Count: 2}}) || !reflect.DeepEqual(n.Features, []string{"a100", "ib"}) {
		t.Errorf("%+v", n)
	}
	if len(d.NodesOf(d.Partition("mixed"))) != 2 || d.Partition("") == nil || d.Partition("").Name != "main" || d.Partition("none") != nil {
		t.Error("partitions are not found by their names")
	}
	// Root has its own account in addition to bench, the default.
	for partition, want := range map[string]string{"main": "bench", "mixed": "bench", "theirs": ""} {
		got, known := d.AccountsIn(d.Partition(partition))
		if !known || (len(got) > 0) != (want != "") || len(got) > 0 && got[0] != want {
			t.Errorf("accounts in %s: %q, %v", partition, got, known)
		}
	}
}

// replayed returns a client whose commands print the recorded answers to Describe.
func replayed(t *testing.T, but map[string]string) *slurm.Client {
	t.Helper()
	dir := t.TempDir()
	for _, name := range describing {
		text := readTranscript(t, name).stdout
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	scripts := map[string]string{
		"scontrol": `case "$2" in config) cat DIR/scontrol-config;; partition) cat DIR/scontrol-partitions;; node) cat DIR/scontrol-nodes;; esac`,
		"sacctmgr": `case "$5" in associations) cat DIR/sacctmgr-associations;; user) cat DIR/sacctmgr-default;; esac`,
	}
	maps.Copy(scripts, but)
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", dir)+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &slurm.Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
}

func TestDescribeReplayed(t *testing.T) {
	d, err := replayed(t, nil).Describe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	checkDescription(t, d)

	d, err = replayed(t, map[string]string{"sacctmgr": "echo 'sacctmgr: error: Problem talking to the database: Connection refused' >&2; exit 1"}).Describe(context.Background())
	if err != nil || d.Accounts != nil || !strings.Contains(d.AccountsUnknown, "Connection refused") || len(d.Partitions) != 7 {
		t.Errorf("without sacctmgr: %v, %+v", err, d)
	}

	_, err = replayed(t, map[string]string{"scontrol": "echo 'scontrol: fatal: Could not establish a configuration source' >&2; exit 1"}).Describe(context.Background())
	var gone *slurm.UnreachableError
	if !errors.As(err, &gone) {
		t.Errorf("without a configuration: %v", err)
	}
}

func TestTestOnlySubmitsNothing(t *testing.T) {
	c := replayed(t, map[string]string{"sbatch": "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"})
	_, err := c.TestOnly(context.Background(), "job.sh")
	var gone *slurm.UnreachableError
	if !errors.As(err, &gone) || gone.MaybeQueued {
		t.Errorf("%#v", err)
	}
}

// Forms of Gres from slurm.conf(5) and real clusters.
func TestNodeGPUs(t *testing.T) {
	for gres, want := range map[string][]slurm.GPUs{
		"(null)":                              nil,
		"gpu":                                 {{Count: 1}},
		"gpu:8":                               {{Count: 8}},
		"gpu:a100":                            {{Type: "a100", Count: 1}},
		"gpu:a100:4(S:0-1)":                   {{Type: "a100", Count: 4}},
		"gpu:a100:2(S:0,2),gpu:a100:2(S:1,3)": {{Type: "a100", Count: 4}},
		"gpu:tesla:2,gpu:kepler:1,mps:400,bandwidth:lustre:no_consume:4G": {{Type: "tesla", Count: 2}, {Type: "kepler", Count: 1}},
		"gpu:a100_1g.5gb:7(S:0)": {{Type: "a100_1g.5gb", Count: 7}},
	} {
		nodes, err := slurm.ParseNodes([]byte("NodeName=n State=IDLE CPUTot=8 RealMemory=10 Gres=" + gres + " NodeAddr=n"))
		if err != nil || len(nodes) != 1 {
			t.Errorf("%s: %+v, %v", gres, nodes, err)
			continue
		}
		if diff := cmp.Diff(want, nodes[0].GPUs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", gres, diff)
		}
	}
}

func TestNodeUsable(t *testing.T) {
	for state, want := range map[string]bool{
		"IDLE": true, "ALLOCATED": true, "MIXED+PLANNED": true, "IDLE+CLOUD+POWERED_DOWN": true, "COMPLETING": true, "IDLE~": true,
		"DOWN": false, "DOWN*": false, "IDLE*": false, "IDLE+DRAIN": false, "DOWN+NOT_RESPONDING": false, "MIXED+DRAIN": false, "": false,
	} {
		if got := (slurm.Node{State: state}).Usable(); got != want {
			t.Errorf("%q: %v", state, got)
		}
	}
}

// Lines that cannot be parsed are reported, and the rest is returned.
func TestDescribeBadLines(t *testing.T) {
	parts, err := slurm.ParsePartitions([]byte("PartitionName=a State=UP MaxTime=tomorrow\nPartitionName=b State=UP MaxTime=30:00 MaxNodes=5\nPartitionName=c MaxNodes=1\nnonsense=1\n"))
	if len(parts) != 1 || parts[0].Name != "b" || *parts[0].MaxTime != 30*time.Minute || *parts[0].MaxNodes != 5 {
		t.Errorf("%+v", parts)
	}
	for _, want := range []string{`line 1: PartitionName "a": MaxTime="tomorrow" is not a length of time`, `line 3: PartitionName "c": no State`, "line 4: does not begin with PartitionName="} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if _, err := slurm.ParseAccounts([]byte("bench\n"), nil); err == nil {
		t.Error("an association without a partition field was read")
	}
}

// For any output of scontrol: no panic, no partition or node without a name and state, no negative count, and
// at most as many entries as lines.
func FuzzDescribe(f *testing.F) {
	for _, name := range describing {
		f.Add(readTranscript(f, name).stdout)
	}
	f.Add("PartitionName=x State=UP Nodes=n[1-3] MaxTime=UNLIMITED MaxNodes=-1")
	f.Add("NodeName=x State=IDLE Gres=gpu:a:b:3,gpu:((2) Reason=State=DOWN it says")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		parts, _ := slurm.ParsePartitions([]byte(text))
		for _, p := range parts {
			if p.Name == "" || p.State == "" || p.MaxTime != nil && *p.MaxTime < 0 || p.MaxNodes != nil && *p.MaxNodes < 0 {
				t.Errorf("%+v", p)
			}
		}
		nodes, _ := slurm.ParseNodes([]byte(text))
		for _, n := range nodes {
			if n.Name == "" || n.State == "" || n.CPUs < 0 || n.MemoryMB < 0 || n.Threads < 1 {
				t.Errorf("%+v", n)
			}
			for _, g := range n.GPUs {
				if g.Count < 0 {
					t.Errorf("%+v", n)
				}
			}
		}
		accounts, _ := slurm.ParseAccounts([]byte(text), nil)
		if len(parts) > lines || len(nodes) > lines || len(accounts) > lines {
			t.Errorf("%d lines, %d partitions, %d nodes, %d accounts", lines, len(parts), len(nodes), len(accounts))
		}
	})
}
