package world

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lookup(environ []string) func(string) string {
	m := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		m[name] = value
	}
	return func(name string) string { return m[name] }
}

func TestEnvironRoundTrip(t *testing.T) {
	w := World{Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, Node: 1, Nodes: 2, Hosts: []string{"a", "b"},
		Address: "10.0.0.1", Port: 29500, Interface: "ib0", Restart: 2, JobID: "77"}
	got, err := FromEnviron(lookup(w.Environ()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, got); d != "" {
		t.Error(d)
	}
}

// The variables are those that a task of a 2-node step saw on a real Slurm
// 22.05.
func TestFromSlurm(t *testing.T) {
	environ := []string{"SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_STEP_NUM_NODES=2",
		"SLURM_STEP_NODELIST=node[1-2]", "SLURM_JOB_ID=12", "MASTER_ADDR=10.213.0.11", "MASTER_PORT=40001", "SCALEBENCH_INTERFACE=eth0"}
	got, err := FromSlurm(lookup(environ))
	if err != nil {
		t.Fatal(err)
	}
	want := World{Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, Node: 1, Nodes: 2, Hosts: []string{"node1", "node2"},
		Address: "10.213.0.11", Port: 40001, Interface: "eth0", JobID: "12"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, c := range map[string]struct{ add, want string }{
		"uneven":         {"SLURM_STEP_NUM_TASKS=5", "5 tasks on 2 nodes"},
		"host name":      {"MASTER_ADDR=node1", `MASTER_ADDR = "node1" is not an IP address`},
		"rank too large": {"SLURM_PROCID=4", "rank 4 is outside 0 to 3"},
		"no count":       {"SLURM_RESTART_COUNT=x", `SLURM_RESTART_COUNT = "x" is not a count`},
		"missing":        {"SLURM_LOCALID=", "SLURM_LOCALID is not set"},
	} {
		if _, err := FromSlurm(lookup(append(environ, c.add))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	ip, err := RoutableAddress("lo")
	if err != nil || !ip.IsLoopback() {
		t.Errorf("lo has %v, %v", ip, err)
	}
	if _, err := InterfaceAddress("nosuch0"); err == nil || !strings.Contains(err.Error(), "lo") {
		t.Errorf("%v does not list this host's interfaces", err)
	}
	if ip, err = RoutableAddress(""); err != nil {
		t.Fatal(err)
	}
	port, err := FreePort(ip)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip, Port: port})
	if err != nil {
		t.Fatalf("the free port %d cannot be used: %v", port, err)
	}
	l.Close()
}

// A process that is started once per node has the place of the node's first rank, and passes no rank on to the
// ranks that it starts.
func TestPerNode(t *testing.T) {
	w := World{Rank: 1, Size: 2, LocalSize: 1, Node: 1, Nodes: 2}.PerNode(4)
	if w.Rank != 4 || w.Size != 8 || w.LocalRank != 0 || w.LocalSize != 4 || w.Node != 1 || w.Nodes != 2 {
		t.Errorf("%+v", w)
	}
	got := WithoutRank([]string{"A=1", "RANK=0", "LOCAL_RANK=0", "RANK=7", "RANKS=2", "WORLD_SIZE=8"})
	if diff := cmp.Diff([]string{"A=1", "RANKS=2", "WORLD_SIZE=8"}, got); diff != "" {
		t.Error(diff)
	}
}
