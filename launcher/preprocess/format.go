package preprocess

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// File is one of the source.
type File struct {
	Path string
	Size int64
}

// A format is how samples lie in files. A new one is a file like tar.go and a line in
// formats.
type format struct {
	suffixes []string // of its files, in lower case
	// samples hands the samples of a file to do, one after the other, in memory that
	// is overwritten by the next.
	samples func(t *thread, f io.Reader, size int64, do func(sample []byte) error) error
	// prepare makes of a sample what is handed over, in t.packed.
	prepare func(t *thread, sample []byte) error
	// generate writes a source of so many samples; create makes one of its files.
	generate func(n int, seed uint64, create func(name string) (io.WriteCloser, error)) error
	decodes  bool // its samples are in JPEG
}

var formats = map[string]format{
	"jpeg":     {suffixes: jpegSuffixes, samples: whole, prepare: prepareJPEG, generate: generateFolder, decodes: true},
	"tar":      {suffixes: []string{".tar"}, samples: fromTar, prepare: prepareJPEG, generate: generateTar, decodes: true},
	"tfrecord": {suffixes: []string{".tfrecord", ".tfrecords"}, samples: fromTFRecord, prepare: prepareJPEG, generate: generateTFRecord, decodes: true},
	"cifar10":  {suffixes: []string{".bin"}, samples: fromCIFAR, prepare: prepareCIFAR, generate: generateCIFAR},
	"csv":      {suffixes: []string{".csv"}, samples: fromCSV, prepare: prepareCSV, generate: generateCSV},
}

var jpegSuffixes = []string{".jpg", ".jpeg"}

// Formats are the names of all.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Decodes reports whether samples of a format are in JPEG.
func Decodes(name string) bool { return formats[name].decodes }

// Find lists the source's files of a format, folders within it included, in the order
// of their names.
func Find(name, folder string) ([]File, error) {
	f, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("format %q is not known; valid: %s", name, strings.Join(Formats(), ", "))
	}
	var files []File
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !slices.Contains(f.suffixes, strings.ToLower(filepath.Ext(path))) || d.IsDir() {
			return nil
		}
		info, err := os.Stat(path) // a link's file
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			files = append(files, File{path, info.Size()})
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = &EmptyError{folder, f.suffixes}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, err
}

// Listing is what it takes to list a source once more, which a loader does at its
// start; skip says that there is nothing to list.
func Listing(name, folder string, skip bool) (Spent, error) {
	if skip {
		return Spent{}, nil
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := startWatch(List)
	_, err := Find(name, folder)
	w.enter(List)
	return w.sums[List], err
}

// EmptyError says that a source has no file of its format.
type EmptyError struct {
	Folder   string
	Suffixes []string
}

func (e *EmptyError) Error() string {
	return fmt.Sprintf("%s has no file named *%s; set workload.generate to have samples made there, or name another folder", e.Folder, strings.Join(e.Suffixes, " or *"))
}

// Generate makes a source of n samples in a folder that has none: complete, and then
// renamed, so that of several runs that do so one wins and none reads half a file.
func Generate(name, folder string, n int, seed uint64) error {
	f, ok := formats[name]
	if !ok {
		return fmt.Errorf("format %q is not known; valid: %s", name, strings.Join(Formats(), ", "))
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(folder, ".being-made-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	content := filepath.Join(temporary, "content")
	err = f.generate(n, seed, func(name string) (io.WriteCloser, error) {
		path := filepath.Join(content, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return nil, err
		}
		return &buffered{bufio.NewWriterSize(file, 1<<20), file}, nil
	})
	if err != nil {
		return err
	}
	err = os.Rename(content, filepath.Join(folder, fmt.Sprintf("%s-%d-seed%d", name, n, seed)))
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else's is the same
	}
	return err
}

type buffered struct {
	*bufio.Writer
	file *os.File
}

func (b *buffered) Close() error { return errors.Join(b.Flush(), b.file.Close()) }

// maxSample is the largest sample that is taken from a file of unknown origin.
const maxSample = 1 << 30

// whole is a file that is one sample.
func whole(t *thread, f io.Reader, size int64, do func([]byte) error) error {
	if size > maxSample {
		return fmt.Errorf("%d bytes for one sample; want %d at most", size, maxSample)
	}
	t.sample = sized(t.sample, int(size))
	if _, err := io.ReadFull(f, t.sample); err != nil {
		return fmt.Errorf("the file changed while it was read: %w", err)
	}
	return do(t.sample)
}

// sized is a buffer of a length, the old one if that is large enough.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
