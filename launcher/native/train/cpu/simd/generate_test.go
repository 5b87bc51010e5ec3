package simd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The checked-in assembly equals the generator's output, so that it was not edited, and is up to
// date.
func TestAssemblyIsGenerated(t *testing.T) {
	dir := t.TempDir()
	const code, stubs = "kernels_amd64.s", "stubs_amd64.go"
	out, err := exec.Command("go", "run", "asm_main.go", "asm_elementwise.go", "asm_products.go", "-out", filepath.Join(dir, code), "-stubs", filepath.Join(dir, stubs), "-pkg", "simd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{code, stubs} {
		var files [2]string
		for i, folder := range []string{".", dir} {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := bytes.Cut(text, []byte("\n")) // the first line names the command
			files[i] = string(body)
		}
		if diff := cmp.Diff(files[0], files[1]); diff != "" {
			t.Errorf("%s is not what the generator writes; run go generate (-is +generated):\n%s", name, diff)
		}
	}
}
