package worker

import (
	"archive/tar"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/trust"
)

// A source is something to stage, as found on the shared file system.
type source struct {
	kind  string
	path  string
	files []file // for an archive, only the archive
}

// A file is one entry below a folder.
type file struct {
	Name     string      `json:"name"` // relative to the folder
	Type     fs.FileMode `json:"type,omitempty"`
	Size     int64       `json:"size"`
	Modified int64       `json:"modified,omitempty"` // ns since the epoch
	Link     bool        `json:"-"`                  // stands in for its target
}

// lookAtSource examines a source.
func lookAtSource(kind, path string) (source, error) {
	s := source{kind: kind, path: path}
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	switch kind {
	case StageData:
		if !info.IsDir() {
			return s, fmt.Errorf("%s is not a folder", path)
		}
		if s.path, err = filepath.EvalSymlinks(path); err == nil {
			s.files, err = list(s.path, os.Stat)
		}
	case StagePython:
		if !info.Mode().IsRegular() {
			return s, fmt.Errorf("%s is not a file; pack the environment first (conda-pack, or tar of a venv)", path)
		}
		s.files = []file{{Name: filepath.Base(path), Size: info.Size(), Modified: info.ModTime().UnixNano()}}
	default:
		err = fmt.Errorf("%q cannot be staged", kind)
	}
	return s, err
}

// digest names the source's state: names, sizes and times of its files.
func (s source) digest() string { return digest(fmt.Sprint(s.files)) }

// bytes returns the total size of the source's files.
func (s source) bytes() (n int64) {
	for _, f := range s.files {
		n += f.Size
	}
	return n
}

// list returns everything below a folder, in order. stat decides whether links are followed: os.Stat or
// os.Lstat.
func list(folder string, stat func(string) (fs.FileInfo, error)) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || name == "." {
			return err
		}
		info, err := stat(path)
		if err != nil {
			return err
		}
		size, modified := info.Size(), info.ModTime().UnixNano()
		if info.IsDir() {
			size, modified = 0, 0 // how large a folder is differs from one file system to the next
		}
		link := e.Type()&fs.ModeSymlink != 0 && info.Mode()&fs.ModeSymlink == 0
		files = append(files, file{name, info.Mode().Type(), size, modified, link})
		return nil
	})
	return files, err
}

func (s source) copyTo(ctx context.Context, to string) error {
	if s.kind == StagePython {
		if err := unpack(ctx, s.path, to); err != nil {
			return err
		}
		return settleItem(ctx, to)
	}
	for _, f := range s.files {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		from, target := filepath.Join(s.path, f.Name), filepath.Join(to, f.Name)
		err := fmt.Errorf("%s is neither a file nor a folder; only those can be staged", from)
		switch {
		case f.Type.IsDir() && f.Link:
			err = fmt.Errorf("%s is a link to a folder; only files and folders can be staged", from)
		case f.Type.IsDir():
			err = os.MkdirAll(target, 0o700)
		case f.Type.IsRegular():
			err = copyFile(ctx, from, target, f.Size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file of the given size.
func copyFile(ctx context.Context, from, to string, size int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, interruptible{ctx, in})
	if err = errors.Join(err, out.Close()); err == nil && n != size {
		err = fmt.Errorf("%s changed while it was copied: it had %d bytes, then %d", from, size, n)
	}
	return err
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(b)
}

// unpack unpacks a tar archive, plain or compressed with gzip or bzip2. No entry can be written
// outside the folder, even through its name or earlier links.
func unpack(ctx context.Context, archive, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	r := io.Reader(interruptible{ctx, f})
	switch name := strings.ToLower(archive); {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		if r, err = gzip.NewReader(r); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	case strings.HasSuffix(name, ".tar.bz2"):
		r = bzip2.NewReader(r)
	case strings.HasSuffix(name, ".tar"):
	default:
		return fmt.Errorf("%s is not an archive that can be unpacked here; valid: .tar, .tar.gz, .tgz, .tar.bz2", archive)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for entries := tar.NewReader(r); ; {
		h, err := entries.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = unpackEntry(root, h, entries)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := filepath.Clean(h.Name)
	if name == "." {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(filepath.Clean(h.Linkname), name)
	case tar.TypeReg:
		out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|h.FileInfo().Mode()&0o100)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, content)
		// Python recompiles a module whose modification time differs from the one in its compiled file.
		return errors.Join(err, out.Close(), root.Chtimes(name, h.ModTime, h.ModTime))
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fmt.Errorf("%s is not a file, folder or link", h.Name)
}

// environment returns the folder of an unpacked environment: it may have been packed with or without its name.
func environment(content string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(content, "bin", "python"))
	if len(found) == 0 {
		found, _ = filepath.Glob(filepath.Join(content, "*", "bin", "python"))
	}
	if len(found) != 1 {
		return "", fmt.Errorf("it holds %d environments (bin/python, or NAME/bin/python), want one", len(found))
	}
	return filepath.Dir(filepath.Dir(found[0])), nil
}

// settleItem adapts an environment of conda-pack to its new location, with the program that it brings for that
// purpose. A venv adapts by itself, but scripts in its bin folder still name the old path: start its programs
// with the interpreter (python -m NAME).
func settleItem(ctx context.Context, content string) error {
	folder, err := environment(content)
	if err != nil {
		return err
	}
	program := filepath.Join(folder, "bin", "conda-unpack")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "bin", "python"), "-I", "-B", program)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s%s", program, err, strings.TrimSpace(string(out)), samePython)
	}
	return nil
}

// interpreter returns the Python of an unpacked environment after starting it once.
func interpreter(ctx context.Context, content string) (string, error) {
	folder, err := environment(content)
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "bin", "python")
	if _, err := trust.AskPython(ctx, program, trust.PythonQuestion{Limit: startLimit}); err != nil {
		return "", fmt.Errorf("%w%s", err, samePython)
	}
	return program, nil
}

const (
	startLimit = 5 * time.Minute // for an interpreter that starts for the first time
	samePython = " (a venv needs the Python that it was made with at the same path on every node)"
)
