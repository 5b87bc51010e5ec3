package local

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	linux "golang.org/x/sys/unix"
)

// CPUs are ordered with the hardware threads of a core apart, for any numbering of the kernel.
func TestSpread(t *testing.T) {
	for _, test := range []struct {
		name  string
		cores []string // by CPU: socket and core; "" is not described
		want  []int
	}{
		{"one thread a core", []string{"0 0", "0 1", "0 2"}, []int{0, 1, 2}},
		{"siblings side by side", []string{"0 0", "0 0", "0 1", "0 1"}, []int{0, 2, 1, 3}},
		{"siblings far apart", []string{"0 0", "0 1", "0 0", "0 1"}, []int{0, 1, 2, 3}},
		{"two sockets count alike", []string{"0 0", "1 0", "0 0", "1 0"}, []int{0, 1, 2, 3}},
		{"not described", []string{"", "", ""}, []int{0, 1, 2}},
	} {
		dir := t.TempDir()
		var cpus []int
		for cpu, core := range test.cores {
			cpus = append(cpus, cpu)
			socket, id, ok := strings.Cut(core, " ")
			if !ok {
				continue
			}
			at := filepath.Join(dir, fmt.Sprint("cpu", cpu), "topology")
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"physical_package_id": socket, "core_id": id} {
				if err := os.WriteFile(filepath.Join(at, name), []byte(text+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if diff := cmp.Diff(test.want, spread(cpus, dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A bound program may use only its CPUs, and the thread that started it gets its previous CPUs
// back.
func TestBindings(t *testing.T) {
	n := runtime.NumCPU()
	if got := bindings(n+1, 1); got != nil {
		t.Errorf("%d ranks on %d CPUs are bound", n+1, n)
	}
	list := bindings(n, 1)
	if len(list) != n {
		t.Fatalf("%d of %d ranks are bound", len(list), n)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after cpuSet
	if err := linux.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, cpus := range list {
		var out bytes.Buffer
		cmd := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status")
		cmd.Stdout = &out
		if err := startOn(cpus, cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		_, cpu, _ := strings.Cut(strings.TrimSpace(out.String()), "\t")
		if strings.ContainsAny(cpu, "-,") || cpu == "" || seen[cpu] {
			t.Errorf("a rank may use CPU %q; %v have been given away", cpu, seen)
		}
		seen[cpu] = true
	}
	if err := linux.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the thread may use %v afterwards (%v), %v before", after, err, before)
	}
}
