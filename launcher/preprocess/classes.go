package preprocess

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Classes determine the labels of samples for a training.
type Classes struct {
	Names []string
	of    func(file File, sample []byte) byte
}

// Classified returns the names of the formats whose samples have a class.
func Classified() []string { return []string{"cifar10", "jpeg"} }

// FindClasses returns the classes of a source. For JPEG images these are the sorted names of their
// folders, as in torchvision's ImageFolder. For CIFAR-10 they are its ten classes.
func FindClasses(format string, files []File) (*Classes, error) {
	switch format {
	case "cifar10":
		of := func(_ File, sample []byte) byte { return sample[0] } // prepareCIFAR has checked that it is valid
		return &Classes{[]string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}, of}, nil
	case "jpeg":
	default:
		return nil, fmt.Errorf("samples in format %q have no class that is read; valid: %s", format, strings.Join(Classified(), ", "))
	}
	folder := func(f File) string { return path.Base(path.Dir(filepath.ToSlash(f.Path))) }
	number := map[string]byte{}
	for _, f := range files {
		number[folder(f)] = 0
	}
	names := slices.Sorted(maps.Keys(number))
	if len(names) < 2 || len(names) > math.MaxUint8+1 {
		return nil, fmt.Errorf("the class of an image is the name of its folder, and there are %d of these (%s); want 2 to %d", len(names), shortened(names), math.MaxUint8+1)
	}
	for i, name := range names {
		number[name] = byte(i)
	}
	return &Classes{names, func(f File, _ []byte) byte { return number[folder(f)] }}, nil
}

// shortened returns the first three names, separated by commas, for a message.
func shortened(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// tints is the number of classes of test images. Each class has a colour; the colours are equally
// spaced on the colour circle.
const tints = 10

// tint returns the colour of a class: what is added to the blue and red difference components,
// which range to 255. Since the coarse noise of an image has a deviation of 20, a single pixel does
// not reveal the class.
func tint(class int) (blue, red float64) {
	sin, cos := math.Sincos(2 * math.Pi * float64(class) / tints)
	return 25 * cos, 25 * sin
}

// GenerateClasses is like Generate, for a training on the samples. Sample i has class i modulo 10,
// which determines its colour.
func GenerateClasses(format, folder string, n int, seed uint64) error {
	if !slices.Contains(Classified(), format) {
		return fmt.Errorf("no samples with a class can be made in format %q; valid: %s", format, strings.Join(Classified(), ", "))
	}
	return makeSource(folder, fmt.Sprintf("%s-%d-classes-seed%d", format, n, seed), func(create func(string) (io.WriteCloser, error)) error {
		if format == "cifar10" {
			return tintedCIFAR(n, seed, create)
		}
		for i := range n {
			blue, red := tint(i % tints)
			file, err := tintedNoise(seed, i, blue, red)
			if err == nil {
				err = writeFile(create, fmt.Sprintf("class%d/%06d.jpg", i%tints, i), file)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// tintedCIFAR writes records like generateCIFAR, but gives each image the colour of its class.
func tintedCIFAR(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	random := rand.New(rand.NewPCG(seed, 0))
	return inFiles(n, 10_000, "data_batch_%d.bin", create, func(w io.Writer, i int) error {
		blue, red := tint(i % tints)
		record := []byte{byte(i % tints)}
		for _, shift := range []float64{red, -(red + blue) / 2, blue} {
			for range cifarPixels {
				record = append(record, byte(min(max(128+shift+50*random.NormFloat64(), 0), 255)))
			}
		}
		_, err := w.Write(record)
		return err
	})
}

// Side returns the width and height of the prepared images, which are square, in pixels.
func Side(format string, crop int) int {
	if format == "cifar10" {
		return cifarSide
	}
	return crop
}
