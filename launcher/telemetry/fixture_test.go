package telemetry

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/metrics"
)

// tree creates files in a new temporary folder.
func tree(t *testing.T, files ...map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		put(t, root, f)
	}
	return root
}

func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// values returns readings by name and object, in their unit.
func values(list []Reading) map[string]float64 {
	m := map[string]float64{}
	for _, r := range list {
		m[strings.TrimSpace(r.Name+" "+r.Of)] = float64(r.Count) * r.Scale
	}
	return m
}

func sources(list []Reading) map[string]string {
	m := map[string]string{}
	for _, r := range list {
		m[r.Name] = r.Source
	}
	return m
}

// near compares floats with a tolerance for rounding.
var near = cmp.Comparer(func(a, b float64) bool { d := a - b; return d < 1e-9*max(1, a) && d > -1e-9*max(1, a) })

// marks identifies the run in these trees.
var marks = []Mark{{"SCALEBENCH_RUN", "/runs/s/p-r1-a1"}, {Name: "SCALEBENCH_SUPERVISOR"}}

// process returns the files of a process: times in hundredths of a second, sizes in kB.
func process(pid, parent int, start string, own, children, rss, peak, read, written int, environ string) map[string]string {
	p := fmt.Sprintf("proc/%d/", pid)
	return map[string]string{
		p + "stat":    fmt.Sprintf("%d (a b) c) R %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %s 0 0", pid, parent, own, children, start),
		p + "status":  fmt.Sprintf("Name:\ta b) c\nVmHWM:\t %d kB\nVmRSS:\t %d kB\nCpus_allowed_list:\t0-1,4\n", peak, rss),
		p + "io":      fmt.Sprintf("rchar: %d\nwchar: 1\nread_bytes: %d\nwrite_bytes: %d\n", 10*read, read, written),
		p + "environ": environ,
	}
}

const ours = "A=1\x00SCALEBENCH_RUN=/runs/s/p-r1-a1\x00SCALEBENCH_SUPERVISOR=7\x00"

// A step's cgroup is found in every hierarchy that Slurm creates, even if the job's part does not contain its
// id.
func TestStepCgroup(t *testing.T) {
	v2 := func(step string) map[string]string {
		at := "sys/fs/cgroup" + step + "/"
		return map[string]string{
			"proc/self/cgroup":    "0::" + step + "/user/task_0\n",
			"proc/self/mountinfo": "30 29 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
			at + "cpu.stat":       "usage_usec 12345678\nuser_usec 1\nnr_periods 40\nnr_throttled 10\nthrottled_usec 99\n",
			at + "cpu.max":        "150000 100000\n",
			at + "memory.stat":    "anon 1000\nfile 700\nkernel 5\nshmem 200\n",
			at + "memory.peak":    "9000\n",
			at + "io.stat":        "8:0 rbytes=11 wbytes=22 rios=1 wios=2 dbytes=0 dios=0\n259:1 rbytes=5 wbytes=6\n",
			at + "cpu.pressure":   "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
		}
	}
	want := map[string]float64{
		"cpu": 12.345, "periods": 40, "throttled": 10,
		"memory": 1200, "page_cache": 500, "charged_peak": 9000,
		"device_read 8:0": 11, "device_written 8:0": 22, "device_read 259:1": 5, "device_written 259:1": 6,
		"pressure cpu": 2.5,
	}
	const v1 = "/slurm_n1/uid_1000/job_12/step_3"
	one := map[string]string{
		"proc/self/cgroup": "5:cpu,cpuacct:" + v1 + "/task_0\n6:memory:" + v1 + "/task_0\n7:blkio:" + v1 + "/task_0\n1:name=systemd:/x\n",
		"proc/self/mountinfo": "31 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"32 29 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n33 29 0:29 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
		"sys/fs/cgroup/cpu,cpuacct" + v1 + "/cpuacct.usage":                       "12345678901\n", // ns
		"sys/fs/cgroup/cpu,cpuacct" + v1 + "/task_0/cpu.stat":                     "nr_periods 40\nnr_throttled 10\nthrottled_time 99\n",
		"sys/fs/cgroup/memory" + v1 + "/memory.stat":                              "cache 1\nrss 2\ntotal_cache 700\ntotal_rss 1000\ntotal_shmem 200\n",
		"sys/fs/cgroup/memory" + v1 + "/memory.max_usage_in_bytes":                "9000\n",
		"sys/fs/cgroup/blkio" + v1 + "/blkio.throttle.io_service_bytes_recursive": "8:0 Read 11\n8:0 Write 22\n8:0 Sync 0\n8:0 Total 33\n259:1 Read 5\n259:1 Write 6\nTotal 44\n",
		"proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n",
	}
	for name, files := range map[string]map[string]string{
		"v2":              v2("/system.slice/slurmstepd.scope/job_12/step_0"),
		"v2 SLUID":        v2("/system.slice/slurmstepd.scope/s7A0C3KQ2XYZ/step_0"),
		"v2 named":        v2("/system.slice/n1_slurmstepd.scope/job_12/step_4294967290"),
		"v1":              one,
		"a limit of ours": v2("/user.slice/scalebench-4711"),
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(Options{Root: tree(t, files, map[string]string{"proc/12/stat": "nothing"}), Marks: marks})
			if diff := cmp.Diff(want, values(n.sample()), near); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The batch step, or a cgroup that does not belong to a step, may contain other programs, so the run's
// processes are added up instead.
func TestSharedCgroup(t *testing.T) {
	for _, of := range []string{"/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0", "/user.slice/user-1000.slice", "/"} {
		at := filepath.Join("sys/fs/cgroup", of)
		n := newNode(Options{Root: tree(t, process(100, 7, "5", 250, 0, 8, 16, 40, 50, ours), map[string]string{
			"proc/self/cgroup":    "0::" + of + "\n",
			"proc/self/mountinfo": "30 29 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
			at + "/cpu.stat":      "usage_usec 99999999\n",
			at + "/memory.stat":   "anon 1000\nfile 700\nshmem 200\n",
		}), Marks: marks})
		want := map[string]float64{"cpu": 2.5, "cpus": 3, "memory": 8 * 1024, "memory_peak": 16 * 1024, "read": 40, "read_calls": 400, "written": 50}
		list := n.sample()
		if diff := cmp.Diff(want, values(list), near); diff != "" {
			t.Errorf("%s: %s", of, diff)
		}
		if s := sources(list)["cpu"]; !strings.Contains(s, "processes") {
			t.Errorf("the source is %q", s)
		}
		if why := n.missing[metrics.TelemetryThrottled]; why == "" {
			t.Error("no reason is given for the missing throttling counters")
		}
	}
}

// The usage of ended processes is kept: in the parent that waited for them, or as last seen if the parent does
// not belong to the run. Other processes never count.
func TestProcesses(t *testing.T) {
	root := tree(t,
		process(100, 7, "5", 200, 0, 10, 20, 1000, 10, ours),                                                             // a rank
		process(101, 100, "6", 100, 0, 1, 2, 100, 1, "B=2\x00"),                                                          // its child, which has cleared its environment
		process(102, 7, "7", 50, 0, 4, 4, 50, 5, ours),                                                                   // a second rank, with another supervisor
		process(103, 7, "8", 9999, 0, 99, 99, 9999, 99, "SCALEBENCH_RUN=/runs/s/p-r1-a2\x00SCALEBENCH_SUPERVISOR=7\x00"), // a process of another run
		process(104, 1, "9", 9999, 0, 99, 99, 9999, 99, "SCALEBENCH_RUN=/runs/s/p-r1-a1\x00"),                            // a supervisor
		map[string]string{"proc/105/stat": "105 (x", "proc/106/stat": "", "proc/meminfo": ""})
	n := newNode(Options{Root: root, Marks: marks})
	check := func(want map[string]float64) {
		t.Helper()
		got := values(n.sample())
		maps.DeleteFunc(got, func(name string, _ float64) bool { _, asked := want[name]; return !asked })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Error(diff)
		}
	}
	check(map[string]float64{"cpu": 3.5, "memory": 15 * 1024, "memory_peak": 26 * 1024, "read": 1150, "written": 16, "read_calls": 11500})

	// The child has ended and was waited for, so its times are in its parent's. The second rank has ended, and
	// its supervisor has waited for it.
	for _, pid := range []string{"101", "102"} {
		if err := os.RemoveAll(filepath.Join(root, "proc", pid)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, root, process(100, 7, "5", 260, 130, 10, 20, 1200, 11, ours))
	check(map[string]float64{"cpu": 4.4, "memory": 10 * 1024, "read": 1250, "written": 16})

	// Another process of the run gets the same process id.
	put(t, root, process(102, 100, "70", 3, 0, 1, 1, 1, 0, ""))
	check(map[string]float64{"cpu": 4.43, "read": 1251})

	// A counter never decreases, even if a child was counted twice.
	put(t, root, process(100, 7, "5", 200, 130, 10, 20, 1200, 11, ours))
	check(map[string]float64{"cpu": 4.43})

	// Without processes nothing is read; the last reading is not repeated.
	for _, pid := range []string{"100", "102"} {
		if err := os.RemoveAll(filepath.Join(root, "proc", pid)); err != nil {
			t.Fatal(err)
		}
	}
	if got := values(n.sample()); len(got) != 0 {
		t.Error(got)
	}
}

// A node with a thousand processes of the run.
func TestManyProcesses(t *testing.T) {
	var files []map[string]string
	for i := range 1000 {
		files = append(files, process(5_000_000+i, 7, "5", 10, 0, 2, 3, 100, 0, ours))
	}
	n := newNode(Options{Root: tree(t, files...), Marks: marks})
	got := values(n.sample())
	if got["cpu"] != 100 || got["memory"] != 2000*1024 || got["read"] != 100_000 {
		t.Error(got)
	}
}

// rapl returns the files of one powercap zone.
func rapl(entry, name, count, most string) map[string]string {
	at := "sys/class/powercap/" + entry + "/"
	return map[string]string{at + "name": name + "\n", at + "energy_uj": count + "\n", at + "max_energy_range_uj": most + "\n"}
}

// Energy counters continue when they wrap. Cores are part of their package, and the MMIO zone repeats the
// package.
func TestRAPL(t *testing.T) {
	root := tree(t, rapl("intel-rapl:0", "package-0", "65532000000", "65532610987"), rapl("intel-rapl:0:0", "core", "5", "65532610987"),
		rapl("intel-rapl:0:1", "dram", "1000000", "65712999613"), rapl("intel-rapl:1", "package-1", "0", "65532610987"),
		rapl("intel-rapl:2", "psys", "7", "65532610987"), rapl("intel-rapl-mmio:0", "package-0", "9", "65532610987"),
		map[string]string{"sys/class/powercap/intel-rapl/enabled": "1\n"})
	n := newNode(Options{Root: root})
	want := map[string]float64{"energy package-0": 0, "energy package-0 dram": 0, "energy package-1": 0, "energy psys": 0}
	if diff := cmp.Diff(want, values(n.sample()), near); diff != "" {
		t.Fatal(diff)
	}
	// 610,987 µJ before the wrap and 389,013 µJ after it: 1 J.
	put(t, root, rapl("intel-rapl:0", "package-0", "389013", "65532610987"))
	put(t, root, rapl("intel-rapl:0:1", "dram", "3500000", "65712999613"))
	want["energy package-0"], want["energy package-0 dram"] = 1, 2.5
	if diff := cmp.Diff(want, values(n.sample()), near); diff != "" {
		t.Error(diff)
	}
}

// Since Linux 5.10 only root may read the counters. An unreadable counter is not 0 J.
func TestRAPLForbidden(t *testing.T) {
	root := tree(t, rapl("intel-rapl:0", "package-0", "5", "65532610987"))
	file := filepath.Join(root, "sys/class/powercap/intel-rapl:0/energy_uj")
	if err := errors.Join(os.Chmod(file, 0), os.Chmod(filepath.Dir(root), 0o755)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // root can always read it, so read as another user, on a thread that ends with this goroutine
		defer close(done)
		runtime.LockOSThread()
		_ = unix.Setfsuid(65534)
		n := newNode(Options{Root: root})
		got := n.sample()
		if len(got) != 0 {
			t.Error(got)
		}
		if why := n.missing[metrics.TelemetryEnergy]; why != "/sys/class/powercap/intel-rapl:0/energy_uj: permission denied" {
			t.Errorf("the reason is %q", why)
		}
	}()
	<-done
}

func TestBoards(t *testing.T) {
	n := newNode(Options{Root: tree(t, map[string]string{
		"sys/cray/pm_counters/energy":                            "12345678 J 1755000000000000 us\n",
		"sys/cray/pm_counters/power":                             "410 W 1755000000000000 us\n",
		"sys/cray/pm_counters/cpu_energy":                        "999 J 1755000000000000 us\n",
		"sys/class/drm/card0/device/vendor":                      "0x1002\n",
		"sys/class/drm/card0/device/hwmon/hwmon3/power1_average": "213000000\n", // µW
		"sys/class/drm/card0/device/gpu_busy_percent":            "97\n",
		"sys/class/drm/card0/device/mem_info_vram_used":          "68719476736\n",
		"sys/class/drm/card1/device/vendor":                      "0x1002\n",
		"sys/class/drm/card1/device/hwmon/hwmon4/power1_input":   "90500000\n",
		"sys/class/drm/card2/device/vendor":                      "0x10de\n",
		"sys/class/drm/card2/device/hwmon/hwmon5/power1_average": "1\n",
		"sys/class/drm/card0-DP-1/device/vendor":                 "0x1002\n",
		"sys/class/drm/card0/device/hwmon/hwmon3/temp1_input":    "61000\n",      // m°C
		"sys/class/drm/card0/device/hwmon/hwmon3/freq1_input":    "1700000000\n", // Hz
		"sys/class/drm/card0/device/ras/umc_err_count":           "ue: 1\nce: 5\nother: 9\n",
	})})
	want := map[string]float64{"energy node": 12345678, "power node": 410, "present card0": 1, "power card0": 213, "busy card0": 0.97, "device_memory card0": 1 << 36,
		"temperature card0": 61, "device_clock card0": 1.7e9, "memory_errors card0: uncorrected": 1, "memory_errors card0: corrected": 5, "present card1": 1, "power card1": 90.5}
	if diff := cmp.Diff(want, values(n.sample()), near); diff != "" {
		t.Error(diff)
	}
}

// NVIDIA GPUs that cannot be read are still reported as present, because the energy of the packages alone is
// not the node's. Without the driver no GPU is reported.
func TestUnreadGPUs(t *testing.T) {
	driver := map[string]string{"proc/driver/nvidia/gpus/0000:1b:00.0/information": "Model: x\n", "proc/driver/nvidia/gpus/0000:43:00.0/information": "Model: x\n"}
	want := map[string]float64{"present GPU 0": 1, "present GPU 1": 1}
	unloaded := func() ([]Reading, map[string]string) {
		return nil, map[string]string{metrics.TelemetryPresent: "NVML cannot be loaded"}
	}
	for why, devices := range map[string]Devices{"make worker-gpu": nil, "NVML cannot be loaded": unloaded} {
		n := newNode(Options{Root: tree(t, driver), Devices: devices})
		if diff := cmp.Diff(want, values(n.sample()), near); diff != "" || !strings.Contains(n.missing[metrics.TelemetryPower], why) {
			t.Errorf("%s\n%v", diff, n.missing)
		}
		n.outside.end()
	}
	n := newNode(Options{Root: tree(t)})
	if got := n.sample(); len(got) != 0 || n.missing[metrics.TelemetryPower] != "" {
		t.Errorf("%v, %v", got, n.missing)
	}
}

func TestHost(t *testing.T) {
	n := newNode(Options{Marks: marks, Root: tree(t, process(100, 7, "5", 1, 0, 1, 1, 1, 1, ours), map[string]string{
		"proc/net/dev": "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n    lo: 99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n" +
			"  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n  ib0:7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n idle: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		"sys/devices/system/cpu/online":                                               "0-7\n",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id":                    "0\n",
		"sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms": "1500\n",
		"sys/devices/system/cpu/cpu1/topology/physical_package_id":                    "0\n",
		"sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_total_time_ms": "1500\n",
		"sys/devices/system/cpu/cpu4/topology/physical_package_id":                    "1\n",
		"sys/devices/system/cpu/cpu4/thermal_throttle/package_throttle_total_time_ms": "0\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":                        "2000000\n", // kHz
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq":                        "3000000\n",
		"sys/devices/system/cpu/cpu4/cpufreq/scaling_cur_freq":                        "<unknown>\n",
		"sys/devices/system/cpu/cpu5/cpufreq/scaling_cur_freq":                        "1\n", // a CPU that the run may not use
		"proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
	})})
	got := values(n.sample())
	want := map[string]float64{"received eth0": 1000, "sent eth0": 2000, "received ib0": 7, "sent ib0": 8, "cpus_online": 8, "clock": 2.5e9, "pressure memory": 1.234, "clock_throttled package-0: heat": 1.5, "clock_throttled package-1: heat": 0}
	for name, v := range want {
		if !alike(got[name], v) {
			t.Errorf("%s is %g, want %g", name, got[name], v)
		}
	}
	for _, name := range []string{"received lo", "received idle"} {
		if _, has := got[name]; has {
			t.Errorf("%s is read", name)
		}
	}
}

func alike(a, b float64) bool { return cmp.Equal(a, b, near) }

// For any file contents, reading never hangs, invents no values, and still reads the other files.
func TestHostile(t *testing.T) {
	const step = "/system.slice/slurmstepd.scope/job_1/step_0"
	at := "sys/fs/cgroup" + step + "/"
	root := tree(t, process(100, 7, "5", 100, 0, 8, 8, 8, 8, ours), process(101, 100, "5", 1, 0, 8, 8, 8, 8, ours), map[string]string{
		"proc/self/cgroup":                     "nonsense\n0:\n0::/../../etc\n0::" + step + "\n",
		"proc/self/mountinfo":                  "x\n - cgroup2\n30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		at + "memory.stat":                     "anon -5\nfile 99999999999999999999999\nshmem 1\n",
		at + "cpu.stat":                        "usage_usec many\nnr_periods 1 2\n",
		at + "cpu.max":                         "0 0\n",
		at + "io.stat":                         "8:0 rbytes= wbytes=1\n\n9:9\nrbytes=4\n",
		at + "cpu.pressure":                    "some total=\nsome a b c total=x\n",
		"proc/101/stat":                        "101 (x) R seven 1 1\n",
		"proc/100/io":                          "read_bytes: 99999999999999999999999999\nrchar: 1\n",
		"proc/100/environ":                     ours,
		"sys/class/powercap/intel-rapl:0/name": "package-0\n",
		"sys/class/powercap/intel-rapl:0/max_energy_range_uj":  "1000\n",
		"sys/class/powercap/intel-rapl:0/energy_uj":            "-1\n",
		"sys/class/powercap/intel-rapl:1/name":                 "package-1\n",
		"sys/cray/pm_counters/energy":                          "12 kWh\n",
		"sys/class/drm/card0/device/vendor":                    "0x1002\n",
		"sys/class/drm/card0/device/gpu_busy_percent":          "180\n",
		"sys/devices/system/cpu/online":                        "0-999999999999\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "-1\n",
	})
	for _, fifo := range []string{"proc/net/dev", "proc/pressure/cpu", "proc/cpuinfo", at + "memory.peak"} {
		path := filepath.Join(root, fifo)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := os.Create(filepath.Join(root, "proc/pressure/memory")); err != nil {
		t.Fatal(err)
	} else if err := f.Truncate(1 << 40); err != nil { // a sparse file of 1 TiB
		t.Fatal(err)
	}
	n := newNode(Options{Root: root, Marks: marks})
	want := map[string]float64{"cpu": 1, "cpus": 3, "memory": 8 * 1024, "memory_peak": 8 * 1024, "present card0": 1}
	for range 2 {
		if diff := cmp.Diff(want, values(n.sample()), near); diff != "" {
			t.Error(diff)
		}
	}
	for _, name := range []string{metrics.TelemetryEnergy, metrics.TelemetryReceived, metrics.TelemetryPressure} {
		if n.missing[name] == "" {
			t.Errorf("no reason is given for the missing %s", name)
		}
	}
	if empty := newNode(Options{Root: t.TempDir(), Marks: marks}); len(empty.sample()) != 0 {
		t.Error("an empty tree gave readings")
	}
}
