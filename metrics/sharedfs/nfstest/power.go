package nfstest

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Recording lists the changes made through a mount, in order.
type Recording struct {
	mu    sync.Mutex
	root  uint64
	steps []step
}

type kind int

const (
	addFile   kind = iota // file ino gets a name in folder
	addFolder             // folder ino gets a name in folder
	remove                // name
	move                  // name to newName
	write                 // data at off
	truncate              // to off bytes
	flush                 // file or folder ino is synced
)

// step is one change.
type step struct {
	kind          kind
	folder, ino   uint64
	name, newName string
	off           int64
	data          []byte
	mode          os.FileMode
}

func (r *Recording) begin(root uint64) { r.mu.Lock(); defer r.mu.Unlock(); r.root = root }

func (r *Recording) add(s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

func inode(path string) (uint64, os.FileMode) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0
	}
	return info.Sys().(*syscall.Stat_t).Ino, info.Mode().Perm()
}

func (r *Recording) entry(k kind, folder, name string) {
	if r == nil {
		return
	}
	parent, _ := inode(folder)
	ino, mode := inode(filepath.Join(folder, name))
	r.add(step{kind: k, folder: parent, ino: ino, name: name, mode: mode})
}

func (r *Recording) rename(folder, name, newFolder, newName string) {
	if r == nil {
		return
	}
	if folder != newFolder {
		panic("a rename from one folder to another is not recorded; scalebench does none")
	}
	parent, _ := inode(folder)
	r.add(step{kind: move, folder: parent, name: name, newName: newName})
}

func (r *Recording) write(ino uint64, off int64, data []byte) {
	if r != nil {
		r.add(step{kind: write, ino: ino, off: off, data: slices.Clone(data)})
	}
}

func (r *Recording) truncate(ino uint64, size int64) {
	if r != nil {
		r.add(step{kind: truncate, ino: ino, off: size})
	}
}

func (r *Recording) sync(ino uint64) {
	if r != nil {
		r.add(step{kind: flush, ino: ino})
	}
}

// Len returns the number of changes recorded so far.
func (r *Recording) Len() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.steps) }

// block is the disk's unit of writing in bytes: after a power failure, each block has either the
// old or the new content.
const block = 512

// thing is a file or folder during the replay of a recording.
type thing struct {
	mode     os.FileMode
	folder   bool
	data     []byte
	synced   []byte // nil: never
	entries  []step // changes of names in this folder, in order
	durable  int    // number of entries that are synced
	children map[string]*thing
	of       []*thing // the file or folder of each entry
}

// After creates in the folder to a state that a power failure after the first n changes may leave.
// All synced data are there. Of the unsynced changes of a folder's names, a random number is there,
// in their order. Of a file's unsynced content there is the old, the new, or a mixture of blocks; a
// file that was never synced may be empty or incomplete.
func (r *Recording) After(n int, rng *rand.Rand, to string) error {
	r.mu.Lock()
	steps, root := r.steps[:n], r.root
	r.mu.Unlock()
	all := map[uint64]*thing{root: {folder: true, mode: 0o755}}
	get := func(ino uint64, s step, folder bool) *thing {
		if all[ino] == nil {
			all[ino] = &thing{folder: folder, mode: s.mode}
		}
		return all[ino]
	}
	for _, s := range steps {
		switch s.kind {
		case addFile, addFolder:
			if old := all[s.ino]; s.kind == addFolder || old != nil && old.folder || !named(all, s.ino) {
				delete(all, s.ino) // the inode number of a deleted file
			}
			parent := get(s.folder, s, true)
			parent.entries, parent.of = append(parent.entries, s), append(parent.of, get(s.ino, s, s.kind == addFolder))
		case remove, move:
			parent := get(s.folder, s, true)
			parent.entries, parent.of = append(parent.entries, s), append(parent.of, nil)
		case write:
			f := get(s.ino, s, false)
			if end := int(s.off) + len(s.data); end > len(f.data) {
				f.data = append(f.data, make([]byte, end-len(f.data))...)
			}
			copy(f.data[s.off:], s.data)
		case truncate:
			f := get(s.ino, s, false)
			f.data = append(slices.Clone(f.data), make([]byte, max(0, int(s.off)-len(f.data)))...)[:s.off]
		case flush:
			if f := get(s.ino, s, s.ino == root); f.folder {
				f.durable = len(f.entries)
			} else {
				f.synced = append([]byte{}, f.data...)
			}
		}
	}
	return all[root].leave(rng, to)
}

// named reports whether the file with this inode number has a name.
func named(all map[uint64]*thing, ino uint64) bool {
	f := all[ino]
	if f == nil {
		return false
	}
	for _, folder := range all {
		if folder.folder && slices.Contains(folder.names(len(folder.entries)), f) {
			return true
		}
	}
	return false
}

// names returns the files and folders in a folder after its first n changes.
func (f *thing) names(n int) (list []*thing) {
	f.children = map[string]*thing{}
	for i, e := range f.entries[:n] {
		switch e.kind {
		case remove:
			delete(f.children, e.name)
		case move:
			f.children[e.newName] = f.children[e.name]
			delete(f.children, e.name)
		default:
			f.children[e.name] = f.of[i]
		}
	}
	for _, c := range f.children {
		list = append(list, c)
	}
	return list
}

// leave writes the remains of a folder to disk.
func (f *thing) leave(rng *rand.Rand, to string) error {
	f.names(f.durable + rng.IntN(len(f.entries)-f.durable+1))
	for _, name := range sorted(f.children) {
		c := f.children[name]
		path := filepath.Join(to, name)
		if c == nil {
			continue
		}
		if c.folder {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
			if err := c.leave(rng, path); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(path, c.left(rng), c.mode); err != nil {
			return err
		}
	}
	return nil
}

func sorted(m map[string]*thing) []string { return slices.Sorted(maps.Keys(m)) }

// left returns the remains of a file's content.
func (f *thing) left(rng *rand.Rand) []byte {
	if f.synced != nil && slices.Equal(f.synced, f.data) {
		return f.data
	}
	switch rng.IntN(4) {
	case 0:
		return f.synced
	case 1:
		return f.data
	case 2:
		if f.synced == nil && len(f.data) > 0 {
			return f.data[:rng.IntN(len(f.data))]
		}
	}
	text := slices.Clone(f.data)
	for at := 0; at < len(text); at += block {
		if end := min(at+block, len(text)); rng.IntN(2) == 0 {
			clear(text[at:end])
			if at < len(f.synced) {
				copy(text[at:end], f.synced[at:])
			}
		}
	}
	return text
}

// Count returns how many of the first n changes created a name with this prefix.
func (r *Recording) Count(prefix string, n int) (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps[:n] {
		if s.kind == addFile && strings.HasPrefix(s.name, prefix) {
			count++
		}
	}
	return count
}
