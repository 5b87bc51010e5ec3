package slurmtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/scalebench/scalebench/slurm"
)

// The fake commands are links to this test binary, as in the tests that use them.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); slices.Contains(FakeCommands, name) {
		os.Exit(FakeMain(name))
	}
	os.Exit(m.Run())
}

func client(t *testing.T) (*slurm.Client, func(file, text string), string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range FakeCommands {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return &slurm.Client{Env: []string{"PATH=" + dir, FakeVariable + "=" + dir}}, func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}, dir
}

func TestClientOnFakes(t *testing.T) {
	ctx := context.Background()
	c, write, dir := client(t)
	write("a.sh", "#!/bin/bash\n#SBATCH --job-name=first\n#SBATCH --partition=gpu\n")
	write("b.sh", "#!/bin/bash\n#SBATCH --job-name=second\n")
	for i, script := range []string{"a.sh", "b.sh"} {
		if s, err := c.Submit(ctx, filepath.Join(dir, script)); err != nil || s.ID != []string{"1", "2"}[i] {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	write("states", "* RUNNING\nsec* FAILED 3:0 NonZeroExitCode\n")
	jobs, err := c.Queue(ctx, slurm.Filter{})
	if err != nil || len(jobs) != 2 || jobs[0].State != slurm.Running || jobs[0].Partition != "gpu" || jobs[1].Reason != "NonZeroExitCode" {
		t.Errorf("%+v, %v", jobs, err)
	}
	jobs, err = c.Accounting(ctx, time.Now(), slurm.Filter{Names: []string{"second"}})
	if err != nil || len(jobs) != 1 || jobs[0].State != slurm.Failed || *jobs[0].ExitCode != (slurm.ExitCode{Status: 3}) || jobs[0].End.IsZero() {
		t.Errorf("%+v, %v", jobs, err)
	}
	if err := c.Cancel(ctx, "1", "2"); err != nil {
		t.Error(err)
	}
	if j, err := c.Show(ctx, "1"); err != nil || j.State != slurm.Cancelled {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := c.Show(ctx, "2"); err != nil || j.State != slurm.Failed {
		t.Errorf("cancelled after its end: %+v, %v", j, err)
	}
	if _, err := c.Show(ctx, "3"); !errors.Is(err, slurm.ErrNoJob) {
		t.Error(err)
	}
	write("no-accounting", "")
	if _, err := c.Accounting(ctx, time.Now(), slurm.Filter{}); !errors.Is(err, slurm.ErrNoAccounting) {
		t.Error(err)
	}
	write("refuse", "sbatch: error: Batch job submission failed: Invalid qos specification\n")
	var refused *slurm.RefusedError
	if _, err := c.Submit(ctx, filepath.Join(dir, "a.sh")); !errors.As(err, &refused) || !strings.HasSuffix(refused.Message, "Invalid qos specification") {
		t.Error(err)
	}
	write("down", "")
	var gone *slurm.UnreachableError
	if _, err := c.Queue(ctx, slurm.Filter{}); !errors.As(err, &gone) {
		t.Error(err)
	}
}

// TestSameFormAsRecorded parses recorded lines and has the fake write them again.
func TestSameFormAsRecorded(t *testing.T) {
	recorded := func(name string) (command string, lines []string) {
		a, err := txtar.ParseFile("../testdata/transcripts/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		return string(a.Comment), strings.Split(strings.TrimSuffix(string(a.Files[0].Data), "\n"), "\n")
	}
	const separator = "\x1f"
	command, lines := recorded("sacct-mixed")
	_, fields, _ := strings.Cut(command, "--format=")
	fields, _, _ = strings.Cut(fields, "'")
	for _, line := range lines {
		j := job{}
		for i, v := range strings.Split(line, separator) {
			j[strings.Split(fields, ",")[i]] = v
		}
		got, err := accountingLine(strings.Split(fields, ","), separator, j)
		if d := cmp.Diff(line, got); d != "" || err != nil {
			t.Errorf("%v (-recorded +fake):\n%s", err, d)
		}
	}
	_, lines = recorded("squeue-mixed")
	format := "%i\x1f%j\x1f%P\x1f%T\x1f%r\x1f%N\x1f%V\x1f%S\x1f%e\x1f%k"
	for _, line := range lines {
		j := job{"JobID": "5", "Comment": "", "NodeList": "None assigned", "Start": "Unknown", "End": "Unknown"}
		for i, v := range strings.Split(line, separator) {
			if field := queueFields[format[i*3+1]]; v != "" && v != "N/A" && v != "(null)" {
				j[field] = v
			}
		}
		got, err := queueLine(format, j)
		if d := cmp.Diff(line, got); d != "" || err != nil {
			t.Errorf("%v (-recorded +fake):\n%s", err, d)
		}
	}
	var out, complaint bytes.Buffer
	if run(t.TempDir(), "sinfo", nil, &out, &complaint) == 0 || complaint.Len() == 0 {
		t.Error("a command that is not faked succeeded")
	}
}
