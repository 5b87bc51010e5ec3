package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

func pointer[T any](v T) *T { return &v }

// healthy returns a probe job on two nodes with two tasks each and no problems.
func healthy(t *testing.T) *job {
	t.Helper()
	dir := rundir.Probe(t.TempDir())
	if err := os.Mkdir(dir.Begun(), 0o700); err != nil {
		t.Fatal(err)
	}
	j := &job{use: use{partition: study.Partition{Name: "main"}}, dir: dir, id: "7",
		asked:  probe.Question{Python: "/py", Imports: []string{"torch"}},
		script: slurm.Script{Nodes: 2, TasksPerNode: 2, CPUsPerTask: 2, GPUsPerNode: 2, Worker: "/w"},
		state:  &slurm.Job{State: slurm.Completed, Word: "COMPLETED"},
		clocks: []nodeClock{{rounds: 5, best: probe.Clocks{Offset: 0.001, RoundTrip: 0.004}}, {rounds: 5, best: probe.Clocks{Offset: -0.5, RoundTrip: 0.004}}}}
	for rank := range 4 {
		node, local := rank/2, rank%2
		a := &probe.Answer{Facts: probe.Facts{Host: fmt.Sprintf("n%d", node+1), Version: "v1", CPUs: []int{2 * local, 2*local + 1},
			GPUs: probe.GPUs{Visible: pointer("0,1"), List: []string{"GPU 0: X", "GPU 1: X"}}},
			Rank: rank, Node: node, LocalRank: local, Phase: probe.Done, Link: probe.Link{Name: "ib0", Address: fmt.Sprintf("10.0.0.%d", node+1), BitPerSec: pointer(int64(10e9))}}
		if local == 0 {
			a.Files = &probe.Files{Rounds: 5}
			a.Python = &probe.Trial{Name: "/py", Version: "3.11", Seconds: pointer(0.5)}
			a.Imports = []probe.Trial{{Name: "torch", Version: "2.5", Seconds: pointer(4.0)}}
		}
		if rank == 2 {
			a.Exchange = &probe.Exchange{RoundTrip: 2e-5, RoundTripMedian: 3e-5, Trips: 200, Offset: 1e-6, Sent: 1.1e9, Received: 1.2e9}
		}
		j.answers = append(j.answers, a)
	}
	return j
}

// of returns the findings of one check.
func of(list []Finding, check string) (found []Finding) {
	for _, f := range list {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// Problems come first, by severity; what is ok takes one line for each place that was checked.
func TestFolded(t *testing.T) {
	list := []Finding{{"worker", "w", OK, "", ""}, {"GPU", "h", NotTested, "no GPU", ""}, {"scheduler", "", OK, "", ""}, {"partition", "a", OK, "", ""},
		{"limits", "a", Warn, "narrow", ""}, {"probe job", "b", NotTested, "no job", ""}, {"partition", "c", OK, "", ""},
		{"probe job", "a", OK, "", ""}, {"clock", "n1", OK, "", ""}, {"clock", "n2", Fail, "late", ""}, {"clock", "n3", OK, "", ""}}
	want := []Finding{{"clock", "n2", Fail, "late", ""}, {"limits", "a", Warn, "narrow", ""}, {"GPU", "h", NotTested, "no GPU", ""}, {"probe job", "b", NotTested, "no job", ""},
		{"this host", "", OK, "1 check: worker", ""}, {"Slurm", "", OK, "3 checks: scheduler, partition", ""}, {"compute nodes", "", OK, "3 checks: probe job, clock", ""}}
	if got := Folded(list); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestJudgeHealthy(t *testing.T) {
	list := healthy(t).judge(time.Minute)
	for _, f := range list {
		if f.Verdict != OK || f.Found == "" {
			t.Errorf("%+v", f)
		}
	}
	for check, want := range map[string]string{
		"probe job": "job 7: 4 tasks on 2 nodes answered", "run folder": "written here, read there, and back: 4 ms (shortest of 5)",
		"worker": "/w started in 4 of 4 tasks: v1", "interface": "ib0 10.0.0.1, 10 Gbit/s", "clock": "+1 ms against this host, ± 2 ms",
		"network": "1.1 GB/s out, 1.2 GB/s in (one TCP stream); round trip 20 µs, median 30 µs",
		"CPU set": "task 0: CPUs 0-1, task 1: CPUs 2-3 on n1", "interpreter": "/py 3.11 in 500 ms", "import": "torch 2.5 in 4 s",
		"GPU": "task 0 on n1 sees 2 (CUDA_VISIBLE_DEVICES=0,1)",
	} {
		if found := of(list, check); len(found) == 0 || !strings.HasPrefix(found[0].Found, want) {
			t.Errorf("%s: %+v, want %q", check, found, want)
		}
	}
}

// Each fault in an otherwise healthy job is reported with its verdict, and no other check fails.
func TestJudgeFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		spoil  func(*job)
		check  string
		result Verdict
		found  string
	}{
		{"clock far off", func(j *job) { j.clocks[1].best.Offset = -1.5 }, "clock", Warn, "−1.5 s against this host, ± 2 ms"},
		{"clock perhaps off", func(j *job) { j.clocks[1].best = probe.Clocks{Offset: 30, RoundTrip: 61} }, "run folder", Warn, "and back: 61 s"},
		{"files never seen", func(j *job) {
			j.clocks[1], j.answers[2].Files = nodeClock{err: fmt.Errorf("nothing")}, &probe.Files{Error: "ping-1-0 did not appear on n2 within 1m30s"}
		}, "run folder", Fail, "ping-1-0 did not appear on n2"},
		{"no interface", func(j *job) {
			j.answers[2].Link = probe.Link{Name: "ib0", Error: `no network interface "ib0" on this host; it has: lo`}
		}, "interface", Fail, "it has: lo"},
		{"loopback", func(j *job) { j.answers[0].Link.Address = "127.0.0.1" }, "interface", Fail, "127.0.0.1"},
		{"firewall", func(j *job) { j.answers[2].Exchange = &probe.Exchange{Error: "n2 cannot connect to n1"} }, "network", Fail, "cannot connect"},
		{"slow network", func(j *job) { j.answers[2].Exchange.Received = 1e8 }, "network", Warn, "100 MB/s in"},
		{"other binary", func(j *job) { j.answers[3].Version = "v0" }, "worker", Fail, "v1; v0"},
		{"few CPUs", func(j *job) { j.answers[1].CPUs = []int{3} }, "CPU set", Fail, "cpus_per_worker is 2, but task 1 on n1 may use CPUs 3"},
		{"shared CPUs", func(j *job) { j.answers[3].CPUs = []int{1, 2, 3} }, "CPU set", Warn, "tasks 2 and 3 on n2 share CPUs 1"},
		{"no GPU bound", func(j *job) { j.answers[0].GPUs = probe.GPUs{Error: "no nvidia-smi"} }, "GPU", Fail, "task 0 on n1 has no CUDA_VISIBLE_DEVICES"},
		{"no nvidia-smi", func(j *job) { j.answers[0].GPUs = probe.GPUs{Visible: pointer("1"), Error: "not found"} }, "GPU", Warn, "CUDA_VISIBLE_DEVICES=1; not found"},
		{"no interpreter", func(j *job) { j.answers[2].Python = &probe.Trial{Name: "/py", Error: "no such file"} }, "interpreter", Fail, "/py: no such file"},
		{"slow import", func(j *job) { j.answers[2].Imports[0].Seconds = pointer(90.0) }, "import", Warn, "torch 2.5 in 90 s"},
		{"no framework", func(j *job) { j.answers[2].Imports[0] = probe.Trial{Name: "torch", Error: "No module named 'torch'"} }, "import", Fail, "No module named"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := healthy(t)
			test.spoil(j)
			said := false
			for _, f := range j.judge(time.Minute) {
				right := f.Check == test.check && f.Verdict == test.result && strings.Contains(f.Found, test.found)
				if right && f.Advice == "" {
					t.Errorf("no advice: %+v", f)
				}
				said = said || right
				if f.Verdict == Fail && !right {
					t.Errorf("another check failed too: %+v", f)
				}
			}
			if !said {
				t.Errorf("not reported: %+v", of(j.judge(time.Minute), test.check))
			}
		})
	}
}

// A job that gave no answers, or only some.
func TestJudgeSilence(t *testing.T) {
	bare := func(state *slurm.Job, begun bool) *job {
		j := healthy(t)
		j.answers, j.clocks, j.state = make([]*probe.Answer, 4), make([]nodeClock, 2), state
		if !begun {
			if err := os.Remove(j.dir.Begun()); err != nil {
				t.Fatal(err)
			}
		}
		return j
	}
	for _, test := range []struct {
		name   string
		job    *job
		result Verdict
		found  string
	}{
		{"waits", bare(&slurm.Job{State: slurm.Pending, Word: "PENDING", Reason: "Priority"}, false), NotTested, "job 7 is still PENDING (Priority) after 1m0s"},
		{"waits for ever", bare(&slurm.Job{State: slurm.Pending, Word: "PENDING", Reason: "PartitionTimeLimit"}, false), Fail, "PENDING (PartitionTimeLimit)"},
		{"folder not shared", bare(&slurm.Job{State: slurm.Completed, Word: "COMPLETED"}, false), Fail, "but no file that it wrote is visible in"},
		{"never queued", bare(nil, false), NotTested, "never appeared in the queue"},
		{"hangs", bare(&slurm.Job{State: slurm.Running, Word: "RUNNING"}, true), Fail, "job 7 is RUNNING after 1m0s; task 0 never answered"},
	} {
		list := test.job.judge(time.Minute)
		if f := list[0]; f.Check != "probe job" || f.Verdict != test.result || !strings.Contains(f.Found, test.found) {
			t.Errorf("%s: %+v", test.name, f)
		}
		if Count(list, OK) != 0 {
			t.Errorf("%s: a finding is ok: %+v", test.name, list)
		}
	}

	j := healthy(t)
	j.state = &slurm.Job{State: slurm.Timeout, Word: "TIMEOUT"}
	j.answers[2].Phase, j.answers[2].Python = probe.Networked, nil
	list := j.judge(time.Minute)
	if f := list[0]; f.Verdict != Fail || !strings.Contains(f.Found, `task 2 on n2 stopped after phase "network"`) {
		t.Errorf("%+v", f)
	}
	if f := of(list, "interpreter"); len(f) != 2 || f[1].Verdict != NotTested {
		t.Errorf("%+v", f)
	}

	j = bare(&slurm.Job{State: slurm.Failed, Word: "FAILED"}, true)
	if err := os.WriteFile(j.dir.JobLog(), []byte("line 85: /w: No such file or directory\nscalebench: no address for rank 0 on n1: /w address failed; see above\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := of(j.judge(time.Minute), "worker"); len(f) != 1 || f[0].Verdict != Fail || !strings.Contains(f[0].Found, "/w: No such file") || !strings.Contains(f[0].Advice, "/w must be a program") {
		t.Errorf("%+v", f)
	}
}

// clusterOf describes a cluster of two nodes, one of them larger.
func clusterOf(state string, accounts ...slurm.Account) *slurm.Description {
	day := 24 * time.Hour
	return &slurm.Description{Accounts: accounts,
		Partitions: []slurm.Partition{{Name: "main", Default: true, State: state, Nodes: []string{"a", "b"}, MaxTime: &day}},
		Nodes: []slurm.Node{{Name: "a", State: "IDLE", CPUs: 4, MemoryMB: 4000}, {Name: "b", State: "IDLE", CPUs: 8, MemoryMB: 8000,
			GPUs: []slurm.GPUs{{Type: "a100", Count: 4}}}}}
}

func TestCheckPartition(t *testing.T) {
	bench := slurm.Account{Name: "bench", Default: true}
	point := study.Point{Nodes: 2, WorkersPerNode: 2, Resources: study.Resources{CPUsPerWorker: 2, Time: study.Duration(time.Hour)}}
	for _, test := range []struct {
		name    string
		cluster *slurm.Description
		site    study.Partition
		account string
		open    bool
		want    string // CHECK RESULT FOUND
	}{
		{"well", clusterOf("UP", bench), study.Partition{Name: "main", MaxNodes: 2, CPUsPerNode: 4}, "", true, "partition ok UP, 2 of 2 nodes can take jobs"},
		{"default", clusterOf("UP", bench), study.Partition{}, "BENCH", true, "account ok BENCH"},
		{"unknown", clusterOf("UP"), study.Partition{Name: "gpu"}, "", false, "partition fail the cluster has no such partition; it has: main"},
		{"closed", clusterOf("DOWN"), study.Partition{Name: "main"}, "", false, "partition fail DOWN"},
		{"too many nodes", clusterOf("UP"), study.Partition{Name: "main", MaxNodes: 3}, "", true, "limits fail max_nodes is 3, the cluster's limit 2"},
		{"too long", clusterOf("UP"), study.Partition{Name: "main", MaxTime: study.Duration(25 * time.Hour)}, "", true, "limits fail max_time is 25h, the cluster's limit 24h"},
		{"some nodes have fewer", clusterOf("UP"), study.Partition{Name: "main", CPUsPerNode: 8}, "", true, "limits warn cpus_per_node is 8, and 1 of 2 nodes have fewer"},
		{"no such GPU", clusterOf("UP"), study.Partition{Name: "main", GPUsPerNode: 4, GPUType: "h100"}, "", true, "limits fail gpus_per_node is 4, more than any node has"},
		{"other account", clusterOf("UP", bench), study.Partition{Name: "main"}, "physics", true, `account fail "physics" is not one of your accounts there: bench`},
		{"accounts unknown", clusterOf("UP"), study.Partition{Name: "main"}, "physics", true, "account not tested"},
	} {
		u := use{partition: test.site, shape: study.Planned{Point: point}, known: test.cluster.Partition(test.site.Name)}
		list, open := checkPartition(u, test.cluster, test.account)
		var said []string
		found := false
		for _, f := range list {
			line := fmt.Sprintf("%s %s %s", f.Check, f.Verdict, f.Found)
			said, found = append(said, line), found || strings.HasPrefix(line, test.want)
		}
		if open != test.open || !found {
			t.Errorf("%s: open %v, %q", test.name, open, said)
		}
	}
}

func TestSample(t *testing.T) {
	d := clusterOf("UP")
	one := 1
	d.Partitions = append(d.Partitions, slurm.Partition{Name: "single", State: "UP", Nodes: []string{"a", "b"}, MaxNodes: &one})
	for _, test := range []struct {
		site                  study.Partition
		nodes, tasks, workers int
		device                string
	}{
		{study.Partition{}, 2, 2, 4, "cpu"},
		{study.Partition{Name: "single", CPUsPerNode: 1}, 1, 1, 1, "cpu"},
		{study.Partition{Name: "main", MaxNodes: 1, GPUsPerNode: 4}, 1, 2, 2, "gpu"},
	} {
		p := sample(test.site, d).Point
		if p.Nodes != test.nodes || p.WorkersPerNode != test.tasks || p.Workers != test.workers || p.Resources.Device != test.device {
			t.Errorf("%+v: %+v", test.site, p)
		}
	}
}

const mounts = `22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /home rw shared:5 - nfs4 server:/home rw
31 30 0:41 / /home/my\040data rw - lustre mgs:/fs rw
32 22 0:42 / /scratch rw - tmpfs none rw
33 22 0:43 / /scratch rw master:1 shared:2 - beegfs fs rw
`

func TestMountType(t *testing.T) {
	for path, want := range map[string]string{
		"/": "ext4", "/usr/x": "ext4", "/home": "nfs4", "/home/u": "nfs4", "/homework": "ext4", "/home/my data/x": "lustre", "/scratch/a": "beegfs",
	} {
		if got, err := mountType(mounts, path); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if _, err := mountType("nonsense", "/x"); err == nil {
		t.Error("no mount, and no error")
	}
	if kind, err := fileSystem(filepath.Join(t.TempDir(), "not", "there", "yet")); err != nil || kind == "" {
		t.Errorf("%q, %v", kind, err)
	}
}

// The type is always one of the words after " - ", for any input.
func FuzzMountType(f *testing.F) {
	f.Add(mounts, "/home/u")
	f.Add("1 2 3 4 / 6 - x", "/a")
	f.Fuzz(func(t *testing.T, mounts, path string) {
		kind, err := mountType(mounts, path)
		if err == nil && !strings.Contains(mounts, " - ") || err == nil && (kind == "" || strings.ContainsAny(kind, " \n")) {
			t.Errorf("%q", kind)
		}
	})
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		scaled(1.234e9, "B/s"): "1.23 GB/s", scaled(999.6e6, "B/s"): "1,000 MB/s", scaled(12, "B/s"): "12 B/s",
		signed(-0.25):                   "−250 ms",
		ranges([]int{0, 1, 2, 5, 7, 8}): "CPUs 0-2,5,7-8", ranges(nil): "no known CPU",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each kind of advice has one line, in the order of the findings.
func TestAdvice(t *testing.T) {
	got := Advice([]Finding{
		{Check: "worker", Subject: "/w", Advice: "build it"},
		{Check: "framework", Subject: "a", Advice: "install it"},
		{Check: "framework", Subject: "native"},
		{Check: "framework", Subject: "b", Advice: "install it"},
		{Check: "probe job", Advice: "install it"},
	})
	want := []string{"worker /w: build it", "framework a, b: install it", "probe job: install it"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
