package preprocess

import "testing"

// A test image is as large as ImageNet's are: DLIO takes 114,660 bytes for one, and
// the data set's own mean is about 110 kB.
func TestNoiseImage(t *testing.T) {
	var pixels Pixels
	for i := range 3 {
		file, err := noiseImage(1, i)
		if err != nil {
			t.Fatal(err)
		}
		if err := (GoJPEG{}).Decode(file, &pixels); err != nil {
			t.Fatal(err)
		}
		if n := len(file); n < 100_000 || n > 120_000 || pixels.Width != 500 || pixels.Height != 375 {
			t.Errorf("image %d: %d bytes, %d × %d pixels", i, n, pixels.Width, pixels.Height)
		}
	}
}
