package world

import (
	"testing"
	"testing/fstest"
)

func TestGrantedCPUs(t *testing.T) {
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const v1 = "31 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:6 - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 29 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  float64 // 0 means no limit
	}{
		{"nothing is mounted", map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "1 1 8:1 / / rw - ext4 /dev/sda1 rw\n"}, 0},
		{"no /proc", nil, 0},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, 0},
		{"own", map[string]string{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5},
		{"a parent's is less", map[string]string{"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/a/b/cpu.max": "400000 100000\n", "sys/fs/cgroup/a/cpu.max": "40000 20000\n"}, 2},
		{"a container's own top", map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3},
		{"outside of the container", map[string]string{"proc/self/cgroup": "0::/../../x\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3},
		{"version 1", map[string]string{"proc/self/cgroup": "5:cpuset:/other\n4:cpu,cpuacct:/job\n0::/\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "250000\n", "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}, 2.5},
		{"version 1 without limit", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/job\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}, 0},
		{"version 1, a part is mounted", map[string]string{"proc/self/cgroup": "4:cpu:/docker/c1/sub\n",
			"proc/self/mountinfo":                    "31 29 0:27 /docker/c1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
			"sys/fs/cgroup/cpu/sub/cpu.cfs_quota_us": "100000\n", "sys/fs/cgroup/cpu/sub/cpu.cfs_period_us": "100000\n"}, 1},
		{"nonsense", map[string]string{"proc/self/cgroup": "0::/\n0\n\n", "proc/self/mountinfo": v2 + "\n - cgroup2\n", "sys/fs/cgroup/cpu.max": "many 0\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, content := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
		if got, ok := grantedCPUs(root); got != test.want || ok != (test.want > 0) {
			t.Errorf("%s: %v, %v; want %v", test.name, got, ok, test.want)
		}
	}
}

func TestMemory(t *testing.T) {
	const v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const v1 = "31 29 0:27 / /sys/fs/cgroup/memory rw shared:6 - cgroup cgroup rw,memory\n"
	const none = "9223372036854771712\n" // of version 1: whole pages below 2^63
	for _, test := range []struct {
		name  string
		files map[string]string
		want  int64 // -1 means no limit
	}{
		{"no /proc", nil, -1},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/memory.max": "max\n"}, -1},
		{"Slurm's, above the task", map[string]string{"proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max":                    "1073741824\n",
			"sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/memory.max": "max\n"}, 1 << 30},
		{"version 1", map[string]string{"proc/self/cgroup": "4:memory:/slurm/uid_0/job_7/step_0\n0::/\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": none, "sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes": "1048576\n",
			"sys/fs/cgroup/memory/slurm/uid_0/job_7/step_0/memory.limit_in_bytes": "2097152\n"}, 1 << 20},
		{"version 1 without limit", map[string]string{"proc/self/cgroup": "4:memory:/a\n", "proc/self/mountinfo": v1, "sys/fs/cgroup/memory/a/memory.limit_in_bytes": none}, -1},
		{"nonsense", map[string]string{"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/a/memory.max": "-3 much\n"}, -1},
	} {
		root := fstest.MapFS{}
		for name, content := range test.files {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
		if got, ok := GrantedMemory(root); ok != (test.want >= 0) || ok && got != test.want {
			t.Errorf("%s: %v, %v; want %v", test.name, got, ok, test.want)
		}
	}
}
