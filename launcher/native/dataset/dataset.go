// Package dataset reads image classification data in CIFAR-10's binary format, makes synthetic data
// of the same shape, and makes texts.
//
// Opening and loading are separate. Open… reads only names and sizes, so that a program knows the
// amount of data before its training clock starts; Load reads the data. Images are kept as the
// bytes in the file. Decoding and normalising them is part of making a batch, or of the step if a
// GPU does it, and is timed there.
package dataset

import "fmt"

// The shape of every image and record.
const (
	Classes  = 10
	Channels = 3
	Height   = 32
	Width    = 32
	// ImageBytes is the size of an image: three planes (red, green, blue) of Height rows of Width
	// bytes.
	ImageBytes = Channels * Height * Width
	// RecordBytes is the size of a record in a file: the label, then the image.
	RecordBytes = 1 + ImageBytes
)

// Mean and StdDev normalise a pixel: (byte/255 − Mean[c]) / StdDev[c]. They are
// the per-channel mean and standard deviation over CIFAR-10's 50,000 training
// images; synthetic data is normalised with the same constants.
var (
	Mean   = [Channels]float32{0.4914, 0.4822, 0.4465}
	StdDev = [Channels]float32{0.2470, 0.2435, 0.2616}
)

// Split is a list of labelled images.
type Split struct {
	Labels []byte // 0 to Classes-1
	Pixels []byte // ImageBytes for each label, in the same order
}

// Len returns the number of images in the split.
func (s Split) Len() int { return len(s.Labels) }

// Image returns the bytes of image i, planar. The caller must not change them.
func (s Split) Image(i int) []byte { return s.Pixels[i*ImageBytes : (i+1)*ImageBytes] }

func newSplit(n int) Split {
	return Split{Labels: make([]byte, n), Pixels: make([]byte, n*ImageBytes)}
}

// Data is a data set in memory.
type Data struct{ Train, Test Split }

// Source is a data set that was found but not read yet.
type Source struct {
	TrainSamples, TestSamples int // numbers of samples that Load will return

	load func() (*Data, error)
}

// Load reads or makes the data.
func (s *Source) Load() (*Data, error) { return s.load() }

// subset returns how many samples to use if want of the available ones were requested; a want of 0
// means all.
func subset(split string, want, available int) (int, error) {
	switch {
	case want < 0:
		return 0, fmt.Errorf("%d %s samples requested; want 1 to %d, or 0 for all", want, split, available)
	case want > available:
		return 0, fmt.Errorf("%d %s samples asked for, the data set has %d", want, split, available)
	case want == 0:
		return available, nil
	}
	return want, nil
}
