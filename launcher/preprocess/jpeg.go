package preprocess

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
)

// GoJPEG decodes JPEG with Go's image/jpeg. It needs no C library, and takes
// about three times as long as libjpeg-turbo.
type GoJPEG struct{}

// Close does nothing.
func (GoJPEG) Close() {}

// Decode decodes a JPEG file and stores its pixels in into.
func (GoJPEG) Decode(file []byte, into *Pixels) error {
	head, err := jpeg.DecodeConfig(bytes.NewReader(file))
	if err == nil {
		err = Grow(into, head.Width, head.Height)
	}
	if err != nil {
		return err
	}
	picture, err := jpeg.Decode(bytes.NewReader(file))
	if err != nil {
		return err
	}
	switch p := picture.(type) {
	case *image.YCbCr:
		for y := range into.Height {
			row := into.RGB[3*into.Width*y:][:3*into.Width]
			for x := range into.Width {
				light, tint := p.YOffset(x, y), p.COffset(x, y)
				row[3*x], row[3*x+1], row[3*x+2] = color.YCbCrToRGB(p.Y[light], p.Cb[tint], p.Cr[tint])
			}
		}
	case *image.Gray:
		for y := range into.Height {
			row := into.RGB[3*into.Width*y:][:3*into.Width]
			for x, v := range p.Pix[y*p.Stride:][:into.Width] {
				row[3*x], row[3*x+1], row[3*x+2] = v, v, v
			}
		}
	default: // any other colour model, such as CMYK, which old camera software writes
		for y := range into.Height {
			for x := range into.Width {
				r, g, b, _ := p.At(x, y).RGBA()
				copy(into.RGB[3*(into.Width*y+x):], []byte{byte(r >> 8), byte(g >> 8), byte(b >> 8)})
			}
		}
	}
	if picture.Bounds().Dx() != into.Width || picture.Bounds().Dy() != into.Height {
		return fmt.Errorf("the image is not of the size that its head says")
	}
	return nil
}
