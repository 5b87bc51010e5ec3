//go:build python

package collective

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkAgainstMPIAndGloo compares our all-reduce with Open MPI's and Gloo's in one run: two ranks on this
// host, each on a separate core (Gloo's have additional threads), float32, sums in place. The programs run in
// turn, three times each; a figure is the median of all batches of rank 0, with quartiles in brackets. It needs
// mpicc, mpirun and Debian's PyTorch: `make bench-packages`.
func BenchmarkAgainstMPIAndGloo(b *testing.B) {
	mpi := filepath.Join(b.TempDir(), "allreduce")
	if out, err := exec.Command("mpicc", "-O2", "-o", mpi, "testdata/allreduce_mpi.c").CombinedOutput(); err != nil {
		b.Fatalf("mpicc: %v\n%s\nmake bench-packages installs it", err, out)
	}
	contestants := []struct {
		name string
		run  func(b *testing.B, times []string) string
		slow int // how much fewer operations at small sizes
	}{
		{"ours, shm", func(b *testing.B, times []string) string { return timed(b, SharedMemory, times) }, 1},
		{"Open MPI", func(b *testing.B, times []string) string { return timedMPI(b, mpi, times) }, 1},
		{"Gloo", timedGloo, 20},
		{"ours, tcp", func(b *testing.B, times []string) string { return timed(b, TCP, times) }, 4},
	}
	sizes := []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	for b.Loop() {
		samples := make([]map[int][]float64, len(contestants))
		for range 3 {
			for i, c := range contestants {
				var times []string
				for _, size := range sizes {
					operations := max(1, min(2000, 8<<20/size)/c.slow)
					times = append(times, fmt.Sprintf("%d:%d:%d", size, 11, operations))
				}
				if samples[i] == nil {
					samples[i] = map[int][]float64{}
				}
				readTimes(b, c.name, c.run(b, times), samples[i])
			}
		}
		text := fmt.Sprintf("all-reduce of float32, 2 ranks on this host: median time [quartiles] and bytes / time\n%9s", "bytes")
		for _, c := range contestants {
			text += fmt.Sprintf("  %-38s", c.name)
		}
		text += "  Open MPI's time / ours  Gloo's time / ours  Gloo's / ours, tcp\n"
		for _, size := range sizes {
			text += fmt.Sprintf("%9d", size)
			medians := make([]float64, len(contestants))
			for i := range contestants {
				s := samples[i][size]
				if len(s) == 0 {
					b.Fatalf("%s printed nothing for %d bytes", contestants[i].name, size)
				}
				slices.Sort(s)
				medians[i] = s[len(s)/2]
				text += fmt.Sprintf("  %-38s", fmt.Sprintf("%9.2f µs [%.2f–%.2f] %6.2f GB/s",
					1e6*medians[i], 1e6*s[len(s)/4], 1e6*s[len(s)*3/4], float64(size)/medians[i]/1e9))
			}
			text += fmt.Sprintf("  %22.2f  %18.2f  %18.2f\n", medians[1]/medians[0], medians[2]/medians[0], medians[2]/medians[3])
		}
		text += "targets: at 1024 bytes Open MPI's time / ours ≥ 0.5; from 64 KiB to 64 MiB ≥ 0.8, and Gloo's time / ours ≥ 1\n"
		fmt.Print(text)
	}
}

// readTimes adds the lines that a contestant printed to samples, by size.
func readTimes(b *testing.B, name, output string, samples map[int][]float64) {
	b.Helper()
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		size, err := strconv.Atoi(fields[0])
		if err != nil {
			b.Fatalf("%s printed %q", name, line)
		}
		for _, f := range fields[1:] {
			seconds, err := strconv.ParseFloat(f, 64)
			if err != nil {
				b.Fatalf("%s printed %q", name, line)
			}
			samples[size] = append(samples[size], seconds)
		}
	}
}

func timed(b *testing.B, transport Transport, times []string) string {
	ranks := startRanks(b, 2, func(a *assignment) { a.Transport, a.Times = transport, times })
	for r, p := range ranks {
		if err := p.Wait(); err != nil {
			b.Fatalf("rank %d: %v\n%s", r, err, p.output.String())
		}
	}
	return ranks[0].output.String()
}

func timedMPI(b *testing.B, program string, times []string) string {
	cmd := exec.Command("mpirun", append([]string{"-n", "2", program}, times...)...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("mpirun: %v\n%s", err, complaints.String())
	}
	return string(out)
}

func timedGloo(b *testing.B, times []string) string {
	places, l := worlds(b, 2)
	l.Close()
	var ranks []*process
	for r, w := range places {
		p := &process{Cmd: exec.Command("/usr/bin/python3", append([]string{"testdata/allreduce_gloo.py"}, times...)...)}
		p.Env = append(os.Environ(), "MASTER_ADDR="+w.Address, fmt.Sprint("MASTER_PORT=", w.Port), fmt.Sprint("RANK=", r), "WORLD_SIZE=2", "GLOO_SOCKET_IFNAME=lo")
		p.Stdout, p.Stderr = &p.output, os.Stderr
		if err := p.Start(); err != nil {
			b.Fatal(err)
		}
		ranks = append(ranks, p)
	}
	for r, p := range ranks {
		if err := p.Wait(); err != nil {
			b.Fatalf("Gloo's rank %d: %v", r, err)
		}
	}
	return ranks[0].output.String()
}
