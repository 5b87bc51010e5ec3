package worker

import (
	"bufio"
	"context"
	"encoding/csv"
	"maps"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/redact"
)

// environmentOf describes this host. Facts that cannot be determined stay empty: a missing
// nvidia-smi must not prevent a measurement.
func environmentOf(ctx context.Context, w world.World) *metrics.Environment {
	e := &metrics.Environment{Versions: map[string]string{"go": runtime.Version()}, Variables: map[string]string{}}
	e.Hostname, _ = os.Hostname()
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		e.Kernel = unix.ByteSliceToString(uts.Release[:])
	}
	e.CPUModel = firstField("/proc/cpuinfo", "model name")
	e.CPUSet = firstField("/proc/self/status", "Cpus_allowed_list")
	e.CPUs = world.CPUs() // the allowed CPUs, not the machine's
	if text, ok := strings.CutSuffix(firstField("/proc/meminfo", "MemTotal"), " kB"); ok {
		if kb, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			e.MemoryBytes = kb * 1024
		}
	}
	e.GPUs = gpus(ctx)
	e.Interface = carrier(w)
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if recorded(name, value) {
			e.Variables[name] = redact.Text(value)
		}
	}
	return e
}

// perTask lists variables that differ between tasks and repeat the start event. Without them the ranks of a
// node have equal environments.
var perTask = []string{"SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_TASK_PID"}

// recorded reports whether a variable describes the run and reveals nothing private: run folders are often
// readable for a whole project.
func recorded(name, value string) bool {
	if slices.Contains(perTask, name) {
		return false
	}
	known := name == "CUDA_VISIBLE_DEVICES" || name == "OMP_NUM_THREADS" || name == "GOMAXPROCS"
	for _, prefix := range []string{"SLURM_", "NCCL_", "GLOO_", "OMP_", "HOROVOD_"} {
		known = known || strings.HasPrefix(name, prefix)
	}
	return known && !redact.Named(name, value)
}

// firstField returns the value of the first "name: value" line of a file in /proc.
func firstField(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// gpus runs nvidia-smi, which every NVIDIA driver brings. It queries power limits and partitions
// separately, because a driver refuses a whole query with an unknown field.
func gpus(ctx context.Context) []metrics.GPU {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	ask := func(options ...string) string {
		out, err := exec.CommandContext(ctx, "nvidia-smi", options...).Output()
		if err != nil {
			return ""
		}
		return string(out)
	}
	const format = "--format=csv,noheader,nounits"
	list := parseGPUs(ask("--query-gpu=name,uuid,driver_version,memory.total", format))
	if len(list) > 0 {
		addLimits(list, ask("--query-gpu=uuid,power.limit,mig.mode.current", format))
		addProfiles(list, ask("-L"))
	}
	return list
}

func parseGPUs(text string) []metrics.GPU {
	var list []metrics.GPU
	for _, row := range csvRows(text, 4) {
		g := metrics.GPU{Name: row[0], UUID: row[1], Driver: row[2]}
		if mib, err := strconv.ParseInt(row[3], 10, 64); err == nil {
			g.MemoryBytes = mib << 20
		}
		list = append(list, g)
	}
	return list
}

// csvRows returns the rows up to the first one with a different number of fields.
func csvRows(text string, fields int) [][]string {
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	var list [][]string
	for {
		row, err := r.Read()
		if err != nil || len(row) != fields {
			return list
		}
		list = append(list, row)
	}
}

// addLimits reads power limits and whether GPUs are partitioned.
func addLimits(list []metrics.GPU, text string) {
	for _, row := range csvRows(text, 3) {
		for i := range list {
			g := &list[i]
			if g.UUID != row[0] {
				continue
			}
			if watts, err := strconv.ParseFloat(row[1], 64); err == nil && watts > 0 {
				g.PowerLimitWatts = watts
			}
			if row[2] == "Disabled" || row[2] == "[N/A]" { // not partitioned, or without MIG
				g.MIG = "off"
			}
		}
	}
}

var (
	listedGPU      = regexp.MustCompile(`^GPU \d+: .*\(UUID: (\S+)\)`)
	listedInstance = regexp.MustCompile(`^\s+MIG (\S+)\s+Device`)
)

// addProfiles reads from nvidia-smi -L which instances a GPU is partitioned
// into, as far as this process may see them.
func addProfiles(list []metrics.GPU, text string) {
	profiles, uuid := map[string]map[string]bool{}, ""
	for line := range strings.Lines(text) {
		if m := listedGPU.FindStringSubmatch(line); m != nil {
			uuid = m[1]
			profiles[uuid] = map[string]bool{}
		} else if m := listedInstance.FindStringSubmatch(line); m != nil && uuid != "" {
			profiles[uuid][m[1]] = true
		}
	}
	for i := range list {
		if of := profiles[list[i].UUID]; len(of) > 0 {
			list[i].MIG = strings.Join(slices.Sorted(maps.Keys(of)), "+")
		}
	}
}

// carrier returns the network interface to the other ranks: the configured one, or the one with the rendezvous
// address or the route to it.
func carrier(w world.World) *metrics.Interface {
	ip := net.ParseIP(w.Address)
	if w.Interface != "" {
		var err error
		if ip, err = world.InterfaceAddress(w.Interface); err != nil {
			return nil
		}
	} else if route, err := net.Dial("udp", net.JoinHostPort(w.Address, "9")); err == nil { // connecting UDP sends no packet
		ip = route.LocalAddr().(*net.UDPAddr).IP
		route.Close()
	}
	name := world.InterfaceOf(ip)
	if name == "" {
		return nil
	}
	return &metrics.Interface{Name: name, Address: ip.String(), SpeedBitsPer: world.LinkSpeed(name)}
}
