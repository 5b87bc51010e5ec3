// Package oip declares the JSON messages of the Open Inference Protocol, version 2, which Triton, KServe,
// MLServer and others implement, with its extension for binary tensors
// (https://github.com/kserve/open-inference-protocol). Client and server share it.
//
// A body with binary tensors is JSON followed by the tensors' bytes in the order of the JSON, little-endian and
// in row-major order. A header gives the length of the JSON.
//
// samples.go reads the inputs and the expected outputs of requests from files.
package oip

import (
	"encoding/json"
	"fmt"
)

// BinaryExtension is listed in the extensions of servers that accept binary tensors.
const BinaryExtension = "binary_tensor_data"

// LengthHeader gives the length of the JSON in a body with binary tensors.
const LengthHeader = "Inference-Header-Content-Length"

// A Server is the answer to GET /v2.
type Server struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// A Model is the answer to GET /v2/models/NAME.
type Model struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions,omitempty"`
	Platform string   `json:"platform"`
	Inputs   []Port   `json:"inputs"`
	Outputs  []Port   `json:"outputs"`
}

// A Port is an input or an output of a model. −1 in its shape means any size.
type Port struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

// An Array is a tensor as bytes: little-endian, in row-major order.
type Array struct {
	Port
	Bytes []byte
}

// A Request is the body of POST /v2/models/NAME/infer.
type Request struct {
	ID         string     `json:"id,omitempty"`
	Parameters Parameters `json:"parameters,omitzero"`
	Inputs     Tensors    `json:"inputs"`
	Outputs    []Output   `json:"outputs,omitempty"` // empty means all
}

// A Response is the answer to a Request.
type Response struct {
	ModelName    string  `json:"model_name"`
	ModelVersion string  `json:"model_version,omitempty"`
	ID           string  `json:"id,omitempty"`
	Outputs      Tensors `json:"outputs"`
}

// A Tensor has its numbers in Data, flat or as nested lists, or as Parameters.BinarySize bytes after the JSON.
type Tensor struct {
	Name       string          `json:"name"`
	Shape      []int           `json:"shape"`
	Datatype   string          `json:"datatype"`
	Parameters Parameters      `json:"parameters,omitzero"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Tensors lists the tensors of a request or an answer.
type Tensors []Tensor

// mostTensors bounds the number of tensors: the shortest text for a tensor takes a hundredth of the memory that
// the tensor does.
const mostTensors = 1 << 10

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tensors) UnmarshalJSON(text []byte) error {
	if moreThan(text, mostTensors) {
		return fmt.Errorf("more than %d tensors", mostTensors)
	}
	return json.Unmarshal(text, (*[]Tensor)(t))
}

// moreThan reports whether a list, which is valid JSON, has more than most elements.
func moreThan(text []byte, most int) bool {
	commas, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			if commas++; commas >= most {
				return true
			}
		}
	}
	return false
}

// An Output selects an output of the model in a Request.
type Output struct {
	Name       string     `json:"name"`
	Parameters Parameters `json:"parameters,omitzero"`
}

// Parameters holds the parameters of requests and tensors that scalebench uses.
type Parameters struct {
	BinarySize    *int  `json:"binary_data_size,omitempty"`
	Binary        *bool `json:"binary_data,omitempty"`        // on an output: whether to send it in binary
	BinaryOutputs *bool `json:"binary_data_output,omitempty"` // on a request: the same for all outputs
}

// An Error is the body of an answer with a status of 400 or more.
type Error struct {
	Error string `json:"error"`
}

// sizes maps datatypes to bytes per element. BYTES (text) has no fixed size.
var sizes = map[string]int{
	"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8,
	"INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
	"FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
}

// Size returns the bytes per element of a datatype. ok is false for BYTES, whose elements vary in length, and
// for unknown datatypes.
func Size(datatype string) (bytes int, ok bool) {
	bytes, ok = sizes[datatype]
	return bytes, ok
}

// MostElements bounds the elements of a tensor: 2³⁰.
const MostElements = 1 << 30

// Elements returns the number of elements of a shape. ok is false if a size is negative or there are more than
// MostElements.
func Elements(shape []int) (n int, ok bool) {
	n = 1
	for _, size := range shape {
		if size < 0 || size > MostElements || n > 0 && size > MostElements/n {
			return 0, false
		}
		n *= size
	}
	return n, true
}
