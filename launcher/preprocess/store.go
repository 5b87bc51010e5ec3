package preprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A File is a file of the source.
type File struct {
	Path    string
	Size    int64
	Version string // an object's ETag, which another content would not have; "" for files
}

// A Store holds a source's files: a folder, an object store, memory.
type Store interface {
	// List names the files whose path is wanted.
	List(ctx context.Context, wanted func(path string) bool) ([]File, error)
	// Open begins to read a file from its start.
	Open(ctx context.Context, file File) (io.ReadCloser, error)
	// OpenRanges opens a file to read parts of it on demand.
	OpenRanges(ctx context.Context, file File) (Ranges, error)
}

// Ranges is a file of which parts can be read.
type Ranges interface {
	io.ReaderAt
	io.Closer
}

// A Folder is a folder of a file system, including its subfolders.
type Folder string

// List implements Store.
func (folder Folder) List(_ context.Context, wanted func(string) bool) (files []File, err error) {
	err = filepath.WalkDir(string(folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), beingMade) {
			return fs.SkipDir // another rank's, or another run's: not whole yet
		}
		if d.IsDir() || !wanted(path) {
			return nil
		}
		info, err := os.Stat(path) // a link's file
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			files = append(files, File{Path: path, Size: info.Size()})
		}
		return nil
	})
	return files, err
}

// Open implements Store.
func (Folder) Open(_ context.Context, file File) (io.ReadCloser, error) {
	f, err := os.Open(file.Path)
	if err != nil {
		return nil, err
	}
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL) // a hint, as most readers give
	return f, nil
}

// OpenRanges implements Store.
func (Folder) OpenRanges(_ context.Context, file File) (Ranges, error) { return os.Open(file.Path) }

// A Target takes what is written: a folder, an object store.
type Target interface {
	// Create begins a file of a name that it does not have.
	Create(ctx context.Context, name string) (Output, error)
}

// An Output is a file being written. Call either Commit or Abandon at the end.
type Output interface {
	io.Writer
	// Commit returns when storage has all of it.
	Commit() error
	// Abandon discards an unfinished file.
	Abandon() error
}

// Create implements Target.
func (folder Folder) Create(_ context.Context, name string) (Output, error) {
	f, err := os.OpenFile(filepath.Join(string(folder), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return synced{f}, nil
}

// A synced file is on storage once it is committed.
type synced struct{ *os.File }

func (f synced) Commit() error { return errors.Join(f.Sync(), f.Close()) }

func (f synced) Abandon() error { return f.Close() }

// Memory has the content of files, by path.
type Memory map[string][]byte

// List implements Store.
func (m Memory) List(_ context.Context, wanted func(string) bool) (files []File, err error) {
	for path, content := range m {
		if wanted(path) {
			files = append(files, File{Path: path, Size: int64(len(content))})
		}
	}
	return files, nil
}

// inMemory is a file that needs no closing.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// Open implements Store.
func (m Memory) Open(_ context.Context, file File) (io.ReadCloser, error) { return m.open(file) }

// OpenRanges implements Store.
func (m Memory) OpenRanges(_ context.Context, file File) (Ranges, error) { return m.open(file) }

func (m Memory) open(file File) (inMemory, error) {
	content, ok := m[file.Path]
	if !ok {
		return inMemory{}, fmt.Errorf("%s: %w", file.Path, fs.ErrNotExist)
	}
	return inMemory{bytes.NewReader(content)}, nil
}

// Load reads the content of files into memory.
func Load(ctx context.Context, store Store, files []File) (Memory, error) {
	memory := make(Memory, len(files))
	for _, file := range files {
		f, err := store.Open(ctx, file)
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return nil, err
		}
		memory[file.Path] = content
	}
	return memory, nil
}
