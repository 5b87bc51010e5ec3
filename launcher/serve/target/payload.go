package target

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// Inputs configures the requests to a model.
type Inputs struct {
	Batch int // samples in a request; at least 1
	// Dims holds the sizes of inputs after the batch, by name, for models that report −1.
	Dims map[string][]int
	Seed uint64 // of the random numbers
	// Samples are sent in turn instead of random numbers, each with its expected answer if that is known; nil
	// sends random numbers.
	Samples *oip.SampleSet
	// Tolerance bounds how far floating-point numbers of right answers may differ, relative to the largest known
	// one; 0 means the default of the datatype.
	Tolerance float64
	// JSON sends JSON even if the server accepts binary tensors.
	JSON bool
}

// A Payload has the bodies of requests, and the known right answers to them, if any.
type Payload struct {
	Bodies     [][]byte // sent in turn
	JSONLength int      // length of the JSON in a body with binary tensors; 0 if all is JSON

	known Known
}

// Payload builds HTTP requests from the model's description of its inputs. Without samples it builds one
// request with random numbers drawn from the seed: normally distributed with mean 0 and variance 1 for floating
// point, 0 to 255 for UINT8, 0 to 9 for other integers. With samples it builds as many requests as they fill.
// The first dimension is the batch if the model leaves it open.
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

// body encodes one request.
func (p *Payload) body(m *Model, inputs []drawn, asBytes bool) ([]byte, error) {
	request := oip.Request{ID: requestID}
	if asBytes {
		request.Parameters.BinaryOutputs = &asBytes
	}
	rest := int64(mostRequest)
	var tensors []byte
	for _, input := range inputs {
		tensor := oip.Tensor{Name: input.Name, Shape: input.Shape, Datatype: input.Datatype}
		if asBytes {
			size := len(input.raw)
			tensor.Parameters.BinarySize = &size
			tensors = append(tensors, input.raw...)
		} else {
			var err error
			if rest, err = left(rest, input.Port, input.Shape, widths[input.Datatype]); err != nil {
				return nil, fmt.Errorf("input %s of model %s as JSON: %w", input.Name, m.Name, err)
			}
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
	if asBytes { // all requests have equal shapes, so this is decided once
		p.JSONLength = len(body)
	}
	return append(body, tensors...), nil
}

// requestID is the id of every request. Servers return it; without one they generate an id, and no two answers
// would be equal.
const requestID = "scalebench"

// A drawn is an input tensor of a request, with random or given values.
type drawn struct {
	oip.Port
	raw []byte
}

// requests returns the inputs of each request, and the known right answers, if any.
func (m *Model) requests(in Inputs) (requests [][]drawn, known Known, err error) {
	inputs, outputs, err := m.draw(in)
	known = Known{model: m.Name, ports: outputs, tolerance: in.Tolerance, kept: &atomic.Int64{}}
	if err == nil && in.Samples != nil {
		requests, known.wants, err = m.sampled(in, inputs)
	} else {
		requests = [][]drawn{inputs}
	}
	known.first = make([]atomic.Pointer[reference], len(requests))
	return requests, known, err
}

// draw returns a request's inputs and the outputs that its answer must have. If there are samples, it leaves
// the inputs empty.
func (m *Model) draw(in Inputs) (inputs []drawn, outputs []oip.Port, err error) {
	if in.Batch < 1 {
		return nil, nil, fmt.Errorf("a batch of %d; want at least 1", in.Batch)
	}
	if len(m.Inputs) == 0 {
		return nil, nil, fmt.Errorf("the server does not say what inputs model %s has; %s", m.Name, byHand)
	}
	for name := range in.Dims {
		if !slices.ContainsFunc(m.Inputs, func(p oip.Port) bool { return p.Name == name }) {
			return nil, nil, fmt.Errorf("model %s has no input %s", m.Name, name)
		}
	}
	random := rand.New(rand.NewPCG(in.Seed, 0x76b2))
	open := false // whether any input leaves the batch open
	rest := int64(mostRequest)
	for _, port := range m.Inputs {
		open = open || len(port.Shape) > 0 && port.Shape[0] == -1
		d := drawn{Port: port}
		if in.Samples != nil {
			if d.Shape, err = in.sampleShape(port); err != nil {
				return nil, nil, err
			}
		} else if d.Shape, err = in.shape(port); err == nil {
			if rest, err = left(rest, port, d.Shape, elementSize(port.Datatype)); err == nil {
				d.raw, err = draw(random, port.Datatype, d.Shape)
			}
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

// byHand is the end of error messages about models whose description is not enough to build a
// request: what to do.
const byHand = "post a request from a file (workload.path and workload.payload, or load --body)"

// shape returns the shape of an input in a request.
func (in Inputs) shape(port oip.Port) ([]int, error) {
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
	switch n, ok := oip.Elements(shape); {
	case slices.ContainsFunc(shape, func(size int) bool { return size < 0 }):
		return nil, fmt.Errorf("its shape is %v, which leaves more open than the batch; %s", port.Shape, byHand)
	case !ok:
		return nil, fmt.Errorf("its shape is %v, which has over %d elements with a batch of %d; %s", port.Shape, oip.MostElements, in.Batch, smaller)
	case n == 0:
		return nil, fmt.Errorf("its shape is %v, which is empty with a batch of %d", port.Shape, in.Batch)
	}
	return shape, nil
}

// smaller is the end of error messages about requests that are too large: what to do.
const smaller = "take a smaller batch, or sizes in workload.shape"

// left returns how much of a request's limit remains after an input of that shape. It is computed before the
// input is generated.
func left(rest int64, port oip.Port, shape []int, width int) (int64, error) {
	n, ok := oip.Elements(shape) // at most 2³⁰, so the product fits
	if size := int64(n) * int64(width); ok && size <= rest {
		return rest - size, nil
	} else if ok {
		return 0, fmt.Errorf("%s %v takes %d MiB, %d MiB are left of the %d MiB that a request may have; %s", port.Datatype, shape, size>>20, rest>>20, mostRequest>>20, smaller)
	}
	return 0, fmt.Errorf("%s %v has over %d elements; %s", port.Datatype, shape, oip.MostElements, smaller)
}

// elementSize returns the bytes of a generated element; 1 if the datatype is unknown, which draw refuses.
func elementSize(datatype string) int {
	if size, fixed := oip.Size(datatype); fixed {
		return size
	}
	if datatype == "BYTES" {
		return textSize
	}
	return 1
}

// textSize is the size of a generated BYTES element: its length field, and "text 7".
const textSize = 4 + 6

// widths has the maximum number of bytes of an element in JSON, with its comma, by datatype.
var widths = map[string]int{
	"BOOL": 6, "UINT8": 4, "INT8": 5, "UINT16": 6, "INT16": 7, "UINT32": 11, "INT32": 12, "UINT64": 21, "INT64": 21,
	"FP32": 24, "FP64": 25, "BYTES": textSize,
}

// draw generates a tensor.
func draw(random *rand.Rand, datatype string, shape []int) (raw []byte, err error) {
	n, _ := oip.Elements(shape)
	size, fixed := oip.Size(datatype)
	raw = make([]byte, 0, n*elementSize(datatype))
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
			raw = append(raw, byte(v))
			raw = append(raw, zeros[:size-1]...)
		}
	}
	return raw, nil
}

var zeros [8]byte

// asJSON returns a tensor as a flat JSON list. It writes element by element: a list of values would use many
// times the memory of its text.
func asJSON(datatype string, raw []byte) (json.RawMessage, error) {
	if datatype == "FP16" || datatype == "BF16" {
		return nil, errors.New("the protocol has no such numbers in JSON")
	}
	text := []byte{'['}
	next := func() {
		if len(text) > 1 {
			text = append(text, ',')
		}
	}
	if datatype == "BYTES" {
		o := output{Port: oip.Port{Datatype: datatype}}
		if err := o.fromBytes(raw, len(raw)); err != nil {
			return nil, err
		}
		for _, element := range o.exact {
			quoted, err := json.Marshal(element)
			if err != nil {
				return nil, err
			}
			next()
			text = append(text, quoted...)
		}
		return append(text, ']'), nil
	}
	size, ok := oip.Size(datatype)
	if !ok || len(raw)%size != 0 {
		return nil, fmt.Errorf("%d bytes are not a whole number of %s elements", len(raw), datatype)
	}
	for element := range slices.Chunk(raw, size) {
		next()
		v := 0.0
		switch datatype {
		case "FP32":
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(element)))
		case "FP64":
			v = math.Float64frombits(binary.LittleEndian.Uint64(element))
		default: // a number, true or false
			text = append(text, inJSON(datatype, element)...)
			continue
		}
		if v-v != 0 {
			return nil, fmt.Errorf("%g is not a valid JSON number", v)
		}
		text = strconv.AppendFloat(text, v, 'g', -1, 8*size)
	}
	return append(text, ']'), nil
}

// half converts a number to half precision by truncation. Numbers too small for a normal half-precision number
// become 0.
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
