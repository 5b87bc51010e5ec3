package sharedfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestAge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "beat")
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	if age, err := Age(path, dir); err != nil || (age-time.Hour).Abs() > time.Minute {
		t.Errorf("an hour old: %v, %v", age, err)
	}
	if err := beat(path); err != nil {
		t.Fatal(err)
	}
	if age, err := Age(path, dir); err != nil || age.Abs() > time.Minute {
		t.Errorf("just written: %v, %v", age, err)
	}
	if _, err := Age(filepath.Join(dir, "none"), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
	if err := beat(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a beat makes a file: %v", err)
	}
}

// There is a beat every LeaseTime/4, and none after stop.
func TestBeat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "beat")
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	// beaten reports whether the file was written since the previous call, and makes the file old
	// again.
	beaten := func() bool {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return info.ModTime().After(old.Add(time.Minute))
	}
	beaten()
	synctest.Test(t, func(t *testing.T) {
		stop := Beat(path)
		for range 3 {
			time.Sleep(renew - time.Second)
			synctest.Wait()
			if beaten() {
				t.Error("too early")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if !beaten() {
				t.Errorf("no beat after %v", renew)
			}
		}
		stop()
		time.Sleep(2 * LeaseTime)
		if beaten() {
			t.Error("a beat after the end")
		}
	})
}
