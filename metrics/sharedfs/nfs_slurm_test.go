//go:build slurm

package sharedfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
)

// Without this package, the faults of the test's file system do occur.
func TestNFSFaultsAreDetected(t *testing.T) {
	c := nfstest.Mount(t, t.TempDir(), nfstest.Plan{Lost: 1, Exclusive: true})
	at := func(name string) string { return filepath.Join(c.Path, name) }
	if err := os.WriteFile(at("file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at("file"), at("link")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("link: %v", err)
	}
	if err := os.Mkdir(at("folder"), 0o700); !errors.Is(err, fs.ErrExist) {
		t.Errorf("mkdir: %v", err)
	}
	if err := os.Rename(at("file"), at("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename: %v", err)
	}
	if err := os.Remove(at("new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unlink: %v", err)
	}
	if f, err := os.OpenFile(at("own"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("exclusive creation: %v", err)
		f.Close()
	}
	for _, name := range []string{"link", "folder", "own"} {
		if _, err := os.Lstat(at(name)); err != nil {
			t.Errorf("not done: %v", err)
		}
	}
	for _, name := range []string{"file", "new"} {
		if _, err := os.Lstat(at(name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// After another client has replaced a file, the new content is read. A file that is created after
// this client cached its absence is found in time.
func TestNFSClientsSeeEachOther(t *testing.T) {
	folder := t.TempDir()
	one := nfstest.Mount(t, folder, nfstest.Plan{Memory: 500 * time.Millisecond})
	two := nfstest.Mount(t, folder, nfstest.Plan{Memory: 500 * time.Millisecond, Seed: 2})
	at := func(c *nfstest.Client, name string) string { return filepath.Join(c.Path, name) }
	for i := range 20 {
		want := fmt.Sprint("text ", i)
		if err := sharedfs.Create(at(one, "new"), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sharedfs.Rename(at(one, "new"), at(one, "file")); err != nil {
			t.Fatal(err)
		}
		var got []byte
		err := sharedfs.RetryStale(func() (err error) { got, err = os.ReadFile(at(two, "file")); return err })
		if err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// A handle stays valid while others open and close the same file, even after the file was replaced.
func TestNFSHandlesStay(t *testing.T) {
	c := nfstest.Mount(t, t.TempDir(), nfstest.Plan{})
	path := filepath.Join(c.Path, "file")
	held, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	touched := make(chan error)
	go func() {
		for i := range int64(2000) {
			if err := syscall.Futimes(int(held.Fd()), []syscall.Timeval{{Sec: i}, {Sec: i}}); err != nil {
				touched <- fmt.Errorf("touch %d: %w", i, err)
				return
			}
		}
		touched <- nil
	}()
	for {
		select {
		case err := <-touched:
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Futimes(int(held.Fd()), []syscall.Timeval{{}, {}}); err != nil {
				t.Errorf("of a file that was replaced: %v", err)
			}
			return
		default:
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
}

// Each change is made once, and its result is reported correctly. If many processes want a name,
// exactly one gets it, with links and with folders, and no temporary file remains.
func TestNFSOneGetsTheName(t *testing.T) {
	for seed := range uint64(12) {
		folder := t.TempDir()
		var clients []*nfstest.Client
		for i := range uint64(2) {
			clients = append(clients, nfstest.Mount(t, folder, nfstest.Plan{Seed: 2*seed + i, Lost: 0.4, Delay: time.Millisecond,
				Memory: time.Duration(seed%3) * 50 * time.Millisecond, Stale: 0.1, Exclusive: true}))
		}
		for round := range 6 {
			var all sync.WaitGroup
			var mu sync.Mutex
			got := map[string][]int{}
			for i := range 6 {
				all.Go(func() {
					c := clients[i%len(clients)]
					won := func(what string, err error) {
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							got[what] = append(got[what], i)
						} else if !errors.Is(err, fs.ErrExist) {
							t.Errorf("seed %d: %s: %v", seed, what, err)
						}
					}
					won("file", sharedfs.Create(filepath.Join(c.Path, fmt.Sprint("file", round)), []byte(fmt.Sprint(i)), 0o600))
					own, err := sharedfs.MkdirTemp(c.Path, ".own-", 0o700)
					if err == nil {
						err = os.WriteFile(filepath.Join(own, fmt.Sprint(i)), nil, 0o600)
					}
					if err == nil {
						err = sharedfs.Place(own, filepath.Join(c.Path, fmt.Sprint("folder", round)))
					}
					won("folder", err)
				})
			}
			all.Wait()
			for _, what := range []string{"file", "folder"} {
				if len(got[what]) != 1 {
					t.Errorf("seed %d, round %d: %v got the %s", seed, round, got[what], what)
					continue
				}
				path, owner := filepath.Join(folder, fmt.Sprint(what, round)), fmt.Sprint(got[what][0])
				if what == "folder" {
					if entries, err := os.ReadDir(path); err != nil || len(entries) != 1 || entries[0].Name() != owner {
						t.Errorf("seed %d: %s has the folder, which holds %v (%v)", seed, owner, entries, err)
					}
				} else if text, err := os.ReadFile(path); err != nil || string(text) != owner {
					t.Errorf("seed %d: %s has the file, which holds %s (%v)", seed, owner, text, err)
				}
			}
		}
		if n, _, _, _ := clients[0].Fired(); n == 0 {
			t.Errorf("seed %d: no answer was lost", seed)
		}
		if left, _ := filepath.Glob(filepath.Join(folder, ".new-*")); len(left) > 0 {
			t.Errorf("seed %d: left behind: %v", seed, left)
		}
	}
}

// No incomplete file remains if the disk is full, with or without hard links.
func TestNFSFullDisk(t *testing.T) {
	for _, links := range []bool{true, false} {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
			folder := t.TempDir()
			writes := 0
			c := nfstest.Mount(t, folder, nfstest.Plan{NoLinks: !links, Fail: func(path string) syscall.Errno {
				if writes++; filepath.Base(path) == "file" || links {
					return errno
				}
				return 0
			}})
			if err := sharedfs.Create(filepath.Join(c.Path, "file"), []byte("text"), 0o600); !errors.Is(err, errno) {
				t.Errorf("links %t: %v, want %v", links, err, errno)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("links %t, %v: left behind: %v (%v)", links, errno, left, err)
			}
		}
	}
}

// Synced data survive a power failure. Other data may be lost, and are lost in some of the replays.
func TestPowerLossIsDetected(t *testing.T) {
	record := &nfstest.Recording{}
	c := nfstest.Mount(t, t.TempDir(), nfstest.Plan{Record: record})
	put := func(name string, syncFile, syncFolder bool) {
		f, err := os.Create(filepath.Join(c.Path, name+".new"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.WriteString("a whole text"); err == nil && syncFile {
			err = f.Sync()
		}
		if err := errors.Join(err, f.Close(), os.Rename(f.Name(), filepath.Join(c.Path, name))); err != nil {
			t.Fatal(err)
		}
		if syncFolder {
			folder, err := os.Open(c.Path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("whole", true, true)
	put("torn", false, true)
	put("late", true, false)
	missing, torn := 0, 0
	for seed := range uint64(60) {
		at := t.TempDir()
		if err := record.After(record.Len(), rand.New(rand.NewPCG(seed, 0)), at); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(at, "whole")); err != nil || string(text) != "a whole text" {
			t.Fatalf("seed %d: what was synced: %q, %v", seed, text, err)
		}
		if text, err := os.ReadFile(filepath.Join(at, "torn")); err != nil {
			t.Fatalf("seed %d: the name was synced: %v", seed, err)
		} else if string(text) != "a whole text" {
			torn++
		}
		if text, err := os.ReadFile(filepath.Join(at, "late")); err != nil {
			missing++
		} else if string(text) != "a whole text" {
			t.Errorf("seed %d: a synced text under a new name: %q", seed, text)
		}
	}
	if missing == 0 || missing == 60 || torn == 0 || torn == 60 {
		t.Errorf("of 60 losses of power %d tore what was not synced, and %d took a name back that was not", torn, missing)
	}
}
