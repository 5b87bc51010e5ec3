package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// This file copies the files that a run's processes read from the shared file system to the node's
// own disk, once per node: a folder of data unchanged, a packed Python environment unpacked.
//
// Several jobs of a user may share a node and the folder. Each item has its own folder with a lock:
// one process fills it while the others wait. An item is valid once its complete.json exists, which
// is written last and by rename. It is reused only if its files are unchanged, its source is the
// same (name, size and time of every file), and the node has not rebooted since, because after a
// crash a partly written file on a local disk looks like a complete one. Items left by a killed job
// are removed by the next job that stages there, once the killed job's time limit has passed.

// What can be staged.
const (
	StageData   = "data"   // a folder, copied
	StagePython = "python" // a tar archive of an environment, unpacked
)

// A StagingArea is a user's folder on a node's disk.
type StagingArea struct {
	root  string
	roots []string // root, and this user's other roots in the same folder
}

// A StagedLifetime says how long an item is needed.
type StagedLifetime struct {
	Owner string    // user of the item; Remove removes all items of an owner
	Until time.Time // the job that needs it cannot be alive later
	Keep  bool      // leave it to other owners and later jobs
}

// A StagedItem is a staged copy.
type StagedItem struct {
	Kind   string
	Source string
	// Path replaces the source: the folder of Data, the interpreter of Python.
	Path    string
	Bytes   int64   // size of its files on the node
	Seconds float64 // time until it was complete, including waits for another process
	Reused  bool    // it existed already
}

// A complete is the content of complete.json: describes the content of an item's folder.
type complete struct {
	Source    string  `json:"source"`
	Owner     string  `json:"owner,omitempty"` // "" if it is kept
	UntilUnix float64 `json:"until_unix"`
	Boot      string  `json:"boot"` // boot ID of the node when the record was written
	Files     []file  `json:"files"`
}

// contentName is the subfolder of an item with the staged files.
const contentName = "content"

// overdue is the time after its job's limit at which an abandoned item is removed: a job may be
// delayed, and clocks differ.
const overdue = time.Hour

// OpenArea opens the user's area in a folder of the node. $NAME in dir is replaced by the
// variable's value on this node; "" is the node's folder for temporary files.
func OpenArea(dir string) (StagingArea, error) {
	var unset []string
	expanded := os.Expand(dir, func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			unset = append(unset, name)
		}
		return value
	})
	switch {
	case len(unset) > 0:
		return StagingArea{}, fmt.Errorf("the folder for staging is %q, and %s is not set here; set it in the site file's setup, or name another folder (stage.dir)", dir, strings.Join(unset, ", "))
	case dir == "":
		expanded = os.TempDir()
	case !filepath.IsAbs(expanded):
		return StagingArea{}, fmt.Errorf("the folder for staging is %q, which is not an absolute path here (%q); name another in the site file (stage.dir)", dir, expanded)
	}
	a, err := openArea(expanded)
	if err != nil {
		return StagingArea{}, fmt.Errorf("the folder for staging cannot be used: %w; name another in the site file (stage.dir)", err)
	}
	return a, nil
}

// openArea finds or creates this user's area in a folder. Other users may write to the folder: if one of them
// has created something with the area's name, the area gets a random name. All processes of this user then use
// the oldest area that the user owns, so that they still share staged items.
func openArea(folder string) (StagingArea, error) {
	prefix := fmt.Sprintf("scalebench-%d", os.Getuid())
	plain := filepath.Join(folder, prefix)
	err := os.Mkdir(plain, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return StagingArea{}, err
	}
	var a StagingArea
	look := func() error {
		a.roots = nil
		if mine(plain) {
			a.roots = append(a.roots, plain)
		}
		entries, err := os.ReadDir(folder) // sorted: their names begin with when they were made
		if err != nil && len(a.roots) == 0 {
			return err
		}
		for _, e := range entries {
			if path := filepath.Join(folder, e.Name()); strings.HasPrefix(e.Name(), prefix+"-") && mine(path) {
				a.roots = append(a.roots, path)
			}
		}
		return nil
	}
	if err := look(); err != nil {
		return StagingArea{}, err
	}
	if len(a.roots) == 0 {
		made, err := os.MkdirTemp(folder, fmt.Sprintf("%s-%d-", prefix, time.Now().UnixNano()))
		if err != nil {
			return StagingArea{}, err
		}
		if err := look(); err != nil { // another process may have made an older one meanwhile
			return StagingArea{}, err
		}
		if len(a.roots) == 0 {
			return StagingArea{}, fmt.Errorf("%s is not a folder that only you can write to", made)
		}
	}
	a.root = a.roots[0]
	return a, nil
}

// mine reports whether a path is a folder that only this user can write to.
func mine(path string) bool {
	var info unix.Stat_t
	return unix.Lstat(path, &info) == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR && int(info.Uid) == os.Getuid() && info.Mode&0o022 == 0
}

// Put stages an item. If the context ends or the process is killed, only progress is lost. The error is a
// *SpaceError if the disk is too small.
func (a StagingArea) Put(ctx context.Context, kind, source string, life StagedLifetime) (StagedItem, error) {
	started := time.Now()
	item := StagedItem{Kind: kind, Source: source}
	what, err := lookAtSource(kind, source)
	if err != nil {
		return item, fmt.Errorf("staging %s: %w", kind, err)
	}
	if err := a.sweep(started); err != nil {
		return item, err
	}
	name := kind + "-" + digest(source) + "-" + what.digest()
	owner := ""
	if !life.Keep {
		owner = life.Owner
		name += "-" + digest(owner)
	}
	folder, err := lock(ctx, filepath.Join(a.root, name), syscall.LOCK_EX)
	if err != nil {
		return item, fmt.Errorf("staging %s: %w", kind, err)
	}
	defer folder.Release()

	record, whole := folder.read()
	if item.Reused = whole && record.intact(folder.content()); !item.Reused {
		if err := a.fill(ctx, folder, what); err != nil {
			return item, errors.Join(fmt.Errorf("staging %s: %w", kind, err), folder.clear())
		}
		record = complete{Source: source, Owner: owner, Boot: boot()}
		if record.Files, err = list(folder.content(), os.Lstat); err != nil {
			return item, err
		}
	}
	record.UntilUnix = max(record.UntilUnix, float64(life.Until.Unix()))
	if err := folder.write(record); err != nil {
		return item, errors.Join(fmt.Errorf("staging %s: %w", kind, err), folder.clear())
	}
	for _, f := range record.Files {
		item.Bytes += f.Size
	}
	if item.Path = folder.content(); kind == StagePython {
		if item.Path, err = interpreter(ctx, item.Path); err != nil {
			return item, errors.Join(fmt.Errorf("staging %s from %s: %w", kind, source, err), folder.clear())
		}
	}
	item.Seconds = time.Since(started).Seconds()
	return item, nil
}

// fill puts a source into an item's folder.
func (a StagingArea) fill(ctx context.Context, folder *StagedFolder, s source) error {
	if err := folder.clear(); err != nil {
		return err
	}
	if err := os.MkdirAll(folder.content(), 0o700); err != nil {
		return err
	}
	free, err := free(a.root)
	if err != nil {
		return err
	}
	if free < s.bytes() {
		return &SpaceError{Source: s.path, Folder: a.root, Need: s.bytes(), Free: free}
	}
	err = s.copyTo(ctx, folder.content())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &SpaceError{Source: s.path, Folder: a.root, Need: s.bytes(), Free: free, Cause: err}
	}
	return err
}

// holdFolder keeps an item, by its path, from being removed until Release, or the end
// of the process.
func holdFolder(path string) (*StagedFolder, error) {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) != contentName {
			continue
		}
		f, err := open(filepath.Dir(at), syscall.LOCK_SH|syscall.LOCK_NB)
		if err != nil {
			continue
		}
		if _, whole := f.read(); whole {
			return f, nil
		}
		f.Release()
	}
	return nil, fmt.Errorf("the files staged on this node are gone: no complete %s", path)
}

// Remove takes the items of an owner away.
func (a StagingArea) Remove(owner string) error {
	return a.each(func(f *StagedFolder, record complete, whole bool) bool {
		return whole && owner != "" && record.Owner == owner
	})
}

// sweep removes what killed jobs have left: items without complete.json that no process is filling,
// and items whose job's time has passed. Of the rest it keeps the latest of each source.
func (a StagingArea) sweep(now time.Time) error {
	kept := map[string]float64{}
	err := a.each(func(f *StagedFolder, record complete, whole bool) bool {
		if whole && record.Owner == "" {
			kept[record.Source] = max(kept[record.Source], record.UntilUnix)
		}
		return false
	})
	if err != nil {
		return err
	}
	return a.each(func(f *StagedFolder, record complete, whole bool) bool {
		over := now.Sub(time.Unix(int64(record.UntilUnix), 0)) > overdue
		return !whole || over && (record.Owner != "" || record.UntilUnix < kept[record.Source])
	})
}

// each removes the items for which goes returns true, except those in use.
func (a StagingArea) each(goes func(f *StagedFolder, record complete, whole bool) bool) error {
	var wrong []error
	for _, root := range a.roots {
		entries, err := os.ReadDir(root)
		if err != nil {
			if root != a.root && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return err
		}
		for _, e := range entries {
			f, err := open(filepath.Join(root, e.Name()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err != nil {
				continue // the item is in use or was removed
			}
			if record, whole := f.read(); goes(f, record, whole) {
				wrong = append(wrong, os.RemoveAll(f.path))
			}
			f.Release()
		}
	}
	return errors.Join(wrong...)
}

// A SpaceError reports that a node's disk is too small for an item.
type SpaceError struct {
	Source, Folder string
	Need, Free     int64 // bytes; of an archive, Need is its packed size
	Cause          error // error of the write; nil if there was too little space from the start
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s takes %s or more, and %s has %s of free space on this node; make room there, or name a larger folder in the site file (stage.dir)",
		e.Source, number.ShortBytes(float64(e.Need)), e.Folder, number.ShortBytes(float64(e.Free)))
}

func (e *SpaceError) Unwrap() error { return e.Cause }

// free returns the space in bytes that this user can still use at a path.
func free(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// boot identifies the current boot of this node; "" if unknown.
func boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// intact reports whether the files are unchanged since they were written.
func (c complete) intact(content string) bool {
	if c.Boot == "" || c.Boot != boot() {
		return false
	}
	for _, f := range c.Files {
		info, err := os.Lstat(filepath.Join(content, f.Name))
		if err != nil || info.Mode().Type() != f.Type || !info.IsDir() && info.Size() != f.Size {
			return false
		}
	}
	return true
}

func (f *StagedFolder) content() string { return filepath.Join(f.path, contentName) }

func (f *StagedFolder) read() (record complete, whole bool) {
	text, err := os.ReadFile(filepath.Join(f.path, "complete.json"))
	return record, err == nil && json.Unmarshal(text, &record) == nil
}

func (f *StagedFolder) write(record complete) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	to := filepath.Join(f.path, "complete.json")
	if err := os.WriteFile(to+".new", text, 0o600); err != nil {
		return err
	}
	return sharedfs.Rename(to+".new", to)
}

// clear empties an item's folder, because the item is incomplete or no longer valid.
func (f *StagedFolder) clear() error {
	for _, name := range []string{"complete.json", "complete.json.new", contentName} {
		if err := os.RemoveAll(filepath.Join(f.path, name)); err != nil {
			return err
		}
	}
	return nil
}
