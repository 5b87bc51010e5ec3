package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// Local computes a model within the caller's process, without a server. It does the
// same as ServeHandler, but without HTTP and without encoding numbers.
type Local struct {
	model      *netspec.Trained
	classifier Classifier
}

// NewLocal returns a Local that answers with model m; c computes the logits.
func NewLocal(m *netspec.Trained, c Classifier) *Local { return &Local{m, c} }

// Describe returns the server's description of the model.
func (l *Local) Describe() oip.Model { return describeModel(l.model) }

// Prepare checks the requests against the model's inputs. It returns a function call,
// which computes the logits for the images of one request, and a function end to call
// afterwards.
func (l *Local) Prepare(requests [][]oip.Array) (call func(request int) ([]oip.Array, error), end func(), err error) {
	port := l.Describe().Inputs[0]
	image, _ := oip.Elements(port.Shape[1:])
	for _, inputs := range requests {
		if len(inputs) != 1 || inputs[0].Name != port.Name || inputs[0].Datatype != port.Datatype || len(inputs[0].Bytes)%(4*image) != 0 {
			return nil, nil, fmt.Errorf("%s has one input, %s, of %s %v", l.model.Model, port.Name, port.Datatype, port.Shape)
		}
	}
	var images []float32
	last := -1 // index of the request whose images these are
	var raw []byte
	call = func(request int) ([]oip.Array, error) {
		if request != last {
			images, last = images[:0], request
			for number := range slices.Chunk(requests[request][0].Bytes, 4) {
				images = append(images, math.Float32frombits(binary.LittleEndian.Uint32(number)))
			}
		}
		raw = raw[:0]
		logits := l.classifier.Logits(images)
		for _, v := range logits {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		shape := []int{len(logits) / l.model.Classes, l.model.Classes}
		return []oip.Array{{Port: oip.Port{Name: outputName, Datatype: datatype, Shape: shape}, Bytes: raw}}, nil
	}
	return call, func() {}, nil
}
