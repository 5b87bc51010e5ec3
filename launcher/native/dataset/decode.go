package dataset

// Margin is the width of the zero padding of an image, in pixels, before cropping.
const Margin = 4

// A Transform describes the augmentation of an image: the position of a window of the image's size
// in the padded image, and whether it is mirrored.
type Transform struct {
	DX, DY uint8 // position of the window in the padded image, 0 to 2·Margin
	Mirror bool
}

// Identity does not change an image.
var Identity = Transform{DX: Margin, DY: Margin}

// Values maps a byte of each channel to its normalised value.
var Values = func() (table [Channels][256]float32) {
	for c := range table {
		for b := range table[c] {
			table[c][b] = (float32(b)/255 - Mean[c]) / StdDev[c]
		}
	}
	return table
}()

// A Batch receives an engine's samples.
type Batch interface {
	// Put stores an image, transformed by t, and its label as sample i of the batch.
	Put(i int, image []byte, t Transform, label byte)
}

// Decoded is a Batch of normalised images, [image][line][point][channel].
type Decoded struct {
	Images []float32
	Labels []byte
}

func (d Decoded) Put(i int, image []byte, t Transform, label byte) {
	Decode(image, t, d.Images[i*ImageBytes:(i+1)*ImageBytes])
	d.Labels[i] = label
}

// Decode converts an image from bytes to normalised values (NHWC). The padding is zero after
// normalisation, which is the mean colour.
func Decode(image []byte, t Transform, out []float32) {
	for y := range Height {
		row := out[y*Width*Channels : (y+1)*Width*Channels]
		iy := y + int(t.DY) - Margin
		if iy < 0 || iy >= Height {
			clear(row)
			continue
		}
		for x := range Width {
			ix := x
			if t.Mirror {
				ix = Width - 1 - x
			}
			ix += int(t.DX) - Margin
			pixel := row[x*Channels : (x+1)*Channels]
			if ix < 0 || ix >= Width {
				clear(pixel)
				continue
			}
			for c := range pixel {
				pixel[c] = Values[c][image[(c*Height+iy)*Width+ix]]
			}
		}
	}
}
