package sharedfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Holder identifies the holder of a lease; it is the content of the lease's file.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Space string    `json:"space"` // boot ID and pid namespace in which PID is valid
	Since time.Time `json:"since"` // by the holder's clock, for display only
	Nonce string    `json:"nonce"` // "": the file does not say who holds the lease
}

func (h Holder) String() string {
	if h.PID == 0 {
		return h.Host
	}
	return fmt.Sprintf("process %d on %s", h.PID, h.Host)
}

func (h Holder) same(o Holder) bool {
	return h.Nonce != "" && h.Nonce == o.Nonce && h.PID == o.PID && h.Host == o.Host
}

func (h Holder) text() []byte {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // cannot happen: strings, a number and a valid time
	}
	return append(text, '\n')
}

// space identifies the boot and pid namespace in which this process's pid is valid; "" if unknown.
// Two containers with the same host name may differ in both.
func space() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + pids
}

// leaseState is the state of a lease's file when it was read.
type leaseState struct {
	Holder
	id      string // identifies the holder, or the file if it names no holder
	path    string
	mode    fs.FileMode
	written time.Time // by the file server's clock
}

// lookAtLease reads the state of the lease at path, which need not be a regular file.
func lookAtLease(path string) (leaseState, error) {
	s, f, err := openLease(path, os.O_RDONLY)
	return s, errors.Join(err, closed(f))
}

func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// openLease is like lookAtLease, and also returns the open file. The file is nil if it cannot be
// opened or is not a regular file. Such a file has a modification time but no holder, and the lease
// lapses by its age.
func openLease(path string, flag int) (s leaseState, f *os.File, err error) {
	err = RetryStale(func() error {
		s, f, err = openLeaseOnce(path, flag)
		return err
	})
	return s, f, err
}

// textLimit is larger than any valid lease file, in bytes.
const textLimit = 4096

func openLeaseOnce(path string, flag int) (leaseState, *os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return leaseState{}, nil, err
	}
	if !info.Mode().IsRegular() { // opening a device may have side effects
		return unnamed(path, info), nil, nil
	}
	f, err := openFile(path, flag|syscall.O_NOFOLLOW)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrNotRegular) {
		return unnamed(path, info), nil, nil
	}
	if err != nil {
		return leaseState{}, nil, err
	}
	// NFS clients refresh a file's attributes when they open it.
	if info, err = f.Stat(); err != nil {
		return leaseState{}, nil, errors.Join(err, f.Close())
	}
	s := unnamed(path, info)
	text, err := io.ReadAll(io.LimitReader(f, textLimit+1))
	if errors.Is(err, syscall.ESTALE) {
		return leaseState{}, nil, errors.Join(err, f.Close())
	}
	if err != nil { // the content is not valid
		return s, f, nil
	}
	var h Holder
	if len(text) <= textLimit && json.Unmarshal(text, &h) == nil && nonce.MatchString(h.Nonce) && hostname.MatchString(h.Host) {
		s.Holder, s.id = h, h.Nonce
	}
	return s, f, nil
}

// Patterns of values that are safe in a file name or a message.
var (
	nonce    = regexp.MustCompile(`^[0-9A-Za-z]{1,64}$`)
	hostname = regexp.MustCompile(`^[0-9A-Za-z_.:-]{1,255}$`)
)

func unnamed(path string, info fs.FileInfo) leaseState {
	var inode uint64
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(sys.Ino)
	}
	return leaseState{path: path, mode: info.Mode(), written: info.ModTime(), id: fmt.Sprintf("i%d", inode),
		Holder: Holder{Host: "an unknown process"}}
}
