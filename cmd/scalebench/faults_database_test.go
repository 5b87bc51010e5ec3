//go:build slurm

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var databaseClasses = []class{
	{name: "database locked", fire: databaseLocked, lane: onCluster},
	{name: "database damaged or foreign", fire: databaseDamaged, lane: onThisHost},
	{name: "disk full while collecting", fire: databaseDiskFull, lane: onThisHost},
}

func (tr *trial) database() string { return filepath.Join(tr.dir, "scalebench.db") }

// databaseLocked lets another program read or write the database for a long time during a
// collect.
func databaseLocked(tr *trial) error {
	if err := tr.underway(); err != nil {
		return err
	}
	if out, code := tr.run("collect"); code != 0 {
		return fmt.Errorf("collect: exit code %d: %s", code, out)
	}
	db, err := sql.Open("sqlite3", filepath.Join(tr.dir, "scalebench.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	held, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	tr.how = tr.one("BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE")
	for _, statement := range []string{tr.how, "SELECT count(*) FROM sqlite_master"} {
		if _, err := held.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	hold := tr.between(time.Second, 8*time.Second)
	tr.how += fmt.Sprintf(" for %.1f s", hold.Seconds())
	released := time.AfterFunc(hold, func() { _, _ = held.ExecContext(ctx, "ROLLBACK") })
	defer released.Stop()
	began := time.Now()
	out, code := tr.run("collect")
	if code != 0 && !strings.Contains(out, "locked") && !strings.Contains(out, "busy") {
		tr.problem("collect of a locked database: exit code %d: %s", code, out)
	}
	time.Sleep(hold - time.Since(began))
	return nil
}

// databaseDamaged damages the database between commands, or replaces it by something else, to
// which no command may write.
func databaseDamaged(tr *trial) error {
	if out, code := tr.submit(); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, out)
	}
	path := tr.database()
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	foreign := false
	tr.how = tr.one("deleted", "emptied", "cut off", "garbage", "of another program", "a text", "a directory", "a FIFO", "a link to nowhere", "log left over")
	if tr.how != "log left over" {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(path + suffix)
		}
	}
	switch tr.how {
	case "emptied":
		err = os.WriteFile(path, nil, 0o644)
	case "cut off":
		err = os.WriteFile(path, text[:1+tr.rng.IntN(len(text)-1)], 0o644)
	case "garbage":
		for range 1 + tr.rng.IntN(100) {
			text[tr.rng.IntN(len(text))] ^= byte(1 + tr.rng.IntN(255))
		}
		err = os.WriteFile(path, text, 0o644)
	case "of another program":
		foreign = true
		err = foreignDatabase(path)
	case "a text":
		foreign = true
		err = os.WriteFile(path, []byte("Dear diary,\nthis is not a database, and it is the only copy.\n"), 0o644)
	case "a directory":
		err = os.Mkdir(path, 0o755)
	case "a FIFO":
		err = syscall.Mkfifo(path, 0o644)
	case "a link to nowhere":
		err = os.Symlink(filepath.Join("no", "where"), path)
	case "log left over":
		err = os.WriteFile(path+"-wal", []byte("garbage that was a log"), 0o644)
	}
	if err != nil {
		return err
	}
	same := func() {}
	if foreign {
		if same, err = tr.unchanged(path); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"collect", tr.name}, {"runs"}, {"status", tr.name}, tr.command()} {
		out, code := tr.run(args...)
		if foreign && (args[0] == "collect" || args[0] == "runs") && code == 0 {
			tr.problem("%s with a database that is %s: exit code 0: %s", args[0], tr.how, out)
		}
	}
	same()
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		err = errors.Join(err, os.RemoveAll(path+suffix))
	}
	return err
}

// unchanged reads a file that no command may change; same reports a problem if it was changed.
func (tr *trial) unchanged(path string) (same func(), err error) {
	before, err := os.ReadFile(path)
	return func() {
		if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
			tr.problem("%s, which is another program's, was written to (%v)", filepath.Base(path), err)
		}
	}, err
}

// foreignDatabase creates an SQLite database of another program.
func foreignDatabase(path string) error {
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		return err
	}
	_, err = db.Exec("CREATE TABLE run (id INTEGER PRIMARY KEY, diary TEXT); INSERT INTO run (diary) VALUES ('mine')")
	return errors.Join(err, db.Close())
}

// databaseDiskFull fills the disk while runs are collected.
func databaseDiskFull(tr *trial) error {
	if os.Getuid() != 0 { // without a separate disk: a limit on file sizes causes the same error at another call
		tr.how = "file size limit"
		if out, code := tr.submit(); code != 0 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		os.Remove(tr.database())
		tr.runUnder([]string{"prlimit", fmt.Sprintf("--fsize=%d", 4096*(1+tr.rng.IntN(60)))}, "collect")
		return nil
	}
	disk := filepath.Join(tr.dir, "disk")
	size := 16 + 4*tr.rng.IntN(80)
	tr.how = fmt.Sprintf("%d KB", size)
	if err := errors.Join(os.Mkdir(disk, 0o755), syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dk", size))); err != nil {
		return err
	}
	defer func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			tr.t.Error(err)
		}
	}()
	db := filepath.Join(disk, "scalebench.db")
	for _, args := range [][]string{tr.command(), {"collect"}, {"runs"}} {
		tr.run(append(args, "--db", db)...) // the limit may suffice
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, smallSize); err != nil {
		return err
	}
	// The same database remains usable.
	for range 2 {
		if out, code := tr.run("collect", "--db", db); code != 0 {
			tr.problem("collect with room again: exit code %d: %s", code, out)
		}
	}
	if text, err := os.ReadFile(db); err != nil {
		return err
	} else {
		return os.WriteFile(tr.database(), text, 0o644)
	}
}
