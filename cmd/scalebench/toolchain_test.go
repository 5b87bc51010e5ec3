package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// `make build` says in one sentence what it lacks.
func TestToolchain(t *testing.T) {
	const goProgram = `#!/bin/sh
case $2 in GOVERSION) echo "$FAKE_VERSION" ;; CC) echo "cc-fake -m64" ;; CGO_ENABLED) echo "$FAKE_CGO" ;; esac
`
	for name, c := range map[string]struct{ version, cgo, golang, compiler, want string }{
		"whole":      {"go1.21.0", "1", goProgram, "#!/bin/sh\nexit 0\n", ""},
		"no Go":      {"", "", "", "#!/bin/sh\nexit 0\n", "make build: go is not installed: install Go 1.21 or later from https://go.dev/dl"},
		"old Go":     {"go1.19.8", "1", goProgram, "#!/bin/sh\nexit 0\n", "make build: go1.19.8 is too old: install Go 1.21 or later"},
		"no C":       {"go1.26.0", "0", goProgram, "", "make build: cc-fake, the C compiler, is not installed"},
		"no cgo":     {"go1.26.0", "0", goProgram, "#!/bin/sh\nexit 0\n", "make build: CGO_ENABLED is 0, but SQLite is C"},
		"no headers": {"go1.26.0", "1", goProgram, "#!/bin/sh\nexit 1\n", "make build: the headers of the C library are missing"},
	} {
		dir := t.TempDir()
		for program, text := range map[string]string{"go": c.golang, "cc-fake": c.compiler} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, program), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("/bin/sh", "../../.ci/toolchain")
		cmd.Env = []string{"PATH=" + dir, "FAKE_VERSION=" + c.version, "FAKE_CGO=" + c.cgo}
		out, err := cmd.CombinedOutput()
		said := strings.TrimSpace(string(out))
		if (err == nil) != (c.want == "") || !strings.HasPrefix(said, c.want) || strings.Contains(said, "\n") {
			t.Errorf("%s: %v, %q; want %q", name, err, said, c.want)
		}
	}
}
