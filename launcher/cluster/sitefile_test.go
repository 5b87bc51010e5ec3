package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

var update = flag.Bool("update", false, "rewrite testdata/diverse.toml")

var origin = cluster.Origin{Date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Interfaces: []cluster.Interface{{Name: "ib0", Address: "10.1.0.1"}}}

// recorded returns the recorded output of a real cluster.
func recorded(t testing.TB) (partitions, nodes string) {
	t.Helper()
	text := map[string]string{}
	for _, name := range []string{"scontrol-partitions", "scontrol-nodes"} {
		a, err := txtar.ParseFile(filepath.Join("..", "..", "slurm", "testdata", "transcripts", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		text[name] = string(a.Files[0].Data)
	}
	return text["scontrol-partitions"], text["scontrol-nodes"]
}

func describe(partitions, nodes string) *slurm.Description {
	d := &slurm.Description{Name: "bench", Version: "22.05.8"}
	d.Partitions, _ = slurm.ParsePartitions([]byte(partitions))
	d.Nodes, _ = slurm.ParseNodes([]byte(nodes))
	return d
}

func write(t testing.TB, d *slurm.Description) (string, *study.Site) {
	t.Helper()
	var b strings.Builder
	if err := cluster.WriteSiteFile(&b, d, origin); err != nil {
		t.Fatal(err)
	}
	site, err := study.ParseSite("site.toml", []byte(b.String()))
	if err != nil {
		t.Fatalf("not a valid site file: %v\n%s", err, b.String())
	}
	return b.String(), site
}

// The recorded cluster: four nodes with 4 CPUs, 4000 MB and 4 GPUs, and two that are down, with 8 threads,
// 16000 MB (1000 of them for the system) and two a100, in partitions as slurm/describe_slurm_test.go defines
// them.
func TestWriteRecorded(t *testing.T) {
	d := describe(recorded(t))
	d.Accounts = []slurm.Account{{Name: "bench", Default: true}, {Name: "other"}}
	text, site := write(t, d)
	const day = study.Duration(24 * time.Hour)
	smallest := study.Partition{CPUsPerNode: 4, GPUsPerNode: 2, MemoryPerNode: 4000 << 20}
	of := func(name string, nodes int, limit study.Duration) study.Partition {
		p := smallest
		p.Name, p.MaxNodes, p.MaxTime = name, nodes, limit
		return p
	}
	want := []study.Partition{of("main", 6, day), of("short", 6, day/288), of("scavenge", 6, day), of("mixed", 2, 2*day)}
	if diff := cmp.Diff(want, site.Partitions); diff != "" {
		t.Errorf("partitions (-want +got):\n%s", diff)
	}
	if site.Name != "bench" || site.Account != "" || site.Interface != "" {
		t.Errorf("%+v", site)
	}
	for _, want := range []string{
		"# Not used: the partition is DOWN\n", "# Not used: the partition is DRAIN\n",
		"# Not used: its 2 nodes cannot take jobs (big1 is DOWN",
		"# name = \"closed\"\n", "# At present 2 of its 6 nodes cannot take jobs (big1 is DOWN",
		"#   4 × 4 CPUs, 4000 MiB, 4 GPUs (node1, …)\n", "#   2 × 8 CPUs, 15000 MiB, 2 GPUs a100 (big1, …), features a100, ib\n",
		"hardware threads, up to 2 a core", "# Accounts that you may use: bench, other\n", "# interface = \"ib0\"  # 10.1.0.1\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the file does not say %q", want)
		}
	}
	golden := filepath.Join("testdata", "diverse.toml")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), text); diff != "" {
		t.Errorf("differs from %s (-want +got); go test ./launcher/cluster -update\n%s", golden, diff)
	}
}

func TestWriteAccounts(t *testing.T) {
	one := func(accounts []slurm.Account, allow string) (string, *study.Site) {
		d := describe("PartitionName=p State=UP Nodes=n1 Default=NO AllowAccounts="+allow, "NodeName=n1 State=IDLE CPUTot=8 RealMemory=100 Gres=gpu:a100:4(S:0-1)")
		d.Accounts, d.AccountsUnknown = accounts, "sacctmgr: not found"
		return write(t, d)
	}
	text, site := one(nil, "physics")
	if len(site.Partitions) != 1 || site.Partitions[0].Account != "" || !strings.Contains(text, "sacctmgr: not found") {
		t.Errorf("accounts unknown: %s", text)
	}
	if p := site.Partitions[0]; p.GPUType != "a100" || p.GPUsPerNode != 4 || p.MaxTime != 0 || p.MaxNodes != 1 {
		t.Errorf("%+v", p)
	}
	_, site = one([]slurm.Account{{Name: "bench", Default: true}, {Name: "physics"}}, "physics")
	if len(site.Partitions) != 1 || site.Partitions[0].Account != "physics" {
		t.Errorf("the default account may not: %+v", site.Partitions)
	}
	text, site = one([]slurm.Account{{Name: "bench", Default: true}}, "physics")
	if len(site.Partitions) != 0 || !strings.Contains(text, "Not used: none of your accounts may use it; allowed: physics") {
		t.Errorf("no account may: %s", text)
	}
}

// For any description, the file is valid and names only partitions that are up in the cluster.
func FuzzWrite(f *testing.F) {
	partitions, nodes := recorded(f)
	f.Add(partitions, nodes, "bench")
	f.Add("PartitionName=a\"b\\ State=UP Nodes=n\x01 AllowGroups=\x7f\u2028", "NodeName=n\x01 State=IDLE Gres=gpu:\xff:3 Reason=\r", "")
	f.Fuzz(func(t *testing.T, partitions, nodes, account string) {
		d := describe(partitions, nodes)
		d.AccountsUnknown = account
		if account != "" {
			d.Accounts = []slurm.Account{{Name: account, Default: true}}
		}
		_, site := write(t, d)
		up := 0
		for _, p := range d.Partitions {
			if p.State == "UP" {
				up++
			}
		}
		if len(site.Partitions) > up {
			t.Errorf("%d partitions of %d that are up", len(site.Partitions), up)
		}
	})
}

// A cluster of 10,000 nodes of two kinds in 20 partitions.
func BenchmarkWrite(b *testing.B) {
	var partitions, nodes strings.Builder
	for i := range 20 {
		fmt.Fprintf(&partitions, "PartitionName=p%d State=UP Nodes=n[1-10000] MaxTime=1-00:00:00\n", i)
	}
	for i := range 10000 {
		fmt.Fprintf(&nodes, "NodeName=n%d State=IDLE CPUTot=%d RealMemory=256000 AvailableFeatures=ib Gres=gpu:a100:4(S:0-1)\n", i+1, 64+64*(i%2))
	}
	b.ReportAllocs()
	for b.Loop() {
		write(b, describe(partitions.String(), nodes.String()))
	}
}

// Slices and whole GPUs of one node are not added up: 2 slices and 2 GPUs are not 4 devices of one type.
func TestWriteUnlikeGPUs(t *testing.T) {
	const partition = "PartitionName=%s AllowAccounts=ALL Default=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 State=UP TotalNodes=1 Nodes=%s\n"
	const node = "NodeName=%s Arch=x86_64 CPUTot=64 Gres=%s NodeAddr=a NodeHostName=a OS=Linux RealMemory=500000 State=IDLE ThreadsPerCore=1 Partitions=%s\n"
	text, site := write(t, describe(fmt.Sprintf(partition, "mixed", "g1")+fmt.Sprintf(partition, "mig", "m1"),
		fmt.Sprintf(node, "g1", "gpu:h100_4g.40gb:2(S:0),gpu:h100:2(S:1)", "mixed")+fmt.Sprintf(node, "m1", "gpu:a100_1g.5gb:14(S:0-1)", "mig")))
	for _, want := range []string{"# gpus_per_node = 2\n# gpu_type = \"h100\"\n", "# gpus_per_node = 2\n# gpu_type = \"h100_4g.40gb\"\n", "# a100_1g.5gb are slices of a GPU (MIG)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if mixed, mig := site.Partitions[0], site.Partitions[1]; mixed.GPUsPerNode != 0 || mixed.GPUType != "" || mig.GPUsPerNode != 14 || mig.GPUType != "a100_1g.5gb" {
		t.Errorf("%+v\n%+v", mixed, mig)
	}
}
