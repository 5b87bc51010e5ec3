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

// A File is one file, or object, of the source that is read.
type File struct {
	Path    string
	Size    int64
	Version string // for an object its ETag, which changes with its content; "" for a file
}

// A Store gives access to the files of a source. The files may be in a folder,
// in an object store or in memory.
type Store interface {
	// List returns the files for whose path wanted returns true.
	List(ctx context.Context, wanted func(path string) bool) ([]File, error)
	// Open opens a file to read it from its start.
	Open(ctx context.Context, file File) (io.ReadCloser, error)
	// OpenRanges opens a file to read parts of it on demand.
	OpenRanges(ctx context.Context, file File) (Ranges, error)
}

// Ranges is an open file of which any part can be read.
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
			return fs.SkipDir // skip a folder that another rank or run is still generating
		}
		if d.IsDir() || !wanted(path) {
			return nil
		}
		info, err := os.Stat(path) // follows a symbolic link, unlike d.Info
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
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL) // tell the kernel that the file is read in order, as most programs do
	return f, nil
}

// OpenRanges implements Store.
func (Folder) OpenRanges(_ context.Context, file File) (Ranges, error) { return os.Open(file.Path) }

// A Target is a folder or object store to which prepared samples are written.
type Target interface {
	// Create creates a new file with this name. It returns an error if the file
	// exists.
	Create(ctx context.Context, name string) (Output, error)
}

// An Output is a file being written. Call either Commit or Abandon at the end.
type Output interface {
	io.Writer
	// Commit finishes the file and returns when all of it is on storage.
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

// synced is a file that Commit syncs to storage before closing it.
type synced struct{ *os.File }

func (f synced) Commit() error { return errors.Join(f.Sync(), f.Close()) }

func (f synced) Abandon() error { return f.Close() }

// Memory is a Store that holds the contents of files in memory, by path.
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

// inMemory is an open file of a Memory. Closing it does nothing.
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

// Load reads files into memory and returns a Store with them.
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
