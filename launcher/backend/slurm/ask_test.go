package slurm

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// answering returns a client whose squeue and sacct print the given texts.
func answering(t *testing.T, dir, queue, history string) *slurm.Client {
	t.Helper()
	for name, answer := range map[string]string{"squeue": queue, "sacct": history} {
		if err := os.WriteFile(filepath.Join(dir, name+".out"), []byte(answer), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncat '"+dir+"/"+name+".out'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &slurm.Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
}

// TestQuerySlurmAboutForgottenJobs checks that jobs that the controller no longer knows are taken from the database
// only if they have ended.
func TestQuerySlurmAboutForgottenJobs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		states []string // of the job's incarnations, in sacct's order
		want   slurm.State
	}{
		{"ended", []string{"COMPLETED"}, slurm.Completed},
		{"requeued before it ended", []string{"REQUEUED", "COMPLETED"}, slurm.Completed},
		{"a node failed, then it was cancelled", []string{"NODE_FAIL", "CANCELLED by 0"}, slurm.Cancelled},
		{"lost by the controller while it ran", []string{"RUNNING"}, ""},
		{"lost by the controller while it waited", []string{"REQUEUED", "PENDING"}, ""},
		{"a state of a later Slurm", []string{"EXPELLED"}, "EXPELLED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var rows strings.Builder
			for i, state := range tt.states {
				at := string(rune('1' + i))
				rows.WriteString(strings.Join([]string{"7", "s/p-r1-a1-0f", "bench", "main", state, "None", "0:0", "0:0", "node1",
					"179522824" + at, "179522824" + at, "179522825" + at, ""}, "\x1f") + "\n")
			}
			client := answering(t, dir, "", rows.String())
			a := &launcher.Attempt{Run: rundir.Folder(filepath.Join(dir, "p-r1-a1")), Record: launcher.Record{JobName: "s/p-r1-a1-0f"}}
			said, err := askSlurm(context.Background(), client, []*launcher.Attempt{a})
			if err != nil {
				t.Fatal(err)
			}
			var got slurm.State
			if job := said.jobs[a.Run]; job != nil {
				got = job.State
			}
			if got != tt.want {
				t.Errorf("taken as %q, want %q", got, tt.want)
			}
		})
	}
}

// For any number of jobs, a survey runs squeue once and sacct once, and no sacct if squeue knows
// all jobs.
func TestQuerySlurmUsesTwoCalls(t *testing.T) {
	for _, n := range []int{1, maxNames, maxNames + 1, 5000} {
		dir := t.TempDir()
		calls := filepath.Join(dir, "calls")
		queue := filepath.Join(dir, "queue")
		var attempts []*launcher.Attempt
		var rows strings.Builder
		for i := range n {
			name := fmt.Sprintf("s/p%d-r1-a1-0f", i)
			attempts = append(attempts, &launcher.Attempt{Run: rundir.Folder(filepath.Join(dir, fmt.Sprint("p", i, "-r1-a1"))), Record: launcher.Record{JobName: name}})
			rows.WriteString(strings.Join([]string{fmt.Sprint(i + 1), name, "main", "RUNNING", "None", "node1", "1795228241", "1795228241", "N/A", ""}, "\x1f") + "\n")
		}
		for name, answer := range map[string]string{"squeue": "cat '" + queue + "'", "sacct": "true"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" >>'"+calls+"'\n"+answer+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		client := &slurm.Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
		for _, c := range []struct {
			queue, calls string
			known        int
		}{{"", "squeue\nsacct\n", 0}, {rows.String(), "squeue\n", n}} {
			if err := errors.Join(os.WriteFile(queue, []byte(c.queue), 0o644), os.WriteFile(calls, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			said, err := askSlurm(context.Background(), client, attempts)
			if err != nil || len(said.jobs) != c.known {
				t.Errorf("%d jobs: %d found, want %d; %v", n, len(said.jobs), c.known, err)
			}
			if text, err := os.ReadFile(calls); err != nil || string(text) != c.calls {
				t.Errorf("%d jobs, of which squeue knows %d, took %q, want %q; %v", n, c.known, text, c.calls, err)
			}
		}
	}
}

// TestQuerySlurmWithUnreadableAnswer checks that a line that cannot be parsed does not affect other jobs, and that
// nothing is concluded about its job, even from other answers.
func TestQuerySlurmWithUnreadableAnswer(t *testing.T) {
	line := func(fields string) string { return strings.ReplaceAll(fields, "|", "\x1f") + "\n" }
	for _, tt := range []struct {
		name, queue, history string
		jobs, odd            []string
	}{
		{name: "another job of the user's", queue: line("1|a|main|RUNNING|None|n1|100|110|200|") + line("2|b|main|RUNNING|None|n1|100|110|200|") +
			line("9|somebody|main|RUNNING|None|n[1-|100|110|200|"), jobs: []string{"a", "b"}},
		{name: "no job's", queue: "Welcome!\n" + line("1|a|main|RUNNING|None|n1|100|110|200|") + line("2|b|main|RUNNING|None|n1|100|110|200|"),
			jobs: []string{"a", "b"}},
		{name: "its own", queue: line("1|a|main|RUNNING|None|n1|100|110|200|") + line("2|b|main|RUNNING|None|n1|yesterday|110|200|"),
			history: line("2|b|bench|main|FAILED|None|1:0|0:0|n1|100|110|120|"), jobs: []string{"a"}, odd: []string{"b"}},
		{name: "its own, with an earlier copy", queue: line("1|a|main|RUNNING|None|n1|100|110|200|") +
			line("2|b|main|FAILED|None|n1|100|110|200|") + line("3|b|main|RUNNING|None|n1|100|110|200||"), jobs: []string{"a"}, odd: []string{"b"}},
		{name: "in the database", queue: line("1|a|main|RUNNING|None|n1|100|110|200|"),
			history: line("2|b|bench|main|NODE_FAIL|None|1:0|0:0|n1|100|110|120|") + line("2|b|bench|main|COMPLETED|None|x|0:0|n1|100|110|120|"),
			jobs:    []string{"a"}, odd: []string{"b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var attempts []*launcher.Attempt
			for i, name := range []string{"a", "b"} {
				attempts = append(attempts, &launcher.Attempt{Run: rundir.Folder(filepath.Join(dir, fmt.Sprintf("p-r%d-a1", i+1))), Record: launcher.Record{JobName: name}})
			}
			said, err := askSlurm(context.Background(), answering(t, dir, tt.queue, tt.history), attempts)
			if err != nil {
				t.Fatal(err)
			}
			var jobs, odd []string
			for _, a := range attempts {
				if said.jobs[a.Run] != nil {
					jobs = append(jobs, a.Record.JobName)
				}
				if said.odd[a.Run] != nil {
					odd = append(odd, a.Record.JobName)
				}
			}
			if d := cmp.Diff([2][]string{tt.jobs, tt.odd}, [2][]string{jobs, odd}); d != "" {
				t.Errorf("jobs and what cannot be read (-want +got):\n%s", d)
			}
		})
	}
}

func TestPartitionNames(t *testing.T) {
	for name, c := range map[string]struct {
		scontrol string // "" means that Slurm is not installed
		want     []string
		err      string
	}{
		"known":    {"echo 'PartitionName=main State=UP MaxTime=UNLIMITED'; echo 'PartitionName=gpu State=UP MaxTime=UNLIMITED'", []string{"main", "gpu"}, ""},
		"no Slurm": {"", nil, ""},
		"down":     {"echo 'slurm_load_partitions error: Unable to contact slurm controller (connect failure)' >&2; exit 1", nil, "Slurm cannot be reached"},
	} {
		bin := t.TempDir()
		if c.scontrol != "" {
			if err := os.WriteFile(filepath.Join(bin, "scontrol"), []byte("#!/bin/sh\n"+c.scontrol+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		b := &Backend{Client: &slurm.Client{Env: []string{"PATH=" + bin}}}
		got, err := b.Partitions(t.Context())
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSiteBackend(t *testing.T) {
	for backend, want := range map[string]string{"": "", "slurm": "",
		"local": `site.toml: backend: "local" is not a scheduler; valid: slurm`,
		"pbs":   `site.toml: backend: "pbs" is not a scheduler; valid: slurm`} {
		b, err := launcher.Scheduler(launcher.Options{Creator: launcher.Creator{Folder: rundir.OpenStudy(t.TempDir(), "s"), Site: &study.Site{File: "site.toml", Backend: backend}}})
		switch {
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%q: %v, want %q", backend, err, want)
		case want == "" && (err != nil || b.Name() != stdcmp.Or(backend, backendName)):
			t.Errorf("%q: %v, %v", backend, b, err)
		}
	}
}
