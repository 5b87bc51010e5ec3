package dataset

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeRecords makes the six files with n records each: record i of file f has
// label (f+i)%10 and the pixel value f*16+i everywhere.
func writeRecords(t *testing.T, dir string, n int) {
	t.Helper()
	for f, name := range append(append([]string(nil), TrainFiles...), TestFile) {
		var b []byte
		for i := range n {
			b = append(b, byte((f+i)%Classes))
			b = append(b, bytes.Repeat([]byte{byte(f*16 + i)}, ImageBytes)...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCIFAR10(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, dir, 3)
	for _, test := range []struct{ train, test, wantTrain, wantTest int }{
		{0, 0, 15, 3}, {15, 3, 15, 3}, {4, 1, 4, 1}, {3, 2, 3, 2},
	} {
		source, err := OpenCIFAR10(dir, test.train, test.test)
		if err != nil {
			t.Fatal(err)
		}
		if source.TrainSamples != test.wantTrain || source.TestSamples != test.wantTest {
			t.Errorf("%+v: source has %d and %d samples", test, source.TrainSamples, source.TestSamples)
		}
		data, err := source.Load()
		if err != nil {
			t.Fatal(err)
		}
		if data.Train.Len() != test.wantTrain || data.Test.Len() != test.wantTest {
			t.Fatalf("%+v: loaded %d and %d samples", test, data.Train.Len(), data.Test.Len())
		}
		for i := range data.Train.Len() {
			f, r := i/3, i%3
			image := data.Train.Image(i)
			if data.Train.Labels[i] != byte((f+r)%Classes) || len(image) != ImageBytes || image[0] != byte(f*16+r) || image[ImageBytes-1] != byte(f*16+r) {
				t.Errorf("training sample %d: label %d, first pixel %d", i, data.Train.Labels[i], image[0])
			}
		}
		if data.Test.Labels[0] != 5 || data.Test.Image(0)[7] != 5*16 {
			t.Errorf("test sample 0: label %d, pixel %d", data.Test.Labels[0], data.Test.Image(0)[7])
		}
	}
}

func TestCIFAR10Errors(t *testing.T) {
	for _, test := range []struct {
		name       string
		spoil      func(t *testing.T, dir string)
		train      int
		wantFile   string
		wantWords  string
		whenLoaded bool
	}{
		{"missing", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "data_batch_3.bin"))) }, 0, "data_batch_3.bin", "missing", false},
		{"missing folder", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) }, 0, "data_batch_1.bin", "missing", false},
		{"short", func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "test_batch.bin"), 2*RecordBytes+17))
		}, 0, "test_batch.bin", "17 bytes over", false},
		{"empty", func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "data_batch_5.bin"), 0))
		}, 0, "data_batch_5.bin", "empty", false},
		{"label", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "data_batch_2.bin")
			b, err := os.ReadFile(path)
			must(t, err)
			b[RecordBytes] = 10
			must(t, os.WriteFile(path, b, 0o666))
		}, 0, "data_batch_2.bin", "record 2 (at byte 3073) has label 10", true},
		{"folder as file", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "data_batch_2.bin")
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o777))
		}, 0, "data_batch_2.bin", "not a regular file", false},
		{"too many", func(t *testing.T, dir string) {}, 16, "", "16 training samples asked for, the data set has 15", false},
		{"negative", func(t *testing.T, dir string) {}, -1, "", "want 1 to 15", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writeRecords(t, dir, 3)
			test.spoil(t, dir)
			source, err := OpenCIFAR10(dir, test.train, 0)
			if test.whenLoaded {
				must(t, err)
				_, err = source.Load()
			}
			if err == nil || !strings.Contains(err.Error(), test.wantWords) || !strings.Contains(err.Error(), filepath.Join(dir, test.wantFile)) {
				t.Errorf("%v, want %q about %q", err, test.wantWords, test.wantFile)
			}
		})
	}
}

// A file that shrinks between opening and loading is noticed.
func TestCIFAR10Shrinks(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, dir, 3)
	source, err := OpenCIFAR10(dir, 0, 0)
	must(t, err)
	must(t, os.Truncate(filepath.Join(dir, "data_batch_1.bin"), RecordBytes+5))
	if _, err := source.Load(); err == nil || !strings.Contains(err.Error(), "data_batch_1.bin: ends within record 2") {
		t.Error(err)
	}
}

func TestSynthesize(t *testing.T) {
	o := SyntheticOptions{TrainSamples: 53, TestSamples: 7, Seed: 5}
	dir := filepath.Join(t.TempDir(), "new", "data")
	must(t, Synthesize(dir, o))
	files, err := OpenCIFAR10(dir, 0, 0)
	must(t, err)
	fromFiles, err := files.Load()
	must(t, err)
	memory, err := OpenSynthetic(o)
	must(t, err)
	inMemory, err := memory.Load()
	must(t, err)
	if !same(fromFiles.Train, inMemory.Train) || !same(fromFiles.Test, inMemory.Test) {
		t.Error("the files and the data made in memory differ")
	}
	if err := Synthesize(dir, o); err == nil || !strings.Contains(err.Error(), "already there") {
		t.Errorf("overwrote data: %v", err)
	}

	o.TrainSamples = 20
	short, err := OpenSynthetic(o)
	must(t, err)
	first, err := short.Load()
	must(t, err)
	if !bytes.Equal(first.Train.Pixels, inMemory.Train.Pixels[:20*ImageBytes]) {
		t.Error("the first samples depend on how many there are")
	}
	o.Seed++
	other, err := OpenSynthetic(o)
	must(t, err)
	different, err := other.Load()
	must(t, err)
	if bytes.Equal(different.Train.Pixels, first.Train.Pixels) {
		t.Error("another seed gives the same data")
	}
	if bytes.Equal(inMemory.Train.Image(0), inMemory.Test.Image(0)) {
		t.Error("training and test split begin with the same image")
	}
}

// Pixels fill the range that the normalisation expects, and all classes occur.
func TestSyntheticLooksLikeImages(t *testing.T) {
	source, err := OpenSynthetic(SyntheticOptions{TrainSamples: 500, TestSamples: 1})
	must(t, err)
	data, err := source.Load()
	must(t, err)
	var sum, squares, n float64
	for _, p := range data.Train.Pixels {
		v := float64(p) / 255
		sum, squares, n = sum+v, squares+v*v, n+1
	}
	mean := sum / n
	if variance := squares/n - mean*mean; mean < 0.42 || mean > 0.55 || variance < 0.2*0.2 || variance > 0.3*0.3 {
		t.Errorf("pixels have mean %.3f and variance %.3f", mean, variance)
	}
	var counts [Classes]int
	for _, l := range data.Train.Labels {
		counts[l]++
	}
	for class, c := range counts {
		if c < 25 || c > 90 {
			t.Errorf("class %d has %d of 500 samples", class, c)
		}
	}
}

func TestSyntheticErrors(t *testing.T) {
	one := 1.0
	for _, o := range []SyntheticOptions{{TrainSamples: -1}, {TestSamples: -3}, {Difficulty: &one}, {TrainSamples: maxSamples + 1}} {
		if _, err := OpenSynthetic(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if err := Synthesize(t.TempDir(), SyntheticOptions{TrainSamples: 4}); err == nil {
		t.Error("4 samples were spread over 5 files")
	}
}

func FuzzReadRecords(f *testing.F) {
	f.Add([]byte{}, 1)
	f.Add(bytes.Repeat([]byte{9}, 2*RecordBytes), 2)
	f.Add(bytes.Repeat([]byte{10}, RecordBytes), 1)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = min(max(n, 0), 8)
		s := newSplit(n)
		if err := readRecords(bytes.NewReader(data), "f", s.Labels, s.Pixels); err != nil {
			return
		}
		// Reading the data and writing them again gives the same bytes.
		var again []byte
		for i := range n {
			if s.Labels[i] >= Classes {
				t.Fatalf("label %d", s.Labels[i])
			}
			again = append(append(again, s.Labels[i]), s.Image(i)...)
		}
		if !bytes.Equal(again, data[:len(again)]) {
			t.Fatal("records changed on the way")
		}
	})
}

func same(a, b Split) bool {
	return bytes.Equal(a.Labels, b.Labels) && bytes.Equal(a.Pixels, b.Pixels)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkSynthetic(b *testing.B) {
	for _, n := range []int{1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				s, err := OpenSynthetic(SyntheticOptions{TrainSamples: n, TestSamples: 1})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Load(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
