// Package onnxruntime runs ONNX models with onnxruntime's C library, which it loads at run time: the file in
// Python's package onnxruntime will do. It uses only version 1 of the API, which all later versions include;
// tested with 1.20.1, 1.22.0 and 1.31.1. The existing Go binding (yalue/onnxruntime_go) requires the API
// version of its own header, and so onnxruntime 1.24 or later.
package onnxruntime

// #include "table.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// A Library is a loaded onnxruntime.
type Library struct {
	table   *C.struct_ort_library
	library *dl.Library
}

// Open loads the first candidate that exists.
func Open(found Found) (*Library, error) {
	// Never freed: a Library lives as long as the process.
	l := &Library{table: (*C.struct_ort_library)(C.calloc(1, C.sizeof_struct_ort_library))}
	symbols := []dl.Symbol{{Name: "OrtGetApiBase", Address: (*unsafe.Pointer)(unsafe.Pointer(&l.table.OrtGetApiBase))}}
	var err error
	if l.library, err = dl.Open("onnxruntime's C library", found.Candidates, symbols); err != nil {
		return nil, fmt.Errorf("%w (%s)", err, found.Looked)
	}
	if C.ort_begin(l.table) == 0 {
		return nil, fmt.Errorf("%s: onnxruntime %s has no version %d of its API", l.Path(), l.Version(), C.ort_version)
	}
	if err := l.failure(C.ort_environment(l.table)); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path(), err)
	}
	return l, nil
}

// Path returns the library's file, and Version its version, like "1.31.1".
func (l *Library) Path() string    { return l.library.Path() }
func (l *Library) Version() string { return C.GoString(C.ort_version_string(l.table)) }

// failure converts a status to an error; nil for success.
func (l *Library) failure(s *C.OrtStatus) error {
	if s == nil {
		return nil
	}
	defer C.ort_release(l.table, s)
	return errors.New(C.GoString(C.ort_message(l.table, s)))
}

// A Model is a loaded ONNX file.
type Model struct {
	library  *Library
	session  *C.OrtSession
	name     string
	inputs   []oip.Port
	outputs  []oip.Port
	inNames  **C.char
	outNames **C.char
}

// Load reads a model that computes each request with the given number of threads.
func (l *Library) Load(path string, threads int) (*Model, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	m := &Model{library: l, name: "model"}
	var inputs, outputs C.size_t
	if err := l.failure(C.ort_open(l.table, name, C.int(threads), &m.session, &inputs, &outputs)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var err error
	if m.inputs, m.inNames, err = m.ports(false, int(inputs)); err == nil {
		m.outputs, m.outNames, err = m.ports(true, int(outputs))
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Close frees the model. No computation may be running.
func (m *Model) Close() {
	freeNames(m.inNames, len(m.inputs))
	freeNames(m.outNames, len(m.outputs))
	C.ort_close(m.library.table, m.session)
}

func freeNames(names **C.char, n int) {
	if names == nil {
		return
	}
	for _, name := range unsafe.Slice(names, n) {
		C.free(unsafe.Pointer(name))
	}
	C.free(unsafe.Pointer(names))
}

// ports describes the inputs or the outputs, and lists their names for C.
func (m *Model) ports(output bool, n int) (ports []oip.Port, names **C.char, err error) {
	which, what := C.int(0), "input"
	if output {
		which, what = 1, "output"
	}
	l := m.library
	names = (**C.char)(C.calloc(C.size_t(max(n, 1)), C.size_t(unsafe.Sizeof(names))))
	list := unsafe.Slice(names, n)
	defer func() {
		if err != nil {
			freeNames(names, n)
			ports, names = nil, nil
		}
	}()
	for i := range n {
		var own *C.char
		if err := l.failure(C.ort_name(l.table, m.session, which, C.size_t(i), &own)); err != nil {
			return nil, names, err
		}
		name := C.GoString(own)
		C.ort_free(l.table, unsafe.Pointer(own))
		list[i] = C.CString(name)
		var t C.struct_ort_tensor
		if err := l.failure(C.ort_port(l.table, m.session, which, C.size_t(i), &t)); err != nil {
			return nil, names, err
		}
		port, err := portOf(name, &t)
		if err != nil {
			return nil, names, fmt.Errorf("%s %w", what, err)
		}
		ports = append(ports, port)
	}
	return ports, names, nil
}

// types maps onnxruntime's type numbers to datatypes of the Open Inference Protocol.
var types = map[C.int]string{1: "FP32", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64", 9: "BOOL", 10: "FP16", 11: "FP64", 12: "UINT32", 13: "UINT64", 16: "BF16"}

func portOf(name string, t *C.struct_ort_tensor) (oip.Port, error) {
	datatype, ok := types[t._type]
	switch {
	case t._type == 0:
		return oip.Port{}, fmt.Errorf("%s is not a tensor", name)
	case !ok:
		return oip.Port{}, fmt.Errorf("%s has elements of ONNX type %d, which are not numbers of a fixed size", name, t._type)
	case t.dimensions > C.ort_most:
		return oip.Port{}, fmt.Errorf("%s has %d dimensions; at most %d are supported", name, t.dimensions, C.ort_most)
	}
	p := oip.Port{Name: name, Datatype: datatype, Shape: make([]int, t.dimensions)}
	for i := range p.Shape {
		p.Shape[i] = int(max(t.shape[i], -1))
	}
	return p, nil
}

// Describe returns the description that a server would give of the model; −1 means any size.
func (m *Model) Describe() oip.Model {
	return oip.Model{Name: m.name, Platform: "onnxruntime_onnx", Inputs: m.inputs, Outputs: m.outputs}
}

// Prepare implements target.Local. onnxruntime reads the inputs in place; they must be in the model's order.
func (m *Model) Prepare(requests [][]oip.Array) (call func(request int) ([]oip.Array, error), end func(), err error) {
	l, n, outs := m.library, len(m.inputs), len(m.outputs)
	values := (**C.OrtValue)(C.calloc(C.size_t(n*len(requests)+outs+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	all := unsafe.Slice(values, n*len(requests)+outs)
	tensors := (*C.struct_ort_tensor)(C.calloc(C.size_t(outs+1), C.sizeof_struct_ort_tensor))
	var memory runtime.Pinner
	end = func() {
		for _, v := range all {
			C.ort_release_value(l.table, v)
		}
		memory.Unpin()
		C.free(unsafe.Pointer(values))
		C.free(unsafe.Pointer(tensors))
	}
	at := func(i int) **C.OrtValue {
		return (**C.OrtValue)(unsafe.Add(unsafe.Pointer(values), uintptr(i)*unsafe.Sizeof(uintptr(0))))
	}
	for request, inputs := range requests {
		if len(inputs) != n {
			end()
			return nil, nil, fmt.Errorf("%d inputs; the model has %d", len(inputs), n)
		}
		for i, in := range inputs {
			if err := m.input(i, in, &memory, &all[request*n+i]); err != nil {
				end()
				return nil, nil, fmt.Errorf("input %s: %w", in.Name, err)
			}
		}
	}
	outputs := at(n * len(requests))
	answer := make([]oip.Array, outs)
	call = func(request int) ([]oip.Array, error) {
		err := l.failure(C.ort_run(l.table, m.session, m.inNames, at(request*n), C.size_t(n), m.outNames, outputs, tensors, C.size_t(outs)))
		if err != nil {
			return nil, err
		}
		for i, t := range unsafe.Slice(tensors, outs) {
			port, err := portOf(m.outputs[i].Name, &t)
			if err != nil {
				return nil, fmt.Errorf("output %w", err)
			}
			elements, ok := oip.Elements(port.Shape)
			if !ok {
				return nil, fmt.Errorf("output %s has the shape %v", port.Name, port.Shape)
			}
			size, _ := oip.Size(port.Datatype)
			answer[i] = oip.Array{Port: port, Bytes: unsafe.Slice((*byte)(t.data), elements*size)}
		}
		return answer, nil
	}
	return call, end, nil
}

// input wraps one input as an OrtValue.
func (m *Model) input(i int, in oip.Array, memory *runtime.Pinner, value **C.OrtValue) error {
	if want := m.inputs[i]; in.Name != want.Name || in.Datatype != want.Datatype {
		return fmt.Errorf("the model expects %[2]s %[3]s here, not %[1]s", in.Datatype, want.Name, want.Datatype)
	}
	elements, ok := oip.Elements(in.Shape)
	size, _ := oip.Size(in.Datatype)
	if !ok || elements*size != len(in.Bytes) {
		return fmt.Errorf("%d bytes are not %s of shape %v", len(in.Bytes), in.Datatype, in.Shape)
	}
	data := unsafe.Pointer(unsafe.SliceData(in.Bytes))
	if data != nil {
		memory.Pin(data)
	}
	shape := make([]C.int64_t, max(len(in.Shape), 1))
	for i, d := range in.Shape {
		shape[i] = C.int64_t(d)
	}
	var kind C.int
	for number, name := range types {
		if name == in.Datatype {
			kind = number
		}
	}
	return m.library.failure(C.ort_value(m.library.table, data, C.size_t(len(in.Bytes)), &shape[0], C.size_t(len(in.Shape)), kind, value))
}
