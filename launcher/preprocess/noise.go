package preprocess

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math"
	"math/rand/v2"
)

// Test images have 500 × 375 pixels and about 110 kB, as in ImageNet. They are noise of several
// scales. Most of it is coarse, as in photographs. White noise would compress worse and take longer
// to decode.
const (
	noiseWidth   = 500
	noiseHeight  = 375
	noiseQuality = 90
)

// octaves are the scales of the noise. step is the distance in pixels between random values, and
// deviation their standard deviation.
var octaves = []struct{ step, deviation float64 }{{96, 50}, {24, 25}, {6, 13}, {1.5, 30}}

// noiseImage returns the i-th image of a seed as JPEG.
func noiseImage(seed uint64, i int) ([]byte, error) { return tintedNoise(seed, i, 0, 0) }

// tintedNoise is like noiseImage with a tint: it adds blue and red to the blue and red difference
// components.
func tintedNoise(seed uint64, i int, blue, red float64) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, uint64(i)))
	picture := image.NewYCbCr(image.Rect(0, 0, noiseWidth, noiseHeight), image.YCbCrSubsampleRatio420)
	noisePlane(random, picture.Y, picture.YStride, noiseWidth, noiseHeight, 1, 128)
	noisePlane(random, picture.Cb, picture.CStride, (noiseWidth+1)/2, (noiseHeight+1)/2, 0.4, 128+blue)
	noisePlane(random, picture.Cr, picture.CStride, (noiseWidth+1)/2, (noiseHeight+1)/2, 0.4, 128+red)
	var file bytes.Buffer
	err := jpeg.Encode(&file, picture, &jpeg.Options{Quality: noiseQuality})
	return file.Bytes(), err
}

// noisePlane fills one colour component with noise around the value middle. The noise is a sum over
// the octaves: each is a coarse grid of random values with linear interpolation.
func noisePlane(random *rand.Rand, plane []byte, stride, width, height int, strength, middle float64) {
	sums := make([]float64, width*height)
	for _, o := range octaves {
		columns, rows := int(float64(width)/o.step)+2, int(float64(height)/o.step)+2
		grid := make([]float64, columns*rows)
		for i := range grid {
			grid[i] = random.NormFloat64() * o.deviation * strength
		}
		for y := range height {
			at, dy := math.Modf(float64(y) / o.step)
			above := grid[int(at)*columns:]
			below := above[columns:]
			for x := range width {
				at, dx := math.Modf(float64(x) / o.step)
				i := int(at)
				sums[y*width+x] += (above[i]*(1-dx)+above[i+1]*dx)*(1-dy) + (below[i]*(1-dx)+below[i+1]*dx)*dy
			}
		}
	}
	for y := range height {
		for x := range width {
			plane[y*stride+x] = byte(min(max(sums[y*width+x]+middle, 0), 255))
		}
	}
}

// eachNoise generates n images and calls do with each.
func eachNoise(n int, seed uint64, do func(i int, file []byte) error) error {
	for i := range n {
		file, err := noiseImage(seed, i)
		if err == nil {
			err = do(i, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// generateFolder writes n images to subfolders of up to 1000 images, as data sets with one folder
// per class have them.
func generateFolder(n int, seed uint64, create func(string) (io.WriteCloser, error)) error {
	return eachNoise(n, seed, func(i int, file []byte) error {
		return writeFile(create, fmt.Sprintf("%04d/%06d.jpg", i/1000, i), file)
	})
}

func writeFile(create func(string) (io.WriteCloser, error), name string, content []byte) error {
	f, err := create(name)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
