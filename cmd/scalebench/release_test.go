//go:build release

package main

import (
	"bytes"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A chroot is the root folder of the programs under test. It contains only them, /proc and
// /dev/null: no C library, no /etc, no /tmp, no shell.
type chroot struct {
	t    *testing.T
	root string
}

func newChroot(t *testing.T) *chroot {
	t.Helper()
	c := &chroot{t, t.TempDir()}
	for _, dir := range []string{"dev", "proc"} {
		if err := os.Mkdir(filepath.Join(c.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.write("dev/null", "")
	return c
}

// release puts the programs for an architecture, as `make release` leaves
// them, into the folder.
func (c *chroot) release(architecture string) {
	c.t.Helper()
	for _, name := range []string{"scalebench", "scalebench-worker"} {
		c.install(filepath.Join("..", "..", "dist", "linux-"+architecture, name), name)
	}
}

func (c *chroot) install(from, to string) {
	c.t.Helper()
	program, err := os.ReadFile(from)
	if err != nil {
		c.t.Fatalf("%v; run `make release`", err)
	}
	if err := os.WriteFile(filepath.Join(c.root, to), program, 0o755); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chroot) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.root, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// run runs a program in the chroot, as root of a user namespace and with an empty
// environment, and returns its output.
func (c *chroot) run(args ...string) string {
	c.t.Helper()
	const enter = `mount --bind /dev/null "$1/dev/null" && mount --rbind /proc "$1/proc" && cd "$1" && exec env -i "$(command -v chroot)" "$@"`
	cmd := exec.Command("unshare", append([]string{"--map-root-user", "--mount", "sh", "-c", enter, "sh", c.root}, args...)...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, &out, &complaint)
	}
	return out.String() + complaint.String()
}

// says runs a program and checks that its output contains want.
func (c *chroot) says(want string, args ...string) {
	c.t.Helper()
	if out := c.run(args...); !strings.Contains(out, want) {
		c.t.Errorf("%s does not say %q:\n%s", strings.Join(args, " "), want, out)
	}
}

// draws checks that the file is a PNG.
func (c *chroot) draws(name string) {
	c.t.Helper()
	picture, err := os.Open(filepath.Join(c.root, name))
	if err != nil {
		c.t.Fatal(err)
	}
	defer picture.Close()
	if _, err := png.Decode(picture); err != nil {
		c.t.Errorf("%s: %v", name, err)
	}
}

// scales imports bareTable and checks its speedup, 190/100, in the table and in a plot.
func (c *chroot) scales(name, db string, program ...string) {
	c.t.Helper()
	scalebench := func(want string, args ...string) {
		c.t.Helper()
		c.says(want, slices.Concat(program, args, []string{"--db", db})...)
	}
	scalebench("stored", "import", "table.csv", "--from", "csv", "--set", "study=table", "--map", "workers=gpus", "--map", "throughput=img_s")
	scalebench("1.90", "scaling", "table")
	scalebench(name+".png", "plot", "speedup", "table", "-o", name+".png")
	c.draws(name + ".png")
}

const bareStudy = `
[study]
name = "bare"
[workload]
model = "mlp"
batch = 32
epochs = 2
warmup_epochs = 0
[data]
kind = "synthetic"
train_samples = 1024
test_samples = 128
[sweep]
workers = [1]
`

// emulators start programs of the other architecture.
var emulators = map[string]string{"arm64": "qemu-aarch64-static", "amd64": "qemu-x86_64-static"}

// bareTable holds runs measured elsewhere, so that throughputs do not depend on this
// machine; a short run here may have no steady state.
const bareTable = "gpus,img_s\n1,100\n2,190\n"

// TestRelease runs the whole workflow in a bare folder: the released programs bring
// everything they need, fonts included. Those of the other architecture are emulated. An
// emulated program cannot start its own children, so they start from existing run folders.
func TestRelease(t *testing.T) {
	c := newChroot(t)
	c.write("study.toml", bareStudy)
	c.write("table.csv", bareTable)
	c.release(runtime.GOARCH)
	c.says("scalebench-worker ", "/scalebench-worker", "version")
	c.says("127.0.0.1 ", "/scalebench-worker", "address", "--interface", "lo")
	c.says("native", "/scalebench", "check", "study.toml")
	c.says("1 done", "/scalebench", "run", "study.toml", "--db", "/native.db")
	c.says("done", "/scalebench", "status")
	c.says("bare/native", "/scalebench", "runs", "--db", "/native.db")
	c.says("native.png", "/scalebench", "plot", "accuracy", "bare", "-o", "native.png", "--db", "/native.db")
	c.draws("native.png")
	c.scales("table", "/native.db", "/scalebench")

	for other, name := range emulators {
		if other == runtime.GOARCH {
			continue
		}
		emulator, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		c.install(emulator, "emulator")
		c.release(other)
		c.says("scalebench-worker ", "/emulator", "/scalebench-worker", "version")
		c.says("native", "/emulator", "/scalebench", "check", "study.toml")
		c.says("1 done", "/emulator", "/scalebench", "collect", "--db", "/emulated.db")
		c.says("emulated.png", "/emulator", "/scalebench", "plot", "accuracy", "bare", "-o", "emulated.png", "--db", "/emulated.db")
		c.draws("emulated.png")
		c.scales("emulated-table", "/emulated.db", "/emulator", "/scalebench")
	}
}

// TestReleaseVersion checks that a program prints the version in its archive's name.
func TestReleaseVersion(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("..", "..", "dist", "scalebench-*-linux-"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("archives in dist: %q (%v), want one; run `make release`", archives, err)
	}
	want := strings.TrimSuffix(filepath.Base(archives[0]), "-linux-"+runtime.GOARCH+".tar.gz")
	want = strings.Replace(want, "-", " ", 1) + " "
	c := newChroot(t)
	c.release(runtime.GOARCH)
	if got := c.run("/scalebench", "version"); !strings.HasPrefix(got, want) {
		t.Errorf("version is %q, want it to begin with %q", got, want)
	}
}
