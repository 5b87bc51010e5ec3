//go:build cgo

package gpu

import (
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// An input is a batch in pinned memory, copied to the device in one piece: the images as bytes, as
// in the data set, then the augmentation of each image, then the labels. The device decodes the
// images. That takes a quarter of the copied bytes, and no host thread has to keep up with a GPU.
type input struct {
	pinned *cuda.Pinned
	batch  int // capacity in samples
}

const changeBytes = 3 // see kernel.Decode

// Offsets of the parts of an input with this capacity, and its length, in bytes.
func changesAt(batch int) int64  { return int64(batch) * dataset.ImageBytes }
func labelsAt(batch int) int64   { return changesAt(batch) + int64(batch)*changeBytes }
func inputBytes(batch int) int64 { return labelsAt(batch) + int64(batch) }

func (in input) Put(i int, image []byte, t dataset.Transform, label byte) {
	all := cuda.View[byte](in.pinned)
	images, changes, labels := all[:changesAt(in.batch)], all[changesAt(in.batch):labelsAt(in.batch)], all[labelsAt(in.batch):]
	copy(images[i*dataset.ImageBytes:(i+1)*dataset.ImageBytes], image)
	change := [changeBytes]byte{t.DX, t.DY, 0}
	if t.Mirror {
		change[2] = 1
	}
	copy(changes[i*changeBytes:], change[:])
	labels[i] = label
}

// decode enqueues the decoding of n samples into the network's images.
func (e *Engine) decode(n int) error {
	return e.net.kernels.Decode(e.stream, ptx.Decode{
		From: e.samples, Changes: e.samples + cuda.Pointer(changesAt(e.o.Batch)), Values: e.values, To: e.net.images,
		Shape:  ptx.Shape{Images: int32(n), Lines: dataset.Height, Points: dataset.Width, Channels: dataset.Channels},
		Margin: dataset.Margin,
	})
}
