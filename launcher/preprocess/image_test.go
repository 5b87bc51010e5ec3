package preprocess

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// pillows are the images of testdata/pillow.py. Pixels of Go's decoder differ from
// libjpeg-turbo's by so much: each rounds in another place, and where the colours have
// half the resolution, Go repeats them and libjpeg-turbo draws lines between.
var pillows = []struct {
	name          string
	width, height int
	off           float64 // most that the mean difference may be, of 255
}{{"wide", 97, 61, 5}, {"tall", 45, 80, 1}, {"small", 20, 21, 1}, {"gray", 64, 50, 1}}

func content(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Resized and cropped pixels are Pillow's, bit for bit: reduced, enlarged, wide, tall.
func TestResizeEqualsPillow(t *testing.T) {
	s := scaler{resize: 32, crop: 28} // one for all: images of several sizes follow each other
	for range 2 {
		for _, p := range pillows {
			got := s.do(&Pixels{p.width, p.height, content(t, p.name+".rgb")})
			if !bytes.Equal(got, content(t, p.name+".crop")) {
				t.Errorf("%s differs from Pillow's", p.name)
			}
		}
	}
}

// Go's decoder agrees with Pillow, apart from rounding and how it upsamples colours.
func TestGoJPEGIsNearPillow(t *testing.T) {
	var pixels Pixels
	for _, p := range pillows {
		if err := (GoJPEG{}).Decode(content(t, p.name+".jpg"), &pixels); err != nil {
			t.Fatal(err)
		}
		want := content(t, p.name+".rgb")
		if pixels.Width != p.width || pixels.Height != p.height || len(pixels.RGB) != len(want) {
			t.Fatalf("%s: %d × %d pixels, %d bytes", p.name, pixels.Width, pixels.Height, len(pixels.RGB))
		}
		sum := 0.0
		for i, v := range pixels.RGB {
			sum += math.Abs(float64(v) - float64(want[i]))
		}
		if mean := sum / float64(len(want)); mean > p.off {
			t.Errorf("%s: pixels differ by %.2f on average", p.name, mean)
		}
	}
}

// Worked out by hand from ImageNet's mean and deviation: (255/255 − 0.485)/0.229,
// (0 − 0.456)/0.224, (51/255 − 0.406)/0.225, and a second pixel's behind each.
func TestNormalise(t *testing.T) {
	got := make([]float32, 6)
	normalise([]byte{255, 0, 51, 0, 255, 0}, got)
	for i, want := range []float64{2.24890830, -2.11790393, -2.03571429, 2.42857143, -0.91555556, -1.80444444} {
		if math.Abs(float64(got[i])-want) > 1e-6 {
			t.Errorf("value %d is %v, want %v", i, got[i], want)
		}
	}
}

// Bytes that are not an image are an error, and a header with a huge size allocates little memory.
func TestBadJPEG(t *testing.T) {
	whole := content(t, "wide.jpg")
	huge := bytes.Clone(whole)
	at := bytes.Index(huge, []byte{0xff, 0xc0}) // start of frame: length, precision, height, width
	copy(huge[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
	for name, file := range map[string][]byte{"empty": nil, "text": []byte("no picture"), "half": whole[:len(whole)/2], "huge": huge} {
		if err := (GoJPEG{}).Decode(file, new(Pixels)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
