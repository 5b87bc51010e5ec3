package worker

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// printing returns a run of 4 ranks whose command prints its rate.
func printing(t *testing.T, change func(*study.Command)) framework.Rank {
	t.Helper()
	run := rundir.Folder(t.TempDir())
	for _, folder := range []string{run.Events(), run.Output()} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := study.Point{Framework: "command", Workers: 4, WorkerBatch: 8, Command: study.Command{Start: "rank", Run: study.CommandLine{"x"},
		Patterns: []study.Pattern{{Name: "throughput", Pattern: `^rate (?P<value>\S+)$`, Unit: "img/s", Per: "run", Of: "run"}}}}
	if change != nil {
		change(&p.Command)
	}
	return framework.Rank{Point: p, Run: run, World: world.World{Size: 4, LocalSize: 4, Nodes: 1, Restart: 1}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// rankEvents reads rank 0's event file; it returns nil if the file does not exist.
func rankEvents(t *testing.T, s framework.Rank) (list []metrics.Event) {
	t.Helper()
	f, err := os.Open(s.Run.EventFile("rank", 0, s.World.Restart))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := metrics.NewReader(f, f.Name(), 0, 0); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
}

// A program's output becomes one event file for all ranks. The output of an earlier incarnation
// in the same log is ignored, and line numbers refer to the whole
// log.
func TestExtractFromTheLog(t *testing.T) {
	s := printing(t, nil)
	log := s.Run.RankLog(0)
	write(t, log, "# first incarnation\nrate 5\n# second incarnation: echo '\nrate 6\n'\n")
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	o := output{log: log, offset: info.Size()}
	write(t, log, "warming up\nrate 7.5\n")
	if err := collect(s, o, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	events := rankEvents(t, s)
	start, figure, stop := events[0].Start, (*metrics.Figure)(nil), events[len(events)-1]
	for _, e := range events {
		if e.Figure != nil {
			figure = e.Figure
		}
	}
	if start.Covers() != 4 || start.WorldSize != 4 || start.Restart != 1 || time.Since(time.Unix(int64(start.Unix), 0)) < 59*time.Second {
		t.Errorf("start %+v", start)
	}
	if figure == nil || figure.Value != 7.5 || figure.Unit != "samples/s" || figure.Line != 7 || figure.File != "rank-00000.log" || figure.Note == "" {
		t.Errorf("figure %+v", figure)
	}
	if stop.Stop == nil || stop.Stop.Status != metrics.StopDone || stop.Time < 59 || stop.Time > 120 {
		t.Errorf("the end of a minute's run: %+v", stop)
	}
}

// No match, two writers, or several files to read give an error that says so, and no event file.
func TestExtractErrors(t *testing.T) {
	file := func(c *study.Command) { c.Log = "run-*/{workers}.log" }
	for name, c := range map[string]struct {
		change func(*study.Command)
		files  map[string]string // below the run folder
		want   string
	}{
		"nothing":     {nil, map[string]string{"rank-00000.log": "rate: 7\n"}, "rank-00000.log: nothing found by the pattern of throughput"},
		"cut off":     {nil, map[string]string{"rank-00000.log": "rate 7"}, "nothing found"},
		"no log":      {nil, nil, "the log to read: open"},
		"no format":   {func(c *study.Command) { c.Patterns = nil }, map[string]string{"rank-00000.log": "rate 7\n"}, "call scalebench.step() in it"},
		"no file":     {file, map[string]string{"rank-00000.log": "rate 7\n"}, "without writing "},
		"two files":   {file, map[string]string{"output/run-1/4.log": "rate 7\n", "output/run-2/4.log": "rate 8\n"}, "names 2 files (4.log, 4.log); one log is one run"},
		"file":        {file, map[string]string{"output/run-1/4.log": "rate 7\n", "output/run-2/5.log": "rate 8\n"}, ""},
		"two writers": {nil, map[string]string{"rank-00000.log": "rate 7\n", "events/rank-00000-1.jsonl": ""}, "the program reports through scalebench.py, and command.extract reads its output too; keep one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			s := printing(t, c.change)
			for path, text := range c.files {
				path = filepath.Join(s.Run.Path(), path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, path, text)
			}
			err := collect(s, output{log: s.Run.RankLog(0)}, time.Now())
			events := rankEvents(t, s)
			switch {
			case c.want == "" && (err != nil || len(events) < 3):
				t.Errorf("%d events, %v", len(events), err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case c.want != "" && len(events) > 0:
				t.Errorf("events after an error: %+v", events)
			}
		})
	}
}

// The user's own files that a run uses are recorded: copies in the run folder, and the files next
// to the study that a command's arguments name.
func TestOwnFilesAreRecorded(t *testing.T) {
	folder := t.TempDir()
	s := printing(t, func(c *study.Command) {
		c.Folder = folder
		c.Run = study.CommandLine{"python3", "sub/train.py", "--config", filepath.Join(folder, "a.json"), "--out", "{output}", "missing.txt", "sub"}
	})
	for _, path := range []string{"sub/train.py", "a.json"} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, "before")
	}
	if err := os.Mkdir(s.Run.OwnFiles(), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.Run.OwnFiles(), "net.py"), "before")
	f, err := framework.Find("command")
	if err != nil {
		t.Fatal(err)
	}
	const before = "6db7d803e74f1ffa7d8f5adc0bf95b3e15bf4c8373fffadf546227cc6c6742cb" // printf before | sha256sum
	if diff := cmp.Diff(map[string]string{"sub/train.py": before, "a.json": before, "net.py": before}, ownFiles(f, s)); diff != "" {
		t.Error(diff)
	}
}
