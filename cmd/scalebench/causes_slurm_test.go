//go:build slurm

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmFailuresNameTheirCause runs real jobs that fail, and checks the message for each
// and the exit code in the database.
func TestSlurmFailuresNameTheirCause(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	for _, f := range []struct {
		failure
		site, exit string
	}{
		{failure{name: "memory", study: "[command]\nrun = [\"sh\", \"x.sh\"]\n[resources]\nmemory = \"300MB\"\nexclusive = false\n",
			// It keeps 800 MB until the next memory check; there is one per second.
			files: map[string]string{"x.sh": "head -c 800M /dev/zero | tail -c 800M | sleep 100\n"},
			what:  "exceeded memory limit", log: "rank-00000.log", todo: "Raise resources.memory"}, "", ""},
		{failure{name: "time", study: "[command]\nrun = [\"sleep\", \"1000\"]\n[resources]\ntime = \"1m\"\nexclusive = false\n",
			what: "DUE TO TIME LIMIT", log: ".log", todo: "Raise resources.time"}, "", ""},
		{failure{name: "signal", study: "[command]\nrun = [\"sh\", \"x.sh\"]\n[resources]\nexclusive = false\n",
			files: map[string]string{"x.sh": "kill -SEGV $$\n"},
			what:  "failed: killed by SIGSEGV; it printed nothing; exit code 139", log: "rank-00000.log"}, "", "139:0"},
		{failure{name: "exception", study: "[command]\nrun = [\"/usr/bin/python3\", \"train.py\"]\n[resources]\nexclusive = false\n",
			files: map[string]string{"train.py": "d = {}\nd['labels']\n"},
			what:  "failed: KeyError: 'labels' (train.py:2); exit code 1", log: "rank-00000.log"}, "", "1:0"},
		{failure{name: "interpreter", study: "[command]\nrun = [\"no-such-python\", \"x.py\"]\n[resources]\nexclusive = false\n",
			what: "failed: \"no-such-python\" is not on the PATH of node", log: "rank-00000.log", todo: "Correct command.run"}, "", "127:0"},
		{failure{name: "setup", study: "[command]\nrun = [\"true\"]\n[resources]\nexclusive = false\n",
			what: "failed: setup failed: no-such-tool", log: "job.log", todo: "Correct modules or setup"}, "setup = [\"no-such-tool\"]\n", "127:0"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c)
			b.write("study.toml", "[study]\nname = \"f\"\n"+f.study+"[sweep]\nframework = [\"command\"]\nworkers = [1]\n")
			b.write("site.toml", f.site)
			for name, text := range f.files {
				b.write(name, text)
			}
			_, said, code := b.run("submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s", "--unchecked")
			if code != exitRunsFailed {
				t.Fatalf("exit code %d:\n%s", code, said)
			}
			f.told(t, b.dir, said)
			out, _, _ := b.run("show", "f/", "--format", "json")
			if want := fmt.Sprintf(`"exit_code": %q`, f.exit); f.exit != "" && !strings.Contains(out, want) {
				t.Errorf("show does not tell %s:\n%s", want, out)
			} else if strings.Contains(out, `"exit_code": null`) {
				t.Errorf("the exit code is null:\n%s", out)
			}
		})
	}
}

// TestSlurmMungeDead checks that without munge, when Slurm's commands reach no daemon, the exit
// code is 4, and no run counts as failed.
func TestSlurmMungeDead(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	b := newBench(t, c)
	b.write("study.toml", smallStudy("away", 20, "[sweep]\nworkers = [1]\n"))
	if err := c.Stop("munged", "TERM"); err != nil {
		t.Fatal(err)
	}
	_, said, code := b.run("submit", "study.toml")
	if code != exitScheduler || !strings.Contains(said, "Slurm cannot be reached") || strings.Contains(said, `\n`) || !strings.Contains(said, "munge") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if err := c.Restart("munged"); err != nil {
		t.Fatal(err)
	}
	b.must(0, nil, "submit", "study.toml", "--wait", "--interval", "1s")
	for _, a := range b.attempts("away") {
		if a.Number != 1 || a.Verdict == nil || a.Verdict.Status != metrics.Done {
			t.Errorf("%s: %+v, want one attempt, done", a.Record.ID, a.Verdict)
		}
	}
}
