package preprocess

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// A record of CIFAR-10's binary version is a label of one byte, and 32 × 32 bytes for
// each of red, green and blue.
const (
	cifarSide   = 32
	cifarPixels = cifarSide * cifarSide
	cifarRecord = 1 + 3*cifarPixels
)

func fromCIFAR(t *thread, f reading, size int64, do func([]byte) error) error {
	if size%cifarRecord != 0 {
		return fmt.Errorf("the size, %d bytes, is not a multiple of a CIFAR-10 record's, %d bytes", size, cifarRecord)
	}
	from := t.buffer(f)
	t.sample = sized(t.sample, cifarRecord)
	for {
		t.enter(Unpack)
		if _, err := io.ReadFull(from, t.sample); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := do(t.sample); err != nil {
			return err
		}
	}
}

// prepareCIFAR normalises the pixels. It does not resize them, since they have the size
// that trainings use.
func prepareCIFAR(t *thread, record []byte) error {
	t.enter(Unpack)
	if record[0] > 9 {
		return fmt.Errorf("label %d; CIFAR-10 has 0 to 9", record[0])
	}
	t.pixels.grow(cifarSide, cifarSide)
	for i := range cifarPixels {
		p := t.pixels.RGB[3*i:][:3]
		p[0], p[1], p[2] = record[1+i], record[1+cifarPixels+i], record[1+2*cifarPixels+i]
	}
	t.normalise(t.pixels.RGB)
	return nil
}

// generateCIFAR writes n random images to at least 8 files, so that threads can divide
// them, with up to 10,000 images each.
func generateCIFAR(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	return inFiles(n, 10_000, "data_batch_%d.bin", create, func(w io.Writer, i int) error {
		record := make([]byte, cifarRecord)
		_, _ = random.Read(record)
		record[0] = byte(i % 10)
		_, err := w.Write(record)
		return err
	})
}

// inFiles distributes n samples over 8 files, or over more files if these would have
// more than most samples.
func inFiles(n, most int, name string, create func(string) (io.WriteCloser, error), write func(w io.Writer, i int) error) error {
	each := min(most, max(1, (n+7)/8))
	for first := 0; first < n; first += each {
		f, err := create(fmt.Sprintf(name, first/each+1))
		if err != nil {
			return err
		}
		for i := first; i < min(first+each, n) && err == nil; i++ {
			err = write(f, i)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
