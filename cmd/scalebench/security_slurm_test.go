//go:build slurm

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmModes checks that a job's files are readable only by its user, unless the study or a
// line of the site's setup shares them with the group, and that the command gets the secrets
// that its records hide.
func TestSlurmModes(t *testing.T) {
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	for name, test := range map[string]struct {
		setup, share string
		want         fs.FileMode
	}{"alone": {"true", "", 0o600}, "shared": {"umask 027", "", 0o640}, "group": {"true", "group", 0o640}} {
		b.write(name+".site.toml", "setup = [\""+test.setup+"\"]\n[[partitions]]\nname = \"main\"\n")
		b.write(name+".toml", `[study]
name = "`+name+`"
share = "`+test.share+`"
[command]
run = ["sh", "-c", "test $API_TOKEN = s3cr3tVALUE99 && echo loss: 1"]
environment = { API_TOKEN = "s3cr3tVALUE99" }
[[extract]]
name = "loss"
unit = ""
pattern = 'loss: (?P<value>[0-9.]+)'
[resources]
time = "5m"
[sweep]
framework = ["command"]
workers = [1]
`)
		b.must(0, nil, "submit", name+".toml", "--site", name+".site.toml", "--wait", "--interval", "1s")
		seen := 0
		for _, pattern := range []string{"rank-00000.log", "events/*.jsonl", "exit-0.json"} {
			paths, err := filepath.Glob(filepath.Join(b.dir, "runs", name, "*-a1", pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				seen++
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != test.want {
					t.Errorf("%s: %s is %v (%v), want %v", name, path, info.Mode(), err, test.want)
				}
			}
		}
		if seen != 5 { // the log, the events of rank, supervisor and telemetry, and the end
			t.Errorf("%s: %d files", name, seen)
		}
	}
}
