// Package oip is the JSON of the Open Inference Protocol, version 2, which Triton,
// KServe, MLServer and others speak, with its extension for binary tensors
// (https://github.com/kserve/open-inference-protocol). A client and a server have it
// in common.
//
// With binary tensors a body is JSON, and behind it the tensors' bytes in the order in
// which the JSON names them, little-endian and in row-major order; a header says how
// long the JSON is.
package oip

import (
	"encoding/json"
	"fmt"
)

// BinaryExtension is what a server that takes binary tensors lists in its extensions.
const BinaryExtension = "binary_tensor_data"

// LengthHeader says how many bytes of a body are JSON, where tensors follow.
const LengthHeader = "Inference-Header-Content-Length"

// Server is what GET /v2 answers.
type Server struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// Model is what GET /v2/models/NAME answers.
type Model struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions,omitempty"`
	Platform string   `json:"platform"`
	Inputs   []Port   `json:"inputs"`
	Outputs  []Port   `json:"outputs"`
}

// A Port is an input or an output of a model. −1 in its shape is any size.
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

// Request is what POST /v2/models/NAME/infer is sent.
type Request struct {
	ID         string     `json:"id,omitempty"`
	Parameters Parameters `json:"parameters,omitzero"`
	Inputs     Tensors    `json:"inputs"`
	Outputs    []Output   `json:"outputs,omitempty"` // none: all
}

// Response is what it answers.
type Response struct {
	ModelName    string  `json:"model_name"`
	ModelVersion string  `json:"model_version,omitempty"`
	ID           string  `json:"id,omitempty"`
	Outputs      Tensors `json:"outputs"`
}

// A Tensor has its numbers in Data, flat or as nested lists, or Parameters.BinarySize
// bytes of them behind the JSON.
type Tensor struct {
	Name       string          `json:"name"`
	Shape      []int           `json:"shape"`
	Datatype   string          `json:"datatype"`
	Parameters Parameters      `json:"parameters,omitzero"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Tensors are those of a request or an answer.
type Tensors []Tensor

// mostTensors bounds them. A tensor takes a hundred times the memory of the shortest
// text that makes one.
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

// An Output is one that is asked for.
type Output struct {
	Name       string     `json:"name"`
	Parameters Parameters `json:"parameters,omitzero"`
}

// Parameters are those of requests and tensors that are used here.
type Parameters struct {
	BinarySize    *int  `json:"binary_data_size,omitempty"`
	Binary        *bool `json:"binary_data,omitempty"`        // of an output: whether it is to be binary
	BinaryOutputs *bool `json:"binary_data_output,omitempty"` // of a request: the same for all outputs
}

// Error is the body of an answer with a status of 400 or more.
type Error struct {
	Error string `json:"error"`
}

// sizes are the bytes of an element. BYTES, text, has no size of its own.
var sizes = map[string]int{
	"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8,
	"INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
	"FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
}

// Size is how many bytes an element of a datatype has; ok is false for BYTES, whose
// elements have a length each, and for what is not known.
func Size(datatype string) (bytes int, ok bool) {
	bytes, ok = sizes[datatype]
	return bytes, ok
}

// MostElements bounds the elements of a tensor: 2³⁰.
const MostElements = 1 << 30

// Elements is how many a shape has; ok is false where a size is negative or there are
// over MostElements.
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
