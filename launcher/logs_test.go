package launcher

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A log that becomes shorter, or is replaced, is printed from its beginning.
func TestFollowOfAnotherFile(t *testing.T) {
	log := filepath.Join(t.TempDir(), "job.log")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	steps := []func(){
		func() {}, // not there yet
		func() { write(log, "first\n") },
		func() { write(log, "first\nmore\n") },
		func() { write(log, "anew\n") }, // shorter, as after a requeue that truncates it
		func() { // another one, and longer
			write(log+".new", "replaced and longer\n")
			if err := os.Rename(log+".new", log); err != nil {
				t.Fatal(err)
			}
		},
		func() {},
	}
	var out bytes.Buffer
	err := Follow(t.Context(), &out, rundir.Folder(filepath.Dir(log)), log, time.Microsecond, func() bool {
		steps[0]()
		steps = steps[1:]
		return len(steps) == 0
	})
	if d := cmp.Diff("first\nmore\nanew\nreplaced and longer\n", out.String()); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// A grower appends to a file whenever it is read, like a program that prints faster than its log is copied. The
// fifth read fails the test: copying would never end.
type grower struct {
	t     *testing.T
	file  *os.File
	times int
}

func (g *grower) Write(text []byte) (int, error) {
	if g.times++; g.times > 4 {
		return 0, io.ErrShortWrite
	}
	if _, err := g.file.Write(text); err != nil {
		g.t.Error(err)
	}
	return len(text), nil
}

// Without -f the existing content is printed without waiting for more.
func TestFollowEnds(t *testing.T) {
	log := filepath.Join(t.TempDir(), "job.log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	if err := Follow(t.Context(), &grower{t: t, file: f}, rundir.Folder(filepath.Dir(log)), log, time.Microsecond, func() bool { return true }); err != nil {
		t.Error(err)
	}
}

// An event file's name may contain any rank: the folder is listed once instead of searching for each rank.
func TestLogOfAbsurdRank(t *testing.T) {
	run := rundir.Folder(t.TempDir())
	if log := logOf(run, 1<<62); log != "" {
		t.Errorf("%q of an empty folder", log)
	}
	for _, rank := range []int{0, 8, 16} {
		if err := os.WriteFile(run.RankLog(rank), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for rank, want := range map[int]int{0: 0, 7: 0, 8: 8, 11: 8, 16: 16, 1 << 62: 16} {
		if got := logOf(run, rank); got != run.RankLog(want) {
			t.Errorf("rank %d: %s, want that of rank %d", rank, got, want)
		}
	}
}

// A link out of the run folder is not followed, whichever part of the log's path it is: in
// another user's run folder it may lead to a file that only the reader may read.
func TestFollowNoLink(t *testing.T) {
	dir := t.TempDir()
	run := rundir.Folder(filepath.Join(dir, "run"))
	for _, folder := range []string{run.Path(), filepath.Join(dir, "home")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"home/rank-00001.log", "run/within"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"run/near": "within", "run/rank-00000.log": "../home/rank-00001.log", "run/logs": "../home", "run/whole": filepath.Join(dir, "home/rank-00001.log"),
		"run/same": filepath.Join(dir, "run/within")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"within": "run/within\n", "near": "run/within\n", "same": "run/within\n",
		"rank-00000.log": "", "logs/rank-00001.log": "", "whole": ""} {
		var out bytes.Buffer
		err := Follow(t.Context(), &out, run, filepath.Join(run.Path(), name), time.Microsecond, func() bool { return true })
		if out.String() != want || (want == "") != errors.Is(err, sharedfs.ErrNotRegular) {
			t.Errorf("%s: error %v, printed %q, want %q", name, err, out.String(), want)
		}
	}
}

// All commands name the same log of a run: rank 0's, or the job's if rank 0's log is missing or was
// empty when the run ended.
func TestLogToLookAt(t *testing.T) {
	for name, test := range map[string]struct {
		rank, job string // contents; "-": no such file
		status    metrics.Status
		want      string
	}{
		"none":                  {"-", "-", metrics.Running, ""},
		"the job's":             {"-", "oom", metrics.OutOfMemory, "job.log"},
		"rank 0's":              {"loading", "oom", metrics.OutOfMemory, "rank-00000.log"},
		"silent":                {"", "oom", metrics.OutOfMemory, "job.log"},
		"silent so far":         {"", "begins", metrics.Running, "rank-00000.log"},
		"both silent":           {"", "", metrics.Failed, "rank-00000.log"},
		"without a job's":       {"", "-", metrics.Failed, "rank-00000.log"},
		"rank 0's, of no job's": {"loading", "-", metrics.Failed, "rank-00000.log"},
	} {
		run := rundir.Folder(t.TempDir())
		for path, content := range map[string]string{run.RankLog(0): test.rank, run.JobLog(): test.job} {
			if content == "-" {
				continue
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		traces := Traces{}
		traces.readJobLog(run) // of a run that ended badly
		s := State{Attempt: &Attempt{Run: run}, Status: test.status, Traces: traces}
		want := ""
		if test.want != "" {
			want = filepath.Join(string(run), test.want)
		}
		if got := s.Log(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
