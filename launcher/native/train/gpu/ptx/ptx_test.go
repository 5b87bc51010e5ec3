//go:build ptx

package ptx

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of registers, registers.md")

// The PTX is the output of clang for the source.
func TestPTXIsCompiled(t *testing.T) {
	code, err := os.ReadFile("kernel.go")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(code), "\n//go:generate ")
	line, _, _ = strings.Cut(line, "\n")
	command := strings.Fields(line)
	at := slices.Index(command, "kernels.ptx")
	if at < 0 {
		t.Fatalf("%q makes no kernels.ptx", line)
	}
	path := filepath.Join(t.TempDir(), "kernels.ptx")
	command[at] = path
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	checkedIn, err := ptx()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(checkedIn)); diff != "" {
		t.Errorf("kernels.ptx is not what the source gives; run make kernels (-source +kernels.ptx):\n%s", diff)
	}
}

// The same source compiles for AMD's GPUs, to their assembly: every kernel is there,
// and keeps what it computes with in registers. These are printed.
func TestCompilesForAMD(t *testing.T) {
	architectures := []string{"gfx906", "gfx908", "gfx90a", "gfx1030"}
	var all []map[string]map[string]int
	for _, architecture := range architectures {
		path := filepath.Join(t.TempDir(), "kernels.s")
		out, err := exec.Command("clang-14", "-x", "hip", "-nogpuinc", "-nogpulib", "--cuda-device-only", "--offload-arch="+architecture,
			"-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-S", "-o", path, "source/kernels.cu").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", architecture, err, out)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, metadata(t, string(text)))
	}
	table := ""
	for _, name := range names {
		table += fmt.Sprintf("%28s", name)
		for i, list := range all {
			fields, there := list[name]
			if !there {
				t.Fatalf("%s has no kernel %s", architectures[i], name)
			}
			for _, of := range []string{"private_segment_fixed_size", "group_segment_fixed_size", "vgpr_spill_count", "sgpr_spill_count"} {
				if n, there := fields[of]; !there || n != 0 {
					t.Errorf("%s for %s: %s is %d (said: %v), want 0", name, architectures[i], of, n, there)
				}
			}
			table += fmt.Sprintf("%5d%5d", fields["vgpr_count"], fields["sgpr_count"])
		}
		table += "\n"
	}
	for i, list := range all {
		if len(list) != len(names) {
			t.Errorf("%d kernels for %s; %d are loaded", len(list), architectures[i], len(names))
		}
	}
	t.Logf("vector and scalar registers for %v; no scratch memory, no spills, no memory of a group:\n%s", architectures, table)
}

var (
	metadataName  = regexp.MustCompile(`^    \.name: +(\w+)$`)
	metadataCount = regexp.MustCompile(`^    \.(\w+): +(\d+)$`)
)

// metadata returns the metadata of each kernel in assembly for AMD's GPUs, in YAML at its end.
func metadata(t *testing.T, assembly string) map[string]map[string]int {
	_, text, ok := strings.Cut(assembly, "amdhsa.kernels:\n")
	if !ok {
		t.Fatal("the assembly says nothing of kernels")
	}
	text, _, _ = strings.Cut(text, "\namdhsa.")
	list := map[string]map[string]int{}
	for _, kernel := range strings.Split("\n"+text, "\n  - ")[1:] {
		name, counts := "", map[string]int{}
		for line := range strings.Lines("    " + kernel) {
			line = strings.TrimSuffix(line, "\n")
			if m := metadataName.FindStringSubmatch(line); m != nil {
				name = m[1]
			} else if m := metadataCount.FindStringSubmatch(line); m != nil {
				counts[m[1]] = number(t, m[2])
			}
		}
		list[name] = counts
	}
	return list
}

// A usage is a kernel's use of GPU resources, as ptxas -v prints it.
type usage struct{ registers, stack, spills, shared int }

var (
	compiling = regexp.MustCompile(`Compiling entry function '(\w+)'`)
	stack     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	used      = regexp.MustCompile(`Used (\d+) registers`)
	shared    = regexp.MustCompile(`(\d+) bytes smem`)
)

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// assemble returns the resources of each kernel on a GPU, from ptxas.
func assemble(t *testing.T, ptxas, architecture string) map[string]usage {
	out, err := exec.Command(ptxas, "-v", "-arch="+architecture, "-o", filepath.Join(t.TempDir(), "kernels.cubin"), "kernels.ptx").CombinedOutput()
	if err != nil {
		t.Fatalf("ptxas for %s: %v\n%s", architecture, err, out)
	}
	list, kernel := map[string]usage{}, ""
	for line := range strings.Lines(string(out)) {
		u := list[kernel]
		if m := compiling.FindStringSubmatch(line); m != nil {
			kernel = m[1]
			continue
		} else if m := stack.FindStringSubmatch(line); m != nil {
			u.stack, u.spills = number(t, m[1]), number(t, m[2])+number(t, m[3])
		} else if m := used.FindStringSubmatch(line); m != nil {
			u.registers = number(t, m[1])
			if m := shared.FindStringSubmatch(line); m != nil {
				u.shared = number(t, m[1])
			}
		} else {
			continue
		}
		list[kernel] = u
	}
	return list
}

// Every kernel assembles for every generation of GPUs, keeps what it computes with in
// registers, and registers.md says how many.
func TestAssembles(t *testing.T) {
	var complaint bytes.Buffer
	fetch := exec.Command("./ptxas.sh")
	fetch.Stderr = &complaint
	path, err := fetch.Output()
	if err != nil {
		t.Fatalf("ptxas.sh: %v\n%s", err, &complaint)
	}
	architectures := []string{"sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}
	var all []map[string]usage
	for _, architecture := range architectures {
		all = append(all, assemble(t, strings.TrimSpace(string(path)), architecture))
	}
	table := "| kernel | " + strings.Join(architectures, " | ") + " |\n|---" + strings.Repeat("|---", len(architectures)) + "|\n"
	for _, name := range names {
		row := fmt.Sprintf("| `%s` |", name)
		for i, list := range all {
			u, ok := list[name]
			if !ok || u.registers == 0 {
				t.Fatalf("ptxas for %s says nothing of %s", architectures[i], name)
			}
			if u.stack > 0 || u.spills > 0 || u.shared > 0 {
				t.Errorf("%s for %s: %d bytes of stack, %d bytes of spills, %d bytes of shared memory", name, architectures[i], u.stack, u.spills, u.shared)
			}
			row += fmt.Sprintf(" %d |", u.registers)
		}
		table += row + "\n"
	}
	for i, list := range all {
		if len(list) != len(names) {
			t.Errorf("%d kernels for %s; %d are loaded", len(list), architectures[i], len(names))
		}
	}
	t.Logf("registers of each thread; no stack, no spills, no shared memory:\n%s", table)
	const page = "registers.md"
	if *update {
		if err := os.WriteFile(page, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table, string(written)); diff != "" {
		t.Errorf("registers.md has another table; run this test with -update (-ptxas +file):\n%s", diff)
	}
}
