package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// TrainFiles and TestFile are the files of CIFAR-10's binary version, which have 10,000 records
// each. Files with another number of complete records are read as well.
var TrainFiles = []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}

// TestFile has the test split.
const TestFile = "test_batch.bin"

// OpenCIFAR10 finds CIFAR-10's binary files in the folder dir. Only the first trainSamples and
// testSamples records are used; 0 means all. All six files must exist and be complete, even if none
// of their records is used.
func OpenCIFAR10(dir string, trainSamples, testSamples int) (*Source, error) {
	train, err := findFiles(dir, TrainFiles)
	if err != nil {
		return nil, err
	}
	test, err := findFiles(dir, []string{TestFile})
	if err != nil {
		return nil, err
	}
	nTrain, err := subset("training", trainSamples, total(train))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	nTest, err := subset("test", testSamples, total(test))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return &Source{TrainSamples: nTrain, TestSamples: nTest, load: func() (*Data, error) {
		trainSplit, err := readFiles(train, nTrain)
		if err != nil {
			return nil, err
		}
		testSplit, err := readFiles(test, nTest)
		if err != nil {
			return nil, err
		}
		return &Data{Train: trainSplit, Test: testSplit}, nil
	}}, nil
}

// file is a data file with the number of records that follows from its size.
type file struct {
	path    string
	records int
}

func total(files []file) (n int) {
	for _, f := range files {
		n += f.records
	}
	return n
}

func findFiles(dir string, names []string) ([]file, error) {
	var files []file
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing; the data folder must hold %s to %s and %s of CIFAR-10's binary version (its archive unpacks to cifar-10-batches-bin)",
				path, TrainFiles[0], TrainFiles[len(TrainFiles)-1], TestFile)
		}
		if err != nil {
			return nil, err
		}
		size := info.Size()
		switch {
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a regular file", path)
		case size == 0:
			return nil, fmt.Errorf("%s is empty", path)
		case size%RecordBytes != 0:
			return nil, fmt.Errorf("%s is cut short: %d bytes are %d records of %d bytes and %d bytes over; fetch it again",
				path, size, size/RecordBytes, RecordBytes, size%RecordBytes)
		}
		files = append(files, file{path, int(size / RecordBytes)})
	}
	return files, nil
}

// readFiles reads the first n records of the concatenated files.
func readFiles(files []file, n int) (Split, error) {
	s := newSplit(n)
	done := 0
	for _, f := range files {
		take := min(f.records, n-done)
		if take == 0 {
			break
		}
		in, err := os.Open(f.path)
		if err != nil {
			return Split{}, err
		}
		err = readRecords(in, f.path, s.Labels[done:done+take], s.Pixels[done*ImageBytes:(done+take)*ImageBytes])
		in.Close() // only read from
		if err != nil {
			return Split{}, err
		}
		done += take
	}
	return s, nil
}

// readRecords fills labels and pixels from the start of r. Errors contain name and count records
// from 1.
func readRecords(r io.Reader, name string, labels, pixels []byte) error {
	buffered := bufio.NewReaderSize(r, 1<<20)
	for i := range labels {
		label, err := buffered.ReadByte()
		if err == nil {
			_, err = io.ReadFull(buffered, pixels[i*ImageBytes:(i+1)*ImageBytes])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s: ends within record %d; it was longer when it was opened", name, i+1)
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", name, i+1, err)
		}
		if label >= Classes {
			return fmt.Errorf("%s: record %d (at byte %d) has label %d, want 0 to %d; the file is corrupt or not CIFAR-10's binary version",
				name, i+1, i*RecordBytes, label, Classes-1)
		}
		labels[i] = label
	}
	return nil
}
