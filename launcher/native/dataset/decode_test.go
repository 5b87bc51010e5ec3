package dataset

import (
	"math"
	"testing"
)

// Decoding against its definition, pixel by pixel.
func TestDecode(t *testing.T) {
	image := make([]byte, ImageBytes)
	for i := range image {
		image[i] = byte(i*7 + i/256)
	}
	out := make([]float32, ImageBytes)
	for _, tr := range []Transform{Identity, {}, {8, 8, false}, {2, 7, true}, {4, 4, true}} {
		for i := range out {
			out[i] = 77
		}
		Decode(image, tr, out)
		for y := range 32 {
			for x := range 32 {
				for c := range 3 {
					// The window of the padded image that may be mirrored first.
					px, py := x, y+int(tr.DY)-4
					if tr.Mirror {
						px = 31 - x
					}
					px += int(tr.DX) - 4
					want := 0.0
					if px >= 0 && px < 32 && py >= 0 && py < 32 {
						want = (float64(image[c*1024+py*32+px])/255 - float64(Mean[c])) / float64(StdDev[c])
					}
					if got := float64(out[(y*32+x)*3+c]); math.Abs(got-want) > 1e-5 {
						t.Fatalf("%+v: pixel %d,%d channel %d is %v, want %v", tr, x, y, c, got, want)
					}
				}
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	image, out := make([]byte, ImageBytes), make([]float32, ImageBytes)
	for b.Loop() {
		Decode(image, Transform{2, 7, true}, out)
	}
}
