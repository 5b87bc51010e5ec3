package target

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/scalebench/scalebench/launcher/serve/samples"
	"github.com/scalebench/scalebench/launcher/serve/v2"
)

// Inputs is what to send to a model.
type Inputs struct {
	Batch int // samples in a request; at least 1
	// Dims are the sizes of inputs behind the batch, by name, where the model says −1.
	Dims map[string][]int
	Seed uint64 // that the numbers are drawn from
	// Samples are sent in turn, in place of drawn ones, each with the answer that it is
	// to have, if that is known; nil: numbers are drawn.
	Samples *samples.Set
	// Tolerance is how far apart floating-point numbers of right answers may be, as a
	// part of the largest that is known; 0: by their datatype.
	Tolerance float64
	// JSON: not as binary tensors, even if the server takes them.
	JSON bool
}

// Payload is the bodies of requests, and what answers to them are like.
type Payload struct {
	Bodies     [][]byte // sent in turn
	JSONLength int      // of a body with binary tensors behind it; 0: all is JSON

	known Known
}

// Payload makes requests over HTTP from what the model says of its inputs: one of
// numbers that are drawn from the seed, normal ones of mean 0 and variance 1 where it
// takes floating point, 0 to 255 as UINT8, 0 to 9 as other integers; or as many as the
// samples suffice for. Its first dimension is the batch where the model leaves that
// open.
func (m *Model) Payload(in Inputs) (*Payload, error) {
	requests, known, err := m.requests(in)
	if err != nil {
		return nil, err
	}
	p := &Payload{known: known}
	for _, inputs := range requests {
		body, err := p.body(m, inputs, m.Binary() && !in.JSON)
		if err != nil {
			return nil, err
		}
		p.Bodies = append(p.Bodies, body)
	}
	return p, nil
}

// body is that of one request.
func (p *Payload) body(m *Model, inputs []drawn, asBytes bool) ([]byte, error) {
	request := v2.Request{ID: requestID}
	if asBytes {
		request.Parameters.BinaryOutputs = &asBytes
	}
	var tensors []byte
	for _, input := range inputs {
		tensor := v2.Tensor{Name: input.Name, Shape: input.Shape, Datatype: input.Datatype}
		if asBytes {
			size := len(input.raw)
			tensor.Parameters.BinarySize = &size
			tensors = append(tensors, input.raw...)
		} else {
			var err error
			if tensor.Data, err = asJSON(input.Datatype, input.raw); err != nil {
				return nil, fmt.Errorf("input %s of model %s is %s, which JSON cannot hold (%w); ask a server that takes binary tensors, in binary", input.Name, m.Name, input.Datatype, err)
			}
		}
		request.Inputs = append(request.Inputs, tensor)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if asBytes { // the same of every request, which have the same shapes
		p.JSONLength = len(body)
	}
	return append(body, tensors...), nil
}

// requestID is every request's. Servers give it back; of one without they make an id,
// and then no two answers are equal.
const requestID = "scalebench"

// A drawn is an input of a request.
type drawn struct {
	v2.Port
	raw []byte
}

// requests makes the inputs of each, and says what is known of their answers.
func (m *Model) requests(in Inputs) (requests [][]drawn, known Known, err error) {
	inputs, outputs, err := m.draw(in)
	known = Known{model: m.Name, ports: outputs, tolerance: in.Tolerance}
	if err == nil && in.Samples != nil {
		requests, known.wants, err = m.sampled(in, inputs)
	} else {
		requests = [][]drawn{inputs}
	}
	known.first = make([]atomic.Pointer[reference], len(requests))
	return requests, known, err
}

// draw makes a request's inputs, and says what outputs its answer has. Where there are
// samples, nothing is drawn yet.
func (m *Model) draw(in Inputs) (inputs []drawn, outputs []v2.Port, err error) {
	if in.Batch < 1 {
		return nil, nil, fmt.Errorf("a batch of %d; want at least 1", in.Batch)
	}
	if len(m.Inputs) == 0 {
		return nil, nil, fmt.Errorf("the server does not say what inputs model %s has; %s", m.Name, byHand)
	}
	for name := range in.Dims {
		if !slices.ContainsFunc(m.Inputs, func(p v2.Port) bool { return p.Name == name }) {
			return nil, nil, fmt.Errorf("model %s has no input %s", m.Name, name)
		}
	}
	random := rand.New(rand.NewPCG(in.Seed, 0x76b2))
	open := false // whether any input leaves the batch open
	for _, port := range m.Inputs {
		open = open || len(port.Shape) > 0 && port.Shape[0] == -1
		d := drawn{Port: port}
		if in.Samples != nil {
			if d.Shape, err = in.sampleShape(port); err != nil {
				return nil, nil, err
			}
		} else if d.Shape, err = in.shape(port); err == nil {
			d.raw, err = draw(random, port.Datatype, d.Shape)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("input %s of model %s: %w", port.Name, m.Name, err)
		}
		inputs = append(inputs, d)
	}
	for _, port := range m.Outputs {
		port.Shape = slices.Clone(port.Shape)
		if open && len(port.Shape) > 0 && port.Shape[0] == -1 {
			port.Shape[0] = in.Batch
		}
		outputs = append(outputs, port)
	}
	return inputs, outputs, nil
}

// byHand is what to do where a model does not say enough to draw a request.
const byHand = "post a request from a file (workload.path and workload.payload, or load --body)"

// shape is an input's in a request.
func (in Inputs) shape(port v2.Port) ([]int, error) {
	shape := slices.Clone(port.Shape)
	rest := shape
	if len(shape) > 0 && shape[0] == -1 {
		shape[0], rest = in.Batch, shape[1:]
	} else if in.Batch > 1 && (len(shape) == 0 || shape[0] != in.Batch) {
		return nil, fmt.Errorf("its shape is %v, which has no batch of %d", port.Shape, in.Batch)
	} else if len(shape) > 0 && shape[0] == in.Batch {
		rest = shape[1:]
	}
	if dims, ok := in.Dims[port.Name]; ok {
		if len(dims) != len(rest) {
			return nil, fmt.Errorf("its shape is %v; it has %d dimensions after the batch, not %d", port.Shape, len(rest), len(dims))
		}
		for i, size := range dims {
			if size < 1 || rest[i] != -1 && rest[i] != size {
				return nil, fmt.Errorf("its shape is %v, which %v does not fit", port.Shape, dims)
			}
			rest[i] = size
		}
	}
	switch n, ok := v2.Elements(shape); {
	case slices.ContainsFunc(shape, func(size int) bool { return size < 0 }):
		return nil, fmt.Errorf("its shape is %v, which leaves more open than the batch; %s", port.Shape, byHand)
	case !ok || n == 0:
		return nil, fmt.Errorf("its shape is %v, which is empty or too large with a batch of %d", port.Shape, in.Batch)
	}
	return shape, nil
}

// draw makes a tensor.
func draw(random *rand.Rand, datatype string, shape []int) (raw []byte, err error) {
	n, _ := v2.Elements(shape)
	size, fixed := v2.Size(datatype)
	for range n {
		switch datatype {
		case "FP64":
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(random.NormFloat64()))
		case "FP32", "FP16", "BF16":
			v := float32(random.NormFloat64())
			switch datatype {
			case "FP32":
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			case "FP16":
				raw = binary.LittleEndian.AppendUint16(raw, half(v))
			default:
				raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(v)>>16))
			}
		case "BOOL":
			raw = append(raw, byte(random.IntN(2)))
		case "BYTES":
			v := fmt.Sprintf("text %d", random.IntN(10))
			raw = append(binary.LittleEndian.AppendUint32(raw, uint32(len(v))), v...)
		default:
			if !fixed {
				return nil, fmt.Errorf("its datatype %q is not one of the Open Inference Protocol", datatype)
			}
			v := random.IntN(10)
			if datatype == "UINT8" {
				v = random.IntN(256)
			}
			raw = append(raw, make([]byte, size)...)
			raw[len(raw)-size] = byte(v)
		}
	}
	return raw, nil
}

// asJSON is a tensor as a list, flat.
func asJSON(datatype string, raw []byte) (json.RawMessage, error) {
	if datatype == "FP16" || datatype == "BF16" {
		return nil, errors.New("the protocol has no such numbers in JSON")
	}
	list := []any{}
	o := output{Port: v2.Port{Datatype: datatype}}
	if err := o.fromBytes(raw); err != nil {
		return nil, err
	}
	for _, v := range o.numbers {
		if datatype == "FP32" {
			list = append(list, float32(v))
		} else {
			list = append(list, v)
		}
	}
	for _, text := range o.exact {
		if datatype == "BYTES" {
			list = append(list, text)
		} else { // a number, true or false
			list = append(list, json.RawMessage(text))
		}
	}
	return json.Marshal(list)
}

// half is a normal number of single precision in half precision, cut off: what is too
// small for a normal number there is 0.
func half(v float32) uint16 {
	bits := math.Float32bits(v)
	sign, exponent := uint16(bits>>16&0x8000), int(bits>>23&0xff)-127+15
	switch {
	case exponent < 1:
		return sign
	case exponent > 30:
		return sign | 30<<10 | 0x3ff // the largest
	}
	return sign | uint16(exponent)<<10 | uint16(bits>>13&0x3ff)
}
