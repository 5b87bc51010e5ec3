package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Fence is a cgroup with a memory limit, which includes the page cache.
type Fence struct {
	dir     string
	home    string // version 1: this process's own
	unified bool
}

// NewFence creates a group with that much memory and no swap. The error says why this user cannot.
func NewFence(name string, bytes int64) (*Fence, error) {
	var why []error
	for _, g := range ControlGroups(os.DirFS("/"), "memory") {
		home := filepath.Join("/", g.Mount, g.Below)
		f := &Fence{dir: filepath.Join(home, name), home: home, unified: g.Unified}
		if g.Unified {
			f.dir = filepath.Join("/", g.Mount, filepath.Dir(g.Below), name)
		}
		err := f.make(bytes)
		if err == nil {
			return f, nil
		}
		why = append(why, err)
	}
	if len(why) == 0 {
		return nil, errors.New("no memory cgroup is mounted")
	}
	return nil, errors.Join(why...)
}

func (f *Fence) make(bytes int64) error {
	limit, swap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	if f.unified {
		limit, swap = "memory.max", "memory.swap.max"
		given, err := os.ReadFile(filepath.Join(filepath.Dir(f.dir), "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(string(given)), "memory") {
			return fmt.Errorf("%s does not pass memory on to the groups in it", filepath.Dir(f.dir))
		}
	}
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		return err
	}
	most := bytes // version 1 limits memory and swap together
	if f.unified {
		most = 0
	}
	err := f.write(limit, bytes)
	if err == nil {
		if err = f.write(swap, most); errors.Is(err, os.ErrNotExist) {
			err = nil // a kernel that does not account for swap
		}
	}
	if err != nil {
		_ = os.Remove(f.dir)
	}
	return err
}

func (f *Fence) write(name string, value int64) error {
	// The file does not exist if the kernel lacks the feature.
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, file.Close())
}

// Start starts a command in the group by calling start, so that it and its children are in the group from the
// beginning. The calling goroutine is locked to its thread: with version 1 a process inherits the group of the
// thread that starts it.
func (f *Fence) Start(cmd *exec.Cmd, start func(*exec.Cmd) error) error {
	if f.unified {
		dir, err := os.Open(f.dir)
		if err != nil {
			return err
		}
		defer dir.Close()
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		return start(cmd)
	}
	thread := int64(unix.Gettid())
	if err := f.write("tasks", thread); err != nil {
		return err
	}
	defer func() { _ = (&Fence{dir: f.home}).write("tasks", thread) }() // if it fails, Remove reports it
	return start(cmd)
}

// Kills returns how many processes of the group were killed because memory ran out.
func (f *Fence) Kills() int {
	name := "memory.oom_control"
	if f.unified {
		name = "memory.events"
	}
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, _ := strconv.Atoi(count) // the kernel wrote it
			return n
		}
	}
	return 0
}

// Remove removes the group once its processes have ended, for which it waits a moment. The page cache of files
// that they read remains.
func (f *Fence) Remove() error {
	var err error
	for range 50 {
		if err = os.Remove(f.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
