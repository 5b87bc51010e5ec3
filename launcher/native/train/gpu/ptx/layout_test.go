package ptx

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var allArguments = []any{
	Decode{}, Im2col{}, Im2colBfloat16{}, Col2im{}, Pool{}, PoolGradient{},
	Moments{}, NormStatistics{}, NormAverages{}, Normalise{},
	Rectify{}, GradientMoments{}, NormGradientCoefficients{}, NormGradient{},
	Bias{}, BiasGradient{}, CrossEntropy{},
	ColumnSums{}, SumRows{}, SquaredNorm{},
	SGD{}, Adam{}, ToBfloat16{}, FromBfloat16{},
}

var words = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// inC converts a Go name to the C source's style: RunningMean, running_mean.
func inC(name string) string {
	return strings.ToLower(words.ReplaceAllString(strings.ReplaceAll(name, "ReLU", "Relu"), "${1}_$2"))
}

// Each struct of arguments has the fields of the kernel's struct at the same offsets, and each loaded kernel
// has a struct. The compiler checks assertions made from Go's layout.
func TestLayout(t *testing.T) {
	var kernels []string
	program := "#include \"kernels.cu\"\n#include <stddef.h>\n"
	held := func(condition string) { program += fmt.Sprintf("_Static_assert(%s, %q);\n", condition, condition) }
	structs := []reflect.Type{reflect.TypeFor[Shape]()}
	for _, args := range allArguments {
		structs = append(structs, reflect.TypeOf(args))
		kernels = append(kernels, inC(reflect.TypeOf(args).Name()))
	}
	for _, s := range structs {
		name := "struct " + inC(s.Name())
		if s.Name() != "Shape" {
			name += "_args"
		}
		filled := uintptr(0)
		for i := range s.NumField() {
			f := s.Field(i)
			held(fmt.Sprintf("offsetof(%s, %s) == %d", name, inC(f.Name), f.Offset))
			held(fmt.Sprintf("sizeof((%s){}.%s) == %d", name, inC(f.Name), f.Type.Size()))
			filled = f.Offset + f.Type.Size()
		}
		// Only alignment may follow the last field.
		held(fmt.Sprintf("sizeof(%s) == %d", name, s.Size()))
		if s.Size()-filled >= uintptr(s.Align()) {
			t.Errorf("%s: %d bytes behind the last field", s, s.Size()-filled)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(kernels))); diff != "" {
		t.Errorf("kernels that are loaded, and that have arguments here (-loaded +here):\n%s", diff)
	}
	compile(t, program)
}

// device replaces the source's GPU-specific definitions, for a compiler without GPU support.
const device = `
#define DEVICE_FUNCTION static inline
#define KERNEL(name, size) void name(struct name##_args a, int index)
`

// compile lets cc read a program that includes the source.
func compile(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("source")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "device.h")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"test.c": program, "device.h": device} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", filepath.Join(dir, "test.c")).CombinedOutput(); err != nil {
		t.Errorf("cc: %v\n%s", err, out)
	}
}

// The PTX that is checked in has an entry for each kernel, with a parameter of the
// size of its arguments.
func TestEntries(t *testing.T) {
	text, err := ptx()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range allArguments {
		s := reflect.TypeOf(args)
		want := regexp.MustCompile(fmt.Sprintf(`\.visible \.entry %[1]s\(\s*\.param \.align 8 \.b8 %[1]s_param_0\[%[2]d\]\s*\)`, inC(s.Name()), s.Size()))
		if !want.Match(text) {
			t.Errorf("kernels.ptx has no entry %s with %d bytes of arguments", inC(s.Name()), s.Size())
		}
	}
	if n := strings.Count(string(text), ".entry "); n != len(names) {
		t.Errorf("kernels.ptx has %d entries, want %d", n, len(names))
	}
}
