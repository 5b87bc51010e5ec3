package target

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// Messages of the Open Inference Protocol over gRPC are encoded and decoded here without generated code: only a
// few fields of a few messages are used, and numbers are sent as raw bytes. Comments give the protocol's field
// names.

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendBytes(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

// nameRequest encodes a ModelReadyRequest or a ModelMetadataRequest.
func nameRequest(model string) []byte { return appendText(nil, 1, model) }

// inferRequest encodes a ModelInferRequest, with its tensors in raw_input_contents.
func inferRequest(model string, inputs []drawn) []byte {
	b := appendText(nil, 1, model)  // model_name
	b = appendText(b, 3, requestID) // id
	for _, in := range inputs {
		tensor := appendText(nil, 1, in.Name)       // name
		tensor = appendText(tensor, 2, in.Datatype) // datatype
		var shape []byte
		for _, size := range in.Shape {
			shape = protowire.AppendVarint(shape, uint64(size))
		}
		b = appendBytes(b, 5, appendBytes(tensor, 3, shape)) // inputs, shape
	}
	for _, in := range inputs {
		b = appendBytes(b, 7, in.raw) // raw_input_contents
	}
	return b
}

// A field is a decoded field of a message: value holds varints and fixed types, content the rest.
type field struct {
	number  protowire.Number
	kind    protowire.Type
	value   uint64
	content []byte
}

var errMessage = errors.New("the answer is not a message of the Open Inference Protocol")

// each calls f for the fields of a message, in order.
func each(message []byte, f func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMessage
		}
		message = message[n:]
		x := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			x.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			x.value = uint64(v)
		case protowire.Fixed64Type:
			x.value, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			x.content, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errMessage
		}
		message = message[n:]
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

// varints returns the values of a repeated field, packed or not.
func (x field) varints() (list []uint64, err error) {
	switch x.kind {
	case protowire.VarintType:
		return []uint64{x.value}, nil
	case protowire.BytesType:
		for rest := x.content; len(rest) > 0; {
			v, n := protowire.ConsumeVarint(rest)
			if n < 0 {
				return nil, errMessage
			}
			list, rest = append(list, v), rest[n:]
		}
		return list, nil
	}
	return nil, errMessage
}

// shape appends the sizes of a repeated int64 field.
func (x field) shape(to []int) ([]int, error) {
	list, err := x.varints()
	for _, v := range list {
		to = append(to, int(int64(v)))
	}
	return to, err
}

// text reads a string or message field. Any other wire type means a corrupt message.
func (x field) text(into *string) error {
	if x.kind != protowire.BytesType {
		return errMessage
	}
	*into = string(x.content)
	return nil
}

// readReady decodes a ModelReadyResponse.
func readReady(message []byte) (ready bool, err error) {
	err = each(message, func(x field) error {
		ready = ready || x.number == 1 && x.value != 0 // ready
		return nil
	})
	return ready, err
}

// readServer decodes a ServerMetadataResponse.
func readServer(message []byte) (s oip.Server, err error) {
	err = each(message, func(x field) error {
		switch x.number {
		case 1: // name
			return x.text(&s.Name)
		case 2: // version
			return x.text(&s.Version)
		case 3: // extensions
			s.Extensions = append(s.Extensions, "")
			return x.text(&s.Extensions[len(s.Extensions)-1])
		}
		return nil
	})
	return s, err
}

// readModel decodes a ModelMetadataResponse.
func readModel(message []byte) (m oip.Model, err error) {
	err = each(message, func(x field) error {
		switch x.number {
		case 1: // name
			return x.text(&m.Name)
		case 2: // versions
			m.Versions = append(m.Versions, "")
			return x.text(&m.Versions[len(m.Versions)-1])
		case 3: // platform
			return x.text(&m.Platform)
		case 4, 5: // inputs, outputs
			port, _, err := readTensor(x.content)
			if x.number == 4 {
				m.Inputs = append(m.Inputs, port)
			} else {
				m.Outputs = append(m.Outputs, port)
			}
			return err
		}
		return nil
	})
	return m, err
}

// readTensor decodes a TensorMetadata or an InferOutputTensor. contents may be nil.
func readTensor(message []byte) (port oip.Port, contents []byte, err error) {
	err = each(message, func(x field) (err error) {
		switch x.number {
		case 1: // name
			return x.text(&port.Name)
		case 2: // datatype
			return x.text(&port.Datatype)
		case 3: // shape
			port.Shape, err = x.shape(port.Shape)
		case 5: // contents
			contents = x.content
		}
		return err
	})
	return port, contents, err
}

// readInfer decodes a ModelInferResponse.
func readInfer(message []byte, room *share) (a answer, err error) {
	type tensor struct {
		oip.Port
		contents []byte
	}
	var tensors []tensor
	var raws [][]byte
	err = each(message, func(x field) error {
		switch x.number {
		case 1: // model_name
			return x.text(&a.model)
		case 5: // outputs
			port, contents, err := readTensor(x.content)
			tensors = append(tensors, tensor{port, contents})
			return err
		case 6: // raw_output_contents
			raws = append(raws, x.content)
		}
		return nil
	})
	if err != nil {
		return a, err
	}
	if len(raws) > 0 && len(raws) != len(tensors) {
		return a, fmt.Errorf("%d outputs, but the numbers of %d", len(tensors), len(raws))
	}
	for i, t := range tensors {
		raw := t.contents
		switch {
		case len(raws) > 0 && len(t.contents) > 0:
			err = errors.New("it has numbers both in its contents and as raw bytes")
		case len(raws) > 0:
			raw = raws[i]
		default:
			raw, err = fromContents(t.Datatype, t.contents)
		}
		var o output
		if err == nil {
			o, err = newOutput(oip.Tensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape}, append([]byte{}, raw...), room)
		}
		if err != nil {
			return a, fmt.Errorf("output %s: %w", t.Name, err)
		}
		a.outputs = append(a.outputs, o)
	}
	return a, nil
}

// contents maps each datatype to its field of InferTensorContents and the wire type of the elements.
var contents = map[string]struct {
	field protowire.Number
	kind  protowire.Type
}{
	"BOOL": {1, protowire.VarintType}, "INT8": {2, protowire.VarintType}, "INT16": {2, protowire.VarintType}, "INT32": {2, protowire.VarintType},
	"INT64": {3, protowire.VarintType}, "UINT8": {4, protowire.VarintType}, "UINT16": {4, protowire.VarintType}, "UINT32": {4, protowire.VarintType},
	"UINT64": {5, protowire.VarintType}, "FP32": {6, protowire.Fixed32Type}, "FP64": {7, protowire.Fixed64Type}, "BYTES": {8, protowire.BytesType},
}

// fromContents converts InferTensorContents to raw bytes.
func fromContents(datatype string, message []byte) (raw []byte, err error) {
	of, ok := contents[datatype]
	if !ok {
		return nil, fmt.Errorf("its datatype %q comes as raw bytes only", datatype)
	}
	size, _ := oip.Size(datatype)
	err = each(message, func(x field) error {
		switch {
		case x.number != of.field:
			return errors.New("its contents are of another datatype than " + strconv.Quote(datatype))
		case of.kind == protowire.BytesType && x.kind == of.kind:
			raw = append(binary.LittleEndian.AppendUint32(raw, uint32(len(x.content))), x.content...)
			return nil
		case of.kind == protowire.VarintType:
			list, err := x.varints()
			for _, v := range list {
				raw = append(raw, binary.LittleEndian.AppendUint64(nil, v)[:size]...)
			}
			return err
		case x.kind == protowire.BytesType: // packed: little-endian, like raw bytes
			raw = append(raw, x.content...)
			return nil
		case x.kind == of.kind:
			raw = append(raw, binary.LittleEndian.AppendUint64(nil, x.value)[:size]...)
			return nil
		}
		return errMessage
	})
	return raw, err
}
