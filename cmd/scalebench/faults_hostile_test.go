//go:build slurm

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

var hostileClasses = []class{
	{name: "hostile run folder", fire: hostileFolder, lane: onThisHost},
	{name: "hostile study folder", fire: hostileStudy, lane: onThisHost},
}

// obstacles are objects that may exist where a file is expected.
var obstacles = []struct {
	name string
	put  func(path string) error
}{
	{"a FIFO", func(path string) error { return syscall.Mkfifo(path, 0o644) }},
	{"a link to /dev/zero", func(path string) error { return os.Symlink("/dev/zero", path) }},
	{"a link to /dev/stdin", func(path string) error { return os.Symlink("/dev/stdin", path) }},
	{"a directory", func(path string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o755) }},
	{"a link to itself", func(path string) error { return os.Symlink(filepath.Base(path), path) }},
	{"a link to nowhere", func(path string) error { return os.Symlink("nowhere", path) }},
	{"a socket", func(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o644, 0) }},
	{"nothing", func(string) error { return nil }},
	{"no bytes", func(path string) error { return os.WriteFile(path, nil, 0o644) }},
	{"null", func(path string) error { return os.WriteFile(path, []byte("null\n"), 0o644) }},
	{"a list", func(path string) error { return os.WriteFile(path, []byte("[1,2]\n"), 0o644) }},
	{"invalid UTF-8", func(path string) error { return os.WriteFile(path, []byte("{\"\xff\xfe\":\"\xc0\x80\"}\n"), 0o644) }},
	{"brackets", func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("[", 3<<20)), 0o644) }},
	{"8 GB of holes", func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<33)) }},
}

// recordFiles are the files of a run folder that commands read.
var recordFiles = []string{"point.json", "attempt.json", "state.json", "exit-0.json", "job.json", "heartbeat", "claim-0", "events",
	"events/rank-00000-0.jsonl", "events/supervisor-00000-0.jsonl"}

// hugeEvents are lines that a hostile or broken rank may have written.
var hugeEvents = []string{
	`{"t":1,"start":{"format":1,"unix":1e300,"writer":"rank","framework":"x","rank":0,"world_size":9223372036854775807,"local_rank":0,"restart":0,"ranks":9223372036854775807,"host":"h","pid":1}}`,
	`{"t":1e308,"steps":{"first":-9223372036854775807,"tick":1e308,"duration":[9223372036854775807],"samples":[9223372036854775807]}}`,
	`{"t":1,"steps":{"first":9223372036854775807,"tick":1,"duration":[1,1],"samples":[1,1]}}`,
	`{"t":1,"epoch":{"epoch":99999999999999999999999,"step":1,"samples":1,"seconds":1,"learning_rate":0}}`,
	`{"t":1,"evaluation":{"epoch":-1,"step":-1,"accuracy":0.5,"samples":-1,"seconds":-1e300}}`,
	`{"t":-1e308,"stop":{"status":"done","steps":-9223372036854775808,"epochs":-9223372036854775808}}`,
	"{\"t\":1,\"note\":{\"text\":\"\xff\xfe\x00\x1b[2J\u202e\u009b\"}}",
	strings.Repeat(`{"t":1,"note":`, 100000),
}

// hostileFolder adds a copy of a good run's folder with something unreadable in it. The
// other runs are collected with the right figures, a message names the one left out, and
// nothing waits forever.
func hostileFolder(tr *trial) error {
	unreadable := false // commands must report it with exit code 3
	ordinary := os.Getuid() == 0 && tr.rng.IntN(5) == 0
	if ordinary {
		if err := tr.as(nobody); err != nil {
			return err
		}
	}
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, out)
	}
	copied, err := tr.copyOfARun()
	if err != nil {
		return err
	}
	switch kind := tr.rng.IntN(8); {
	case ordinary:
		unreadable = true
		tr.how = tr.one("the folder", "point.json", "attempt.json", "events", "events/rank-00000-0.jsonl")
		path := filepath.Join(copied, strings.TrimPrefix(tr.how, "the folder"))
		tr.how += " root's alone"
		if err := errors.Join(os.Chmod(path, 0), os.Chown(path, 0, 0)); err != nil {
			return err
		}
	case kind < 5:
		file, obstacle := tr.one(recordFiles...), obstacles[tr.rng.IntN(len(obstacles))]
		tr.how = file + " is " + obstacle.name
		unreadable = (file == "point.json" || file == "attempt.json") && obstacle.name != "null"
		path := filepath.Join(copied, file)
		if err := errors.Join(os.RemoveAll(path), obstacle.put(path)); err != nil {
			return err
		}
	case kind < 7:
		n := tr.rng.IntN(len(hugeEvents))
		tr.how = fmt.Sprintf("event %d of the huge", n)
		f, err := os.OpenFile(filepath.Join(copied, "events", "rank-00000-0.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(hugeEvents[n] + "\n")
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if tr.rng.IntN(2) == 0 { // commands follow the events of a run that is under way
			os.Remove(filepath.Join(copied, "state.json"))
		}
	default:
		tr.how = "workers beyond an int"
		path := filepath.Join(copied, "point.json")
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		huge := strings.Replace(string(text), `"workers": 1,`, `"workers": 99999999999999999999,`, 1)
		if huge == string(text) {
			huge = strings.Replace(string(text), `"workers": 2,`, `"workers": 9223372036854775807,`, 1)
		}
		unreadable = strings.Contains(huge, "9999")
		if err := os.WriteFile(path, []byte(huge), 0o644); err != nil {
			return err
		}
	}
	os.Remove(filepath.Join(tr.dir, "scalebench.db")) // so that everything is collected again
	tr.collectsTheRest(filepath.Base(copied), unreadable)
	return errors.Join(os.RemoveAll(copied), os.RemoveAll(filepath.Join(tr.dir, "scalebench.db")))
}

// collectsTheRest checks that collect and status end, name what they cannot read, and that the
// study's real runs are stored correctly.
func (tr *trial) collectsTheRest(hostile string, unreadable bool) {
	for _, args := range [][]string{{"status", tr.name}, {"collect", tr.name}, {"collect"}, {"runs"}} {
		out, code := tr.run(args...)
		switch {
		case code != 0 && code != exitRunsFailed:
			tr.problem("%s beside a hostile folder: exit code %d: %.2000s", args[0], code, out)
		case args[0] == "collect" && unreadable && (code != exitRunsFailed || !strings.Contains(out, hostile)):
			tr.problem("%s does not say with exit code %d that %s cannot be read: exit code %d: %.2000s", args[0], exitRunsFailed, hostile, code, out)
		case strings.Contains(out, "-922337203685477580") || strings.Contains(out, "\x1b[2J"):
			tr.problem("%s prints %.2000q", args[0], out)
		}
	}
	var f findings
	for _, a := range tr.attempts(&f) {
		if a.Run.Name() != hostile && a.Verdict != nil && a.Verdict.Status.Good() {
			f.rightFigures(tr.run, a)
		}
	}
	tr.problems = append(tr.problems, f.wrong...)
	tr.problems = append(tr.problems, f.lost...)
}

// copyOfARun copies the folder of a good run as attempt 7 of its point.
func (tr *trial) copyOfARun() (string, error) {
	good, err := filepath.Glob(filepath.Join(tr.runs, tr.name, "*-a1"))
	if err != nil || len(good) == 0 {
		return "", fmt.Errorf("no run folder (%v)", err)
	}
	from := good[tr.rng.IntN(len(good))]
	to := strings.TrimSuffix(from, "-a1") + "-a7"
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cp: %w\n%s", err, out)
	}
	path := filepath.Join(to, "attempt.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return to, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), filepath.Base(from), filepath.Base(to))), 0o644)
}

// hostileStudy puts strange things into the study's folder, and strange studies next to it.
func hostileStudy(tr *trial) error {
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, out)
	}
	study := filepath.Join(tr.runs, tr.name)
	strange := filepath.Join(tr.runs, "strange")
	remove := []string{strange}
	tr.how = tr.one("100,000 files", "deep", "wrong names", "names that are no UTF-8", "a plan that is an obstacle", "a link to the runs folder")
	switch tr.how {
	case "100,000 files":
		for i := range 100_000 { // links are ten times as fast to create as files; a file may have 65,000
			name, to := fmt.Sprintf("foreign-%d", i), fmt.Sprintf("foreign-%d", i/50_000*50_000)
			var err error
			if name == to {
				err = os.WriteFile(filepath.Join(study, name), nil, 0o644)
			} else {
				err = os.Link(filepath.Join(study, to), filepath.Join(study, name))
			}
			if err != nil {
				return err
			}
		}
		defer func() {
			for i := range 100_000 {
				os.Remove(filepath.Join(study, fmt.Sprintf("foreign-%d", i)))
			}
		}()
	case "deep":
		deep := filepath.Join(study, "deep-r1-a1")
		remove = append(remove, deep)
		if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", 1500)), 0o755); err != nil {
			return err
		}
	case "wrong names":
		for _, name := range []string{"x-r1-a99999999999999999999", "x-r-1-a1", "-r1-a1", "x-r1-a0", ".new-1", "…-r1-a1", strings.Repeat("n", 240) + "-r1-a1"} {
			remove = append(remove, filepath.Join(study, name))
			if err := os.Mkdir(filepath.Join(study, name), 0o755); err != nil {
				return err
			}
		}
	case "names that are no UTF-8":
		for _, name := range []string{"\xff\xfe-r1-a1", "\x1b[2J-r1-a1", "a\nb-r1-a1"} {
			remove = append(remove, filepath.Join(study, name))
			if err := os.Mkdir(filepath.Join(study, name), 0o755); err != nil {
				return err
			}
		}
	case "a plan that is an obstacle":
		obstacle := obstacles[tr.rng.IntN(len(obstacles))]
		tr.how = "a plan that is " + obstacle.name
		if err := errors.Join(os.Mkdir(strange, 0o755), obstacle.put(filepath.Join(strange, "plan.json"))); err != nil {
			return err
		}
	default:
		if err := os.Symlink("..", strange); err != nil {
			return err
		}
	}
	os.Remove(filepath.Join(tr.dir, "scalebench.db"))
	tr.collectsTheRest("strange", false)
	for _, path := range remove {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
