package scaling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A warning that thirty runs have is shown once, with the number of runs, even if its numbers
// differ between the runs. A warning of a single run names the run.
func TestEqualWarningsOfRunsShareALine(t *testing.T) {
	obs := join(runs(1, 100, 101), runs(2, 190, 191), runs(4, 380))
	for i := range obs {
		obs[i].Warnings = []string{"throughput is stated by a log"}
	}
	obs[0].Warnings = append(obs[0].Warnings, "2 ranks on node1 compute with 4 threads on 2 CPUs")
	obs[2].Warnings = append(obs[2].Warnings, "4 ranks on node7 compute with 8.5 threads on 2 CPUs")
	obs[4].Warnings = append(obs[4].Warnings, "the clock jumped")
	c := analyse(t, obs, Options{})[0]
	want := []string{
		"1 and 2 workers: 2 of 4 runs: 2 ranks on node1 compute with 4 threads on 2 CPUs (one run's figures; the others differ)",
		"1, 2 and 4 workers: 5 of 5 runs: throughput is stated by a log",
		"4 workers: s/w4-r1-a1: the clock jumped",
	}
	var got []string
	for _, r := range runWarnings(c) {
		got = append(got, r.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
