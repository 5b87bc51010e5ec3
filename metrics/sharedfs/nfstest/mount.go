// Package nfstest mounts a folder, for tests, as a faulty network file system. Replies are lost, so
// that the client gets the reply to its repeated request. Requests are late, executed twice, and
// reordered. Handles of replaced files are stale. Each mount is a client with its own cache, which
// it refreshes when a file is opened (close-to-open consistency). The package can also record all
// writes in order, and reconstruct a state that a power failure may leave.
package nfstest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Plan sets the faults of a mount. The zero value injects no faults.
type Plan struct {
	Seed   uint64
	Lost   float64       // share of lost replies to mkdir, link, rename, unlink and rmdir
	Twice  float64       // share of these requests that are executed again later, without a reply
	Stale  float64       // share of ESTALE errors when a replaced file is opened
	Delay  time.Duration // maximum wait before and after each of these requests
	Memory time.Duration // how long names, missing names and attributes are cached
	// Exclusive also loses replies to exclusive creation, which NFS repeats safely.
	Exclusive bool
	// NoLinks makes creating a hard link fail.
	NoLinks bool
	// Fail, if not nil, is called before each write with the file's path below the folder. The
	// write returns its error.
	Fail func(path string) syscall.Errno
	// Record, if not nil, records all writes.
	Record *Recording
}

// A Client is one mount.
type Client struct {
	Path string // mount point
	plan Plan
	root *fs.LoopbackRoot

	mu     sync.Mutex
	rng    *rand.Rand
	later  sync.WaitGroup     // repeated requests in progress
	open   map[uint64][]*file // by inode; no file is closed while mu is locked
	counts [4]atomic.Int64
}

// Indices of Client.counts.
const (
	lost = iota
	twice
	stale
	failed
)

// Fired returns the numbers of faults so far: lost replies, requests executed twice, stale handles,
// and failed writes.
func (c *Client) Fired() (lostAnswers, doneTwice, staleHandles, failedWrites int64) {
	return c.counts[lost].Load(), c.counts[twice].Load(), c.counts[stale].Load(), c.counts[failed].Load()
}

// Mount mounts folder for one more client until the test ends. It needs /dev/fuse, and root or
// fusermount3.
func Mount(t testing.TB, folder string, plan Plan) *Client {
	t.Helper()
	c := &Client{Path: t.TempDir(), plan: plan, open: map[uint64][]*file{}, rng: rand.New(rand.NewPCG(plan.Seed, 1))}
	var st syscall.Stat_t
	if err := syscall.Stat(folder, &st); err != nil {
		t.Fatal(err)
	}
	c.root = &fs.LoopbackRoot{Path: folder, Dev: uint64(st.Dev)}
	top := &node{LoopbackNode: fs.LoopbackNode{RootData: c.root}, c: c}
	c.root.RootNode = top
	if plan.Record != nil {
		plan.Record.begin(st.Ino)
	}
	server, err := fs.Mount(c.Path, top, &fs.Options{
		EntryTimeout: &plan.Memory, AttrTimeout: &plan.Memory, NegativeTimeout: &plan.Memory,
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "nfstest", Name: "nfstest", AllowOther: os.Getuid() == 0, EnableLocks: true},
	})
	if err != nil {
		t.Fatalf("a file system cannot be mounted: %v; this needs /dev/fuse, and root or fusermount3", err)
	}
	t.Cleanup(func() {
		c.later.Wait()
		if err := c.unmount(server); err != nil {
			t.Errorf("%s: %v", c.Path, err)
		}
	})
	return c
}

// unmount removes the mount from this process's mount namespace, and does not wait for the server.
// Test clusters that started meanwhile have copies of the mount in their own namespaces, and the
// server serves these until they end.
func (c *Client) unmount(server *fuse.Server) error {
	parent, err := device(filepath.Dir(c.Path))
	if err != nil {
		return err
	}
	var failed error
	for range 100 { // a killed process may not have ended yet
		ended := make(chan error, 1)
		go func() { ended <- server.Unmount() }()
		for waiting := true; waiting; {
			select {
			case failed = <-ended:
				waiting = false
			case <-time.After(20 * time.Millisecond):
			}
			if at, err := device(c.Path); err == nil && at == parent {
				return nil
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return failed
}

// device returns the number of the device that a path is on.
func device(path string) (uint64, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	return uint64(st.Dev), err
}

func (c *Client) chance(share float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return share > 0 && c.rng.Float64() < share
}

func (c *Client) pause() {
	if c.plan.Delay > 0 {
		c.mu.Lock()
		d := time.Duration(c.rng.Int64N(int64(c.plan.Delay)))
		c.mu.Unlock()
		time.Sleep(d)
	}
}

// request executes a request that changes names. It calls do once or twice. If the first reply is
// lost, the client gets the result of the second call.
func (c *Client) request(do func() syscall.Errno, repeated syscall.Errno, again func()) syscall.Errno {
	c.pause()
	errno := do()
	if errno == 0 && c.chance(c.plan.Twice) {
		c.counts[twice].Add(1)
		c.later.Go(func() { c.pause(); c.pause(); again() })
	}
	if errno == 0 && c.chance(c.plan.Lost) {
		c.counts[lost].Add(1)
		errno = repeated
	}
	c.pause()
	return errno
}

type node struct {
	fs.LoopbackNode
	c *Client
}

// WrapChild makes the children of a node nodes of this package.
func (n *node) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, c: n.c}
}

func (n *node) path() string {
	return filepath.Join(n.c.root.Path, n.Path(n.c.root.RootNode.EmbeddedInode()))
}

func (n *node) child(name string) string { return filepath.Join(n.path(), name) }

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	p := n.child(name)
	errno = n.c.request(func() (e syscall.Errno) {
		if child, e = n.LoopbackNode.Mkdir(ctx, name, mode, out); e == 0 {
			n.c.plan.Record.entry(addFolder, n.path(), name)
		}
		return e
	}, syscall.EEXIST, func() { _ = syscall.Mkdir(p, mode) })
	return child, errno
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	if n.c.plan.NoLinks {
		return nil, syscall.EPERM
	}
	from, to := target.(*node).path(), n.child(name)
	errno = n.c.request(func() (e syscall.Errno) {
		if child, e = n.LoopbackNode.Link(ctx, target, name, out); e == 0 {
			n.c.plan.Record.entry(addFile, n.path(), name)
		}
		return e
	}, syscall.EEXIST, func() { _ = syscall.Link(from, to) })
	return child, errno
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (child *fs.Inode, errno syscall.Errno) {
	errno = n.c.request(func() (e syscall.Errno) {
		child, e = n.LoopbackNode.Symlink(ctx, target, name, out)
		return e
	}, syscall.EEXIST, func() {})
	return child, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, name, false)
}
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, name, true)
}

func (n *node) remove(ctx context.Context, name string, folder bool) syscall.Errno {
	p := n.child(name)
	errno := n.c.request(func() (e syscall.Errno) {
		if folder {
			e = n.LoopbackNode.Rmdir(ctx, name)
		} else {
			e = n.LoopbackNode.Unlink(ctx, name)
		}
		if e == 0 {
			n.c.plan.Record.entry(remove, n.path(), name)
		}
		return e
	}, syscall.ENOENT, func() {
		if folder {
			_ = syscall.Rmdir(p)
		} else {
			_ = syscall.Unlink(p)
		}
	})
	if errno == syscall.ENOENT {
		n.RmChild(name)
	}
	return errno
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if flags != 0 { // as NFS does
		return syscall.EINVAL
	}
	from, to := n.child(name), parent.(*node).child(newName)
	done := false
	errno := n.c.request(func() syscall.Errno {
		e := n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
		if done = e == 0; done {
			n.c.plan.Record.rename(n.path(), name, parent.(*node).path(), newName)
		}
		return e
	}, syscall.ENOENT, func() { _ = syscall.Rename(from, to) })
	if done && errno != 0 { // the client does not know this, and its handles stay valid
		n.MvChild(name, parent.EmbeddedInode(), newName, true)
	}
	return errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (child *fs.Inode, h fs.FileHandle, fuseFlags uint32, errno syscall.Errno) {
	exclusive := flags&syscall.O_EXCL != 0
	do := func() (e syscall.Errno) {
		if child, h, fuseFlags, e = n.LoopbackNode.Create(ctx, name, flags, mode, out); e == 0 {
			h = n.c.file(n.child(name), h)
			n.c.plan.Record.entry(addFile, n.path(), name)
		}
		return e
	}
	if !exclusive || !n.c.plan.Exclusive {
		n.c.pause()
		errno = do()
		return child, h, fuseFlags, errno
	}
	if errno = n.c.request(do, syscall.EEXIST, func() {}); errno == syscall.EEXIST && h != nil {
		h.(*file).Release(ctx)
		return nil, nil, 0, errno
	}
	return child, h, fuseFlags, errno
}

// replaced reports whether another file has this one's name now.
func (n *node) replaced() bool {
	var st syscall.Stat_t
	return syscall.Lstat(n.path(), &st) == nil && n.StableAttr().Ino != st.Ino && n.EmbeddedInode() != n.c.root.RootNode.EmbeddedInode()
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if n.replaced() || n.mayBeReplaced() && n.c.chance(n.c.plan.Stale) {
		n.c.counts[stale].Add(1)
		return nil, 0, syscall.ESTALE
	}
	// Drop the cached content and attributes.
	_ = n.NotifyContent(-1, 0)
	h, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	if errno == 0 {
		h = n.c.file(n.path(), h)
		if flags&syscall.O_TRUNC != 0 {
			n.c.plan.Record.truncate(h.(*file).ino, 0)
		}
	}
	return h, fuseFlags, errno
}

// mayBeReplaced reports whether this is a file that scalebench replaces rather than modifies.
func (n *node) mayBeReplaced() bool {
	ext := filepath.Ext(n.path())
	return ext == ".json" || filepath.Base(n.path()) == "lease"
}

func (n *node) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if h == nil && n.replaced() {
		return syscall.ESTALE
	}
	if f, ok := h.(*file); ok {
		return f.LoopbackFile.Getattr(ctx, out)
	}
	return n.LoopbackNode.Getattr(ctx, h, out)
}

func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) (errno syscall.Errno) {
	// A client's handle refers to the same file, even if another file has its name now. The kernel
	// does not tell which handle it uses, so any open one of the inode will do.
	n.c.mu.Lock()
	f, ok := h.(*file)
	if open := n.c.open[n.StableAttr().Ino]; !ok && len(open) > 0 {
		f, ok = open[0], true
	}
	if ok {
		if errno = f.LoopbackFile.Setattr(ctx, in, out); errno == 0 {
			errno = f.LoopbackFile.Getattr(ctx, out)
		}
	}
	n.c.mu.Unlock()
	if !ok && n.replaced() {
		return syscall.ESTALE
	}
	if !ok {
		errno = n.LoopbackNode.Setattr(ctx, nil, in, out)
	}
	if size, sized := in.GetSize(); sized && errno == 0 {
		n.c.plan.Record.truncate(n.StableAttr().Ino, int64(size))
	}
	return errno
}

func (n *node) Fsync(ctx context.Context, h fs.FileHandle, flags uint32) syscall.Errno {
	return h.(*file).Fsync(ctx, flags)
}

// file is an open file that records the writes to it.
type file struct {
	*fs.LoopbackFile
	c    *Client
	path string
	ino  uint64
}

func (c *Client) file(path string, h fs.FileHandle) *file {
	f := &file{LoopbackFile: h.(*fs.LoopbackFile), c: c, path: path}
	var out fuse.AttrOut
	f.Getattr(context.Background(), &out)
	f.ino = out.Ino
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[f.ino] = append(c.open[f.ino], f)
	return f
}

func (f *file) Release(ctx context.Context) syscall.Errno {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	left := slices.DeleteFunc(f.c.open[f.ino], func(o *file) bool { return o == f })
	if f.c.open[f.ino] = left; len(left) == 0 {
		delete(f.c.open, f.ino)
	}
	return f.LoopbackFile.Release(ctx)
}

func (f *file) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if fail := f.c.plan.Fail; fail != nil {
		if below, err := filepath.Rel(f.c.root.Path, f.path); err == nil {
			if errno := fail(below); errno != 0 {
				f.c.counts[failed].Add(1)
				return 0, errno
			}
		}
	}
	n, errno := f.LoopbackFile.Write(ctx, data, off)
	if errno == 0 {
		f.c.plan.Record.write(f.ino, off, data[:n])
	}
	return n, errno
}

func (f *file) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	f.c.plan.Record.sync(f.ino)
	return f.LoopbackFile.Fsync(ctx, flags)
}

// PassthroughFd prevents the kernel from writing to the underlying file directly.
func (f *file) PassthroughFd() (int, bool) { return 0, false }

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, fuseFlags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno == 0 {
		h = &folder{openFolder: h.(openFolder), n: n}
	}
	return h, fuseFlags, errno
}

type openFolder interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
}

// folder is an open folder that records when it is synced.
type folder struct {
	openFolder
	n *node
}

func (f *folder) Fsyncdir(context.Context, uint32) syscall.Errno {
	ino, _ := inode(f.n.path())
	f.n.c.plan.Record.sync(ino)
	return 0
}
