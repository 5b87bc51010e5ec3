//go:build slurm

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var folderClasses = []class{
	{name: "run folder full or read-only", fire: folderNotWritable, late: true},
}

// folderNotWritable fills the file system of the run folders or makes it read-only, before or
// after the study is submitted.
func folderNotWritable(tr *trial) error {
	fail := tr.one("full", "read-only")
	if tr.small == "" { // without root: by the permissions of folders
		fail = "read-only"
	} else {
		tr.runs = filepath.Join(tr.small, tr.name)
	}
	if err := os.Mkdir(tr.runs, 0o755); err != nil {
		return err
	}
	tr.how = fail + " " + tr.one("before", "later")
	if strings.HasSuffix(tr.how, "later") {
		if out, code := tr.submit(); code != 0 {
			return fmt.Errorf("submit: exit code %d: %s", code, out)
		}
		time.Sleep(tr.between(0, 2*time.Second))
	}
	breakIt, heal := tr.fill, tr.clear
	switch {
	case fail == "read-only" && tr.small == "":
		breakIt, heal = func() error { return tr.chmod(0o555) }, func() error { return tr.chmod(0o755) }
	case fail == "read-only":
		breakIt, heal = func() error { return tr.remount(syscall.MS_RDONLY) }, func() error { return tr.remount(0) }
	}
	if err := breakIt(); err != nil {
		return errors.Join(err, heal())
	}
	for _, args := range [][]string{{"submit", "study.toml", "--site", "site.toml"}, {"status", tr.name}, {"collect", tr.name}} {
		if out, code := tr.run(args...); code == 0 && args[0] == "submit" && strings.HasSuffix(tr.how, "before") {
			tr.problem("submit says nothing of a run folder that it cannot write: %s", out)
		}
	}
	time.Sleep(tr.between(0, 3*time.Second))
	return heal()
}

func (tr *trial) ballast() string { return filepath.Join(tr.small, "ballast") }

// fill fills the small file system completely.
func (tr *trial) fill() error {
	f, err := os.Create(tr.ballast())
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (tr *trial) clear() error { return os.Remove(tr.ballast()) }

// chmod gives every folder of the run folders a mode.
func (tr *trial) chmod(mode os.FileMode) error {
	return filepath.WalkDir(tr.runs, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, mode)
	})
}

// remount changes the mount's flags. It waits until no file is open for writing.
func (tr *trial) remount(flags uintptr) error {
	return tr.await("a time when no run has a file open", func() bool {
		return syscall.Mount("tmpfs", tr.small, "tmpfs", syscall.MS_REMOUNT|flags, smallSize) == nil
	})
}
