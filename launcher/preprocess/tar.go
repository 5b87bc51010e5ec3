package preprocess

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// perShard is the number of test images per shard.
const perShard = 32

// fromTar reads the images in a tar file with the layout of WebDataset. It skips everything else,
// such as labels and captions.
func fromTar(t *thread, f reading, size int64, do func([]byte) error) error {
	archive := tar.NewReader(t.buffer(f))
	for {
		t.enter(Unpack)
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if head.Typeflag != tar.TypeReg || !slices.Contains(jpegSuffixes, strings.ToLower(path.Ext(head.Name))) {
			continue
		}
		if head.Size < 0 || head.Size > size || head.Size > maxSample {
			return fmt.Errorf("%s has %d bytes, in a file of %d; want %d at most", head.Name, head.Size, size, maxSample)
		}
		t.sample = sized(t.sample, int(head.Size))
		if _, err := io.ReadFull(archive, t.sample); err != nil {
			return fmt.Errorf("%s: %w", head.Name, err)
		}
		if err := do(t.sample); err != nil {
			return fmt.Errorf("%s: %w", head.Name, err)
		}
	}
}

// buffer returns a reader that reads the file in pieces of a megabyte.
func (t *thread) buffer(f io.Reader) *bufio.Reader {
	if t.ahead == nil {
		t.ahead = bufio.NewReaderSize(f, 1<<20)
	}
	t.ahead.Reset(f)
	return t.ahead
}

func generateTar(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	return shards(n, seed, ".tar", create, func(w io.Writer) (func(int, []byte) error, func() error) {
		archive := tar.NewWriter(w)
		return func(i int, file []byte) error {
			err := archive.WriteHeader(&tar.Header{Name: fmt.Sprintf("%06d.jpg", i), Mode: 0o644, Size: int64(len(file)), Format: tar.FormatUSTAR})
			if err == nil {
				_, err = archive.Write(file)
			}
			return err
		}, archive.Close
	})
}

// shards writes n test images to files with perShard images each. begin starts a file; it returns
// a function that adds an image, and one that ends the file.
func shards(n int, seed uint64, suffix string, create func(string) (io.WriteCloser, error), begin func(io.Writer) (add func(int, []byte) error, end func() error)) error {
	for first := 0; first < n; first += perShard {
		f, err := create(fmt.Sprintf("%05d%s", first/perShard, suffix))
		if err != nil {
			return err
		}
		add, end := begin(f)
		for i := first; i < min(first+perShard, n) && err == nil; i++ {
			var file []byte
			if file, err = noiseImage(seed, i); err == nil {
				err = add(i, file)
			}
		}
		if err = errors.Join(err, end(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
