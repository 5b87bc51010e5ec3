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

// Holder is what the file says of who holds the lease.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Space string    `json:"space"` // in which PID counts: boot and pid namespace
	Since time.Time `json:"since"` // by the holder's clock, for people
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
		panic(err) // strings, a number and a time of this age
	}
	return append(text, '\n')
}

// space names the set of processes in which this one's pid counts; "" when it
// cannot be told. Two containers of one host name may share neither.
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

// leaseState is a lease's file as it was when it was looked at.
type leaseState struct {
	Holder
	id      string // of the holder; of one that the file does not name, the file's
	path    string
	mode    fs.FileMode
	written time.Time // by the file server's clock
}

// lookAtLease reads what is called path, whatever it is.
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

// openLease is look, and leaves the file open. It is nil where it could not be opened
// or is no file: such a thing has a date and no holder that could be asked, and
// lapses like any other.
func openLease(path string, flag int) (s leaseState, f *os.File, err error) {
	err = RetryStale(func() error {
		s, f, err = openLeaseOnce(path, flag)
		return err
	})
	return s, f, err
}

// textLimit is more than a lease's file ever holds.
const textLimit = 4096

func openLeaseOnce(path string, flag int) (leaseState, *os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return leaseState{}, nil, err
	}
	if !info.Mode().IsRegular() { // even the opening of some devices does something
		return unnamed(path, info), nil, nil
	}
	f, err := openFile(path, flag|syscall.O_NOFOLLOW)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrNotRegular) {
		return unnamed(path, info), nil, nil
	}
	if err != nil {
		return leaseState{}, nil, err
	}
	// A network file system looks at the file's time again when it is opened.
	if info, err = f.Stat(); err != nil {
		return leaseState{}, nil, errors.Join(err, f.Close())
	}
	s := unnamed(path, info)
	text, err := io.ReadAll(io.LimitReader(f, textLimit+1))
	if errors.Is(err, syscall.ESTALE) {
		return leaseState{}, nil, errors.Join(err, f.Close())
	}
	if err != nil { // the file says nothing that can be read
		return s, f, nil
	}
	var h Holder
	if len(text) <= textLimit && json.Unmarshal(text, &h) == nil && nonce.MatchString(h.Nonce) && hostname.MatchString(h.Host) {
		s.Holder, s.id = h, h.Nonce
	}
	return s, f, nil
}

// What can be part of a file's name, or of a message.
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
