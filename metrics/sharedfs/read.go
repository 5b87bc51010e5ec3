package sharedfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular reports that a path is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading; it follows symbolic links. For anything else it returns a
// *fs.PathError without blocking.
func Open(path string) (*os.File, error) { return openFile(path, os.O_RDONLY) }

// openFile is Open with flags of open(2), which must not include O_CREAT. With syscall.O_NOFOLLOW a
// symbolic link does not count as a regular file. If another host replaces the file meanwhile, the
// new one is opened.
func openFile(path string, flag int) (f *os.File, err error) {
	err = RetryStale(func() error { f, err = openOnce(path, flag); return err })
	return f, err
}

// OpenIn is Open for a path below a folder. Symbolic links must not lead out of the folder, so that
// a run folder cannot pass off other files as its own. If folder is "", it is the same as Open.
func OpenIn(folder, path string) (f *os.File, err error) {
	if folder == "" {
		return Open(path)
	}
	name, err := filepath.Rel(folder, path)
	if err == nil && !filepath.IsLocal(name) {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("not in the folder %s: %w", folder, fs.ErrPermission)}
	}
	if err != nil {
		return nil, err
	}
	err = RetryStale(func() error {
		root, err := os.OpenRoot(folder + "/.") // with "/.", a FIFO is an error instead of a wait for its writer
		if err != nil {
			if at := (*fs.PathError)(nil); errors.As(err, &at) {
				at.Op, at.Path = "open", folder
			}
			return err
		}
		defer root.Close()
		opened, err := root.OpenFile(name, os.O_RDONLY|nowait, 0)
		if leadsOut(err) { // or an absolute link that stays in the folder
			if within, there := resolve(folder, path); there {
				opened, err = root.OpenFile(within, os.O_RDONLY|nowait, 0)
			}
		}
		f, err = onlyRegular(path, opened, err)
		if own, ok := errors.AsType[*fs.PathError](err); ok {
			own.Op, own.Path = "open", path
			if leadsOut(err) {
				own.Err = fmt.Errorf("a link out of %s, %w; put a copy of the file there, or remove the link", folder, ErrNotRegular)
			}
		}
		return err
	})
	return f, err
}

// leadsOut reports whether err is os.Root's error about a link that leads out of it, which package
// os does not export.
func leadsOut(err error) bool {
	cause := syscall.Errno(0)
	return err != nil && !errors.As(err, &cause) && !errors.Is(err, ErrNotRegular)
}

// resolve resolves the symbolic links of path and returns the result relative to folder; ok is
// false if it is not below folder.
func resolve(folder, path string) (name string, ok bool) {
	top, err1 := filepath.EvalSymlinks(folder)
	at, err2 := filepath.EvalSymlinks(path)
	if err1 != nil || err2 != nil {
		return "", false
	}
	name, err := filepath.Rel(top, at)
	return name, err == nil && filepath.IsLocal(name)
}

func openOnce(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|nowait, 0)
	if errors.Is(err, syscall.ELOOP) && flag&syscall.O_NOFOLLOW != 0 {
		return nil, notRegular(path, "a symbolic link")
	}
	return onlyRegular(path, f, err)
}

// nowait makes opening a FIFO return at once.
const nowait = syscall.O_NONBLOCK | syscall.O_NOCTTY

// onlyRegular closes f and returns an error if it is not a regular file. It checks the open file,
// because the name may have changed its meaning.
func onlyRegular(path string, f *os.File, err error) (*os.File, error) {
	switch {
	case errors.Is(err, syscall.ENXIO):
		return nil, notRegular(path, "a socket or a FIFO")
	case errors.Is(err, syscall.EISDIR):
		return nil, notRegular(path, "a folder")
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, fileKind(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notRegular(path, what string) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%s, %w", what, ErrNotRegular)}
}

// ReadFile reads a regular file of at most limit bytes. Another process may replace the file
// meanwhile.
func ReadFile(path string, limit int64) ([]byte, error) { return ReadFileIn("", path, limit) }

// ReadFileIn is ReadFile for a path below a folder, with the rules of OpenIn.
func ReadFileIn(folder, path string, limit int64) (text []byte, err error) {
	err = RetryStale(func() error {
		f, err := OpenIn(folder, path)
		if err != nil {
			return err
		}
		defer f.Close()
		text, err = Read(f, limit)
		return err
	})
	return text, err
}

// Read is ReadFile for an open file.
func Read(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, tooLarge(f.Name(), limit)
	}
	// Do not rely on the size: the file may grow, and in /proc its size is always 0.
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > limit:
		return nil, tooLarge(f.Name(), limit)
	}
	return text, nil
}

// Present returns the present content of an open file from an offset on. Reading it ends even if a
// program keeps appending; a later call reads what was appended.
func Present(f *os.File, from int64) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, from, max(0, info.Size()-from)), nil
}

// ErrTooLarge reports that a file exceeds the size limit of its kind.
var ErrTooLarge = errors.New("too large")

func tooLarge(path string, limit int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: files of this kind have at most %d bytes", ErrTooLarge, limit)}
}

func fileKind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
