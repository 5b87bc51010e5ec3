//go:build slurm

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmEnergy runs a program on two nodes whose counters rise by 100 and 200 J a
// second, through slurmd, slurmdbd and sacct. The recorded energy is between the
// energy while the program ran and the energy of the whole batch script. The samplers read
// 300 W from the same counters.
func TestSlurmEnergy(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{Nodes: 2, Watts: 100})
	b := newBench(t, c)
	b.write("site.toml", "")
	const study = `[study]
name = "NAME"
[command]
run = ["sh", "-c", "sleep 6; echo took 6"]
[[extract]]
name = "took"
pattern = '^took (?P<value>\d+)'
unit = "s"
[resources]
time = "10m"
workers_per_node = 1
exclusive = EXCLUSIVE
[sweep]
framework = ["command"]
workers = [2]
`
	name := func(name, exclusive string) string {
		b.write(name+".toml", strings.NewReplacer("NAME", name, "EXCLUSIVE", exclusive).Replace(study))
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		return name
	}
	read := name("read", "true")
	var shown struct {
		Result struct {
			Watts       *float64
			RunSeconds  float64  `json:"run_seconds"`
			SlurmJoules *float64 `json:"slurm_joules"`
		}
		Energy []struct{ Of, Source string }
	}
	for deadline := time.Now().Add(longest); shown.Result.SlurmJoules == nil; time.Sleep(300 * time.Millisecond) {
		b.must(0, nil, "collect", read) // sacct gets the energy later
		b.must(0, &shown, "show", read+"/", "--format", "json")
		if time.Now().After(deadline) {
			t.Fatalf("no energy by Slurm: %+v\n%s", shown, b.slurm(c, "sacct", "-P", "-o", "JobID,JobName,State,NNodes,ElapsedRaw,ConsumedEnergyRaw"))
		}
	}
	a := b.attempts(read)[0]
	var exit launcher.Exit
	text, err := os.ReadFile(a.Run.Exit(0))
	if err == nil {
		err = json.Unmarshal(text, &exit)
	}
	if err != nil {
		t.Fatal(err)
	}
	// slurmd reads a node once a second, and each end of the step falls between two
	// readings.
	const watts, slack = 300.0, 2.0
	joules := *shown.Result.SlurmJoules
	low, high := watts*(shown.Result.RunSeconds-slack), watts*(exit.EndUnix-exit.StartUnix+slack)
	if joules < low || joules > high {
		t.Errorf("%g J by Slurm, want %g (the program, %g s) to %g (the script)", joules, low, shown.Result.RunSeconds, high)
	}
	t.Logf("%g J by Slurm; 300 W for the program's %.2f s are %.0f J, for the script's %.2f s %.0f J", joules, shown.Result.RunSeconds, watts*shown.Result.RunSeconds, exit.EndUnix-exit.StartUnix, watts*(exit.EndUnix-exit.StartUnix))
	// The counters move ten times a second, or less often on a busy machine.
	if w := shown.Result.Watts; w == nil || *w < 0.7*watts || *w > 1.3*watts {
		t.Errorf("the samplers read %v W, want 300", w)
	} else {
		t.Logf("%.1f W by the samplers", *w)
	}
	if !slices.ContainsFunc(shown.Energy, func(e struct{ Of, Source string }) bool {
		return strings.Contains(e.Source, "Slurm's accounting (pm_counters), step "+a.Submission.JobID+".0, 2 nodes, whole, read every 1 sec")
	}) {
		t.Errorf("sources: %+v", shown.Energy)
	}

	_, complaint, code := b.run("collect", name("shared", "false"))
	if code != 0 || !strings.Contains(complaint, "did not read the energy of 1 run from Slurm's accounting") {
		t.Errorf("shared nodes: exit code %d\n%s", code, complaint)
	}
}
