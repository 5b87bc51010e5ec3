package preprocess

import (
	"bufio"
	"cmp"
	"context"
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

// A format says how samples are stored in files. To add one, write a file like tar.go and add a
// line to formats.
type format struct {
	suffixes []string // suffixes of the format's files, in lower case
	// samples calls do with each sample of a file. The memory of a sample is overwritten by the
	// next.
	samples func(t *thread, f reading, size int64, do func(sample []byte) error) error
	// prepare prepares a sample; the result is in t.packed.
	prepare func(t *thread, sample []byte) error
	// generate writes a source with n test samples. It calls create to create each file.
	generate func(n int, seed uint64, create func(name string) (io.WriteCloser, error)) error
	decodes  bool // samples are JPEG images
	ranges   bool // only parts of the files are read
}

var formats = map[string]format{
	"jpeg":     {suffixes: jpegSuffixes, samples: whole, prepare: prepareJPEG, generate: generateFolder, decodes: true},
	"tar":      {suffixes: []string{".tar"}, samples: fromTar, prepare: prepareJPEG, generate: generateTar, decodes: true},
	"tfrecord": {suffixes: []string{".tfrecord", ".tfrecords"}, samples: fromTFRecord, prepare: prepareJPEG, generate: generateTFRecord, decodes: true},
	"parquet":  {suffixes: []string{".parquet"}, samples: fromParquet, prepare: prepareJPEG, generate: generateParquet, decodes: true, ranges: true},
	"cifar10":  {suffixes: []string{".bin"}, samples: fromCIFAR, prepare: prepareCIFAR, generate: generateCIFAR},
	"csv":      {suffixes: []string{".csv"}, samples: fromCSV, prepare: prepareCSV, generate: generateCSV},
}

var jpegSuffixes = []string{".jpg", ".jpeg"}

// Formats returns the names of all formats.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Decodes reports whether the samples of a format are JPEG images.
func Decodes(name string) bool { return formats[name].decodes }

// Find returns the files in the store that have the format's suffixes, sorted by name.
func Find(ctx context.Context, name string, store Store) ([]File, error) {
	f, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("format %q is not known; valid: %s", name, strings.Join(Formats(), ", "))
	}
	files, err := store.List(ctx, func(path string) bool {
		return slices.Contains(f.suffixes, strings.ToLower(filepath.Ext(path)))
	})
	if err == nil && len(files) == 0 {
		err = &EmptyError{f.suffixes}
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, err
}

// Listing lists the source again and returns how long that takes. Data loaders also list the
// source when they start.
func Listing(ctx context.Context, name string, store Store) (Spent, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := startWatch(List)
	_, err := Find(ctx, name, store)
	w.enter(List)
	return w.sums[List], err
}

// An EmptyError reports that a source has no files of its format.
type EmptyError struct{ Suffixes []string }

func (e *EmptyError) Error() string {
	return fmt.Sprintf("no file there is named *%s; name another source, or set workload.generate to have samples made in a folder", strings.Join(e.Suffixes, " or *"))
}

// beingMade is the prefix of the name of the folder in which samples are being generated.
const beingMade = ".being-made-"

// Generate generates a source of n samples in the folder, unless the folder already has a source.
// It writes the source completely before it renames it. Thus several runs can do this at the same
// time, and none reads a partial file.
func Generate(name, folder string, n int, seed uint64) error {
	f, ok := formats[name]
	if !ok {
		return fmt.Errorf("format %q is not known; valid: %s", name, strings.Join(Formats(), ", "))
	}
	return makeSource(folder, fmt.Sprintf("%s-%d-seed%d", name, n, seed), func(create func(string) (io.WriteCloser, error)) error {
		return f.generate(n, seed, create)
	})
}

// makeSource calls generate to create files, in a new folder with the given name within folder.
func makeSource(folder, name string, generate func(create func(name string) (io.WriteCloser, error)) error) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(folder, beingMade)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	content := filepath.Join(temporary, "content")
	err = generate(func(name string) (io.WriteCloser, error) {
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
	err = os.Rename(content, filepath.Join(folder, name))
	if errors.Is(err, fs.ErrExist) {
		return nil // another run has generated the same source
	}
	return err
}

type buffered struct {
	*bufio.Writer
	file *os.File
}

func (b *buffered) Close() error { return errors.Join(b.Flush(), b.file.Close()) }

// maxSample is the maximum size of a sample in bytes. Files come from unknown sources, so a
// stated size may be wrong.
const maxSample = 1 << 30

// whole reads a file that contains a single sample.
func whole(t *thread, f reading, size int64, do func([]byte) error) error {
	if size > maxSample {
		return fmt.Errorf("%d bytes for one sample; want %d at most", size, maxSample)
	}
	t.sample = sized(t.sample, int(size))
	if _, err := io.ReadFull(f, t.sample); err != nil {
		return fmt.Errorf("the file changed while it was read: %w", err)
	}
	return do(t.sample)
}

// sized returns a buffer of length n, reusing b if it is large enough.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
