package worker

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/scalebench/scalebench/launcher/study"
)

// Two ranks of a node share 2 GiB; each must have 1 GiB.
func TestLimited(t *testing.T) {
	for _, test := range []struct{ limit, want string }{
		{"", "nothing limits the run's memory to 2G"},
		{"max", "nothing limits"},
		{"2147483648", ""},
		{"2147483000", ""}, // a little less
		{"2200000000", ""}, // 2 % more
		{"4294967296", "limited to 4G, not to 2G"},
		{"1073741824", "limited to 1G, not to 2G"},
	} {
		root := fstest.MapFS{
			"proc/self/cgroup":               {Data: []byte("0::/job_1/step_0\n")},
			"proc/self/mountinfo":            {Data: []byte("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
			"sys/fs/cgroup/job_1/memory.max": {Data: []byte(test.limit + "\n")},
		}
		p := study.Point{Workers: 2, Nodes: 1, WorkersPerNode: 2, Enforced: []string{study.MemoryKey}, Resources: study.Resources{Memory: 1 << 30}}
		err := limited(p, false, 64, root)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("limit %q: %v, want %q", test.limit, err, test.want)
		}
		p.Enforced = nil
		if err := limited(p, false, 64, root); err != nil {
			t.Errorf("memory is not what is measured: %v", err)
		}
	}
}

// Two ranks of a node have three CPUs each.
func TestLimitedCPUs(t *testing.T) {
	p := study.Point{Workers: 2, Nodes: 1, WorkersPerNode: 2, Enforced: []string{study.CPUsKey}, Resources: study.Resources{CPUsPerWorker: 3}}
	for _, test := range []struct {
		perNode bool
		cpus    int
		want    string
	}{
		{false, 3, ""}, {false, 2, ""}, {true, 6, ""},
		{false, 4, "a rank may use 4 CPUs instead of 3"},
		{true, 7, "the ranks of a node may use 7 CPUs instead of 6"},
	} {
		err := limited(p, test.perNode, test.cpus, fstest.MapFS{})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d CPUs, per node %v: %v, want %q", test.cpus, test.perNode, err, test.want)
		}
	}
}
