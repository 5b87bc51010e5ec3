//go:build slurm

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// speeds is a study whose runs print known throughputs, a second after they began: 1000 on one
// worker and 1900 on two, with a scatter of 10 %. Four runs of each decide.
const speeds = `
[study]
name = "NAME"
[command]
run = ["sh", "speed.sh", "{workers}", "{repeat}"]
start = "once"
[[extract]]
name = "throughput"
pattern = '(?P<value>\S+) img/s'
unit = "img/s"
[resources]
time = "10m"
[sweep]
framework = ["command"]
workers = [1, 2]
`

const speedProgram = `
speed=1000
scatter='90 110 95 105 100 98'
[ "$1" = 1 ] || { speed=1900; scatter='105 90 98 95 110 100'; }
repeat=$2
set -- $scatter
shift $((repeat - 1))
sleep 1
echo "$((speed * $1 / 100)) img/s"
`

// TestSlurmUntilDecided decides two studies on a real cluster: one by a command that is repeated, as by
// cron, and one by a command that waits and is killed three times.
func TestSlurmUntilDecided(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	b.write("speed.sh", speedProgram)
	b.write("cron.toml", strings.ReplaceAll(speeds, "NAME", "cron"))
	b.write("killed.toml", strings.ReplaceAll(speeds, "NAME", "killed"))
	b.write("site.toml", "[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\n")
	until := []string{"--site", "site.toml", "--until-decided", "--interval", "1s"}

	submit := append([]string{"submit", "cron.toml"}, until...)
	out := ""
	for deadline := time.Now().Add(longest); ; time.Sleep(time.Second) {
		var complaint string
		var code int
		if out, complaint, code = b.run(submit...); code == 0 {
			break
		}
		if code != exitUndecided || time.Now().After(deadline) {
			t.Fatalf("exit code %d\n%s\n%s%s", code, b.logs(), out, complaint)
		}
	}
	if !strings.Contains(out, "Decided. Use 2 workers") {
		t.Error(out)
	}
	b.looks("cron")

	submit = append([]string{"submit", "killed.toml", "--wait"}, until...)
	for kill := range 3 {
		cmd := exec.Command(filepath.Join(b.dir, "bin", "scalebench"), submit...)
		var output bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, b.env, &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(longest); b.begun("killed") <= 2*kill && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond)
		}
		if err := cmd.Process.Kill(); err != nil { // kill -9
			t.Errorf("it had ended: %v\n%s", err, output.String())
		}
		_ = cmd.Wait()
	}
	b.must(0, nil, submit...)
	b.looks("killed")
}

// begun counts a study's run folders.
func (b *bench) begun(study string) int { return b.having(study, "attempt.json") }

// started counts the runs of a study that started. A run whose command was killed before
// its job was submitted has a folder, and is replaced by another.
func (b *bench) started(study string) int { return b.having(study, "claim-0") }

// having counts the run folders of a study that have a file.
func (b *bench) having(study, name string) int {
	list, err := filepath.Glob(filepath.Join(b.dir, "runs", study, "*", name))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(list)
}

// looks checks that a study was looked at after 4 and after 8 runs, and has no more.
func (b *bench) looks(study string) {
	b.t.Helper()
	r, err := decide.Read(rundir.OpenStudy(filepath.Join(b.dir, "runs"), study))
	if err != nil {
		b.t.Fatal(err)
	}
	if len(r.Looks) != 2 || r.Looks[0].Runs != 4 || r.Looks[1].Runs != 8 || !r.Looks[1].Decided || r.Looks[1].Number != 2 || b.started(study) != 8 {
		text, _ := os.ReadFile(filepath.Join(b.dir, "runs", study, "looks.json"))
		b.t.Errorf("%s: %d of %d attempts started, looks:\n%s", study, b.started(study), b.begun(study), text)
	}
}
