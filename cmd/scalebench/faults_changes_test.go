//go:build slurm

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var changeClasses = []class{
	{name: "worker replaced", fire: workerReplaced, lane: onCluster},
	{name: "study edited", fire: studyEdited, lane: onCluster},
	{name: "runs folder moved", fire: runsMoved, lane: onThisHost},
	{name: "runs folder moved under jobs", fire: runsMovedUnderJobs, lane: onCluster},
}

// workerReplaced removes or replaces the worker program between the submission and the start of
// the job.
func workerReplaced(tr *trial) error {
	tr.site.setup = fmt.Sprintf("until [ -e %s ]; do sleep 0.1; done", quoted(filepath.Join(tr.dir, "go")))
	tr.files()
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	tr.how = tr.one("removed", "a directory", "not executable", "empty", "another program", "cut off", "a link to itself")
	worker, aside := filepath.Join(tr.dir, "worker"), filepath.Join(tr.dir, "worker.aside")
	if err := os.Rename(worker, aside); err != nil {
		return err
	}
	var err error
	switch tr.how {
	case "a directory":
		err = os.Mkdir(worker, 0o755)
	case "not executable":
		tr.file("worker", "#!/bin/sh\n", 0o644)
	case "empty":
		tr.file("worker", "", 0o755)
	case "another program":
		tr.file("worker", "#!/bin/sh\necho hello\n", 0o755)
	case "cut off":
		tr.file("worker", "\x7fELF\x02\x01\x01", 0o755)
	case "a link to itself":
		err = os.Symlink("worker", worker)
	}
	tr.file("go", "", 0o644)
	if err != nil {
		return err
	}
	if err := tr.emptyQueue(); err != nil {
		return err
	}
	if out, code := tr.run("status", tr.name); code != 0 && code != exitRunsFailed || strings.Contains(out, "done") {
		tr.problem("status of runs without a worker: exit code %d: %s", code, out)
	}
	tr.site.setup = ""
	tr.files()
	return errors.Join(os.RemoveAll(worker), os.Rename(aside, worker))
}

// emptyQueue waits until the jobs have ended.
func (tr *trial) emptyQueue() error {
	_, err := tr.emptied()
	return err
}

// studyEdited changes, damages or removes the study file between a failing submit and the retry,
// and then restores it.
func studyEdited(tr *trial) error {
	tr.site.setup = "false"
	tr.files()
	if out, code := tr.run("submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s"); code != exitRunsFailed {
		return fmt.Errorf("submit: exit code %d: %s", code, out)
	}
	tr.how = tr.one("removed", "garbage", "half of it", "another length", "renamed study", "a directory")
	path := filepath.Join(tr.dir, "study.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	wrong := true // the command must refuse it
	switch tr.how {
	case "removed":
		err = os.Remove(path)
	case "garbage":
		tr.file("study.toml", strings.Repeat("[", 100000), 0o644)
	case "half of it":
		tr.file("study.toml", string(text[:len(text)/2+8]), 0o644)
	case "another length":
		wrong = false
		tr.steps += 10
		tr.files()
		tr.steps -= 10
	case "renamed study":
		wrong = false
		tr.file("study.toml", strings.Replace(string(text), tr.name, tr.name+"x", 1), 0o644)
	default:
		err = errors.Join(os.Remove(path), os.Mkdir(path, 0o755))
	}
	if err != nil {
		return err
	}
	out, code := tr.run("retry", "study.toml", "--site", "site.toml")
	if wrong && (code == 0 || code == exitInternal && tr.how != "removed" && tr.how != "a directory") {
		tr.problem("retry of a study that was %s: exit code %d: %s", tr.how, code, out)
	}
	if err := tr.emptyQueue(); err != nil {
		return err
	}
	tr.site = site{}
	err = os.RemoveAll(path)
	tr.files()
	return err
}

// runsMoved moves the runs folder between commands, with or without a link at its old place,
// and moves it back.
func runsMoved(tr *trial) error {
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, out)
	}
	moved, link := filepath.Join(tr.dir, "moved"), tr.rng.IntN(2) == 0
	if err := os.Rename(tr.runs, moved); err != nil {
		return err
	}
	tr.how = "away"
	if link {
		tr.how = "with a link"
		if err := os.Symlink("moved", tr.runs); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"collect", tr.name}, {"status", tr.name}, {"runs"}} {
		out, code := tr.run(args...)
		switch {
		case link && code != 0, code == exitInternal && args[0] != "collect":
			tr.problem("%s after the runs were moved: exit code %d: %s", args[0], code, out)
		case args[0] == "runs" && strings.Count(out, "done") != 2:
			tr.problem("after the runs were moved the database holds %s", out)
		}
	}
	if out, code := tr.run("collect", tr.name, "--runs", "moved"); code != 0 {
		tr.problem("collect of the moved runs: exit code %d: %s", code, out)
	}
	if link && tr.rng.IntN(2) == 0 {
		return nil // the folder stays there
	}
	return errors.Join(os.RemoveAll(tr.runs), os.Rename(moved, tr.runs))
}

// runsMovedUnderJobs moves the runs folder while jobs run, and leaves a link.
func runsMovedUnderJobs(tr *trial) error {
	tr.steps = 100
	tr.files()
	if err := tr.underway(); err != nil {
		return err
	}
	time.Sleep(tr.between(0, time.Second))
	if err := os.Rename(tr.runs, filepath.Join(tr.dir, "moved")); err != nil {
		return err
	}
	time.Sleep(tr.between(0, time.Second))
	tr.how = "with a link"
	return os.Symlink("moved", tr.runs)
}
