package oip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A SampleFile is the content of a file in numpy's .npy format: a short binary header with a Python literal, and
// the numbers (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Files in another byte
// order or in column-major order are refused, not converted.
type SampleFile struct {
	File     string // its path
	Datatype string // of the Open Inference Protocol: FP32
	Shape    []int  // the first size counts samples
	Bytes    []byte // little-endian, in row-major order; nil: not read
}

// Samples returns the number of samples.
func (a SampleFile) Samples() int { return a.Shape[0] }

// size returns how many bytes the numbers take.
func (a SampleFile) size() int {
	n, _ := Elements(a.Shape)
	bytes, _ := Size(a.Datatype)
	return n * bytes
}

// Slice returns the bytes of n samples, starting with sample first.
func (a SampleFile) Slice(first, n int) []byte {
	size := len(a.Bytes) / a.Samples()
	return a.Bytes[first*size : (first+n)*size : (first+n)*size]
}

// datatypes maps numpy's type codes to the protocol's datatypes.
var datatypes = map[string]string{
	"b1": "BOOL", "u1": "UINT8", "u2": "UINT16", "u4": "UINT32", "u8": "UINT64",
	"i1": "INT8", "i2": "INT16", "i4": "INT32", "i8": "INT64",
	"f2": "FP16", "f4": "FP32", "f8": "FP64",
}

// open reads a file, with or without its numbers, and checks that its length fits its header.
func open(path string, numbers bool) (a SampleFile, err error) {
	f, err := sharedfs.Open(path)
	if err != nil {
		return a, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return a, err
	}
	if a, err = parse(f, info.Size(), numbers); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	a.File = path
	return a, nil
}

const magic = "\x93NUMPY"

// longest bounds the header.
const longest = 64 << 10

var errFormat = errors.New(`it is not a .npy file; write one with numpy.save("FILE.npy", array)`)

var (
	descr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=])([a-zA-Z])(\d+)['"]`)
	fortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	shape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([\d,\s]*)\)`)
)

// parse reads a file with size bytes.
func parse(r io.Reader, size int64, numbers bool) (a SampleFile, err error) {
	start := make([]byte, 10)
	if _, err := io.ReadFull(r, start); err != nil || string(start[:6]) != magic {
		return a, errFormat
	}
	length, before := int64(binary.LittleEndian.Uint16(start[8:])), int64(10)
	switch version := start[6]; version {
	case 1:
	case 2, 3: // their length field has 4 bytes
		rest := make([]byte, 2)
		if _, err := io.ReadFull(r, rest); err != nil {
			return a, errFormat
		}
		length, before = int64(binary.LittleEndian.Uint32(append(start[8:10:10], rest...))), 12
	default:
		return a, fmt.Errorf("version %d of the .npy format is not supported; valid: 1 to 3", version)
	}
	if length > longest {
		return a, errFormat
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return a, errFormat
	}
	kind, order, sizes := descr.FindSubmatch(text), fortran.FindSubmatch(text), shape.FindSubmatch(text)
	if order == nil || sizes == nil {
		return a, errFormat
	}
	if kind == nil {
		return a, errors.New("its elements are not plain numbers; save an array of one type, like float32")
	}
	var ok bool
	letters := string(kind[2]) + string(kind[3])
	if a.Datatype, ok = datatypes[letters]; !ok {
		return a, fmt.Errorf("its elements are numpy's %q; valid: bool, int8 to int64, uint8 to uint64, float16, float32, float64", letters)
	}
	element, _ := Size(a.Datatype)
	if string(kind[1]) == ">" && element > 1 {
		return a, errors.New("its numbers are big-endian; save array.astype(array.dtype.newbyteorder(\"<\"))")
	}
	for word := range strings.SplitSeq(string(sizes[1]), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil {
			return a, errFormat
		}
		a.Shape = append(a.Shape, n)
	}
	if string(order[1]) == "True" && len(a.Shape) > 1 {
		return a, errors.New("its numbers are in column-major order; save numpy.ascontiguousarray(array)")
	}
	if len(a.Shape) == 0 {
		return a, errors.New("it holds one number; want an array whose first size counts samples")
	}
	n, ok := Elements(a.Shape)
	if !ok || n == 0 {
		return a, fmt.Errorf("its shape is %v, which is empty or too large", a.Shape)
	}
	if want := before + length + int64(n)*int64(element); size != want {
		return a, fmt.Errorf("it has %d bytes; an array of %s %v takes %d", size, a.Datatype, a.Shape, want)
	}
	if !numbers {
		return a, nil
	}
	a.Bytes = make([]byte, a.size())
	_, err = io.ReadFull(r, a.Bytes)
	return a, err
}
