// Package samples reads what models are asked with, and what they are to answer, from
// files of numpy's .npy format: an array whose first size counts samples.
//
// The format is a line of Python behind a few bytes
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Numbers are
// used as they lie in the file, so what lies there in another order is refused rather
// than turned round.
package samples

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// An Array is what a file holds.
type Array struct {
	File     string // its path
	Datatype string // of the Open Inference Protocol: FP32
	Shape    []int  // the first size counts samples
	Bytes    []byte // little-endian, in row-major order; nil: not read
}

// Samples is how many there are.
func (a Array) Samples() int { return a.Shape[0] }

// size is how many bytes its numbers take.
func (a Array) size() int {
	n, _ := oip.Elements(a.Shape)
	bytes, _ := oip.Size(a.Datatype)
	return n * bytes
}

// Of are the bytes of n samples from the first on.
func (a Array) Of(first, n int) []byte {
	size := len(a.Bytes) / a.Samples()
	return a.Bytes[first*size : (first+n)*size : (first+n)*size]
}

// datatypes are those of the protocol by numpy's letters.
var datatypes = map[string]string{
	"b1": "BOOL", "u1": "UINT8", "u2": "UINT16", "u4": "UINT32", "u8": "UINT64",
	"i1": "INT8", "i2": "INT16", "i4": "INT32", "i8": "INT64",
	"f2": "FP16", "f4": "FP32", "f8": "FP64",
}

// open reads a file, or without its numbers what it says of its array, and holds its
// length to that.
func open(path string, numbers bool) (a Array, err error) {
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

// longest bounds the line of Python.
const longest = 64 << 10

var errFormat = errors.New(`it is no .npy file; write one with numpy.save("FILE.npy", array)`)

var (
	descr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=])([a-zA-Z])(\d+)['"]`)
	fortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	shape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([\d,\s]*)\)`)
)

// parse reads a file of so many bytes.
func parse(r io.Reader, size int64, numbers bool) (a Array, err error) {
	start := make([]byte, 10)
	if _, err := io.ReadFull(r, start); err != nil || string(start[:6]) != magic {
		return a, errFormat
	}
	length, before := int64(binary.LittleEndian.Uint16(start[8:])), int64(10)
	switch version := start[6]; version {
	case 1:
	case 2, 3: // with a longer length
		rest := make([]byte, 2)
		if _, err := io.ReadFull(r, rest); err != nil {
			return a, errFormat
		}
		length, before = int64(binary.LittleEndian.Uint32(append(start[8:10:10], rest...))), 12
	default:
		return a, fmt.Errorf("version %d of the .npy format is not known; 1 to 3 are", version)
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
		return a, errors.New("its elements are no plain numbers; save an array of one type, like float32")
	}
	var ok bool
	letters := string(kind[2]) + string(kind[3])
	if a.Datatype, ok = datatypes[letters]; !ok {
		return a, fmt.Errorf("its elements are numpy's %q; valid: bool, int8 to int64, uint8 to uint64, float16, float32, float64", letters)
	}
	element, _ := oip.Size(a.Datatype)
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
		return a, errors.New("its numbers are column by column; save numpy.ascontiguousarray(array)")
	}
	if len(a.Shape) == 0 {
		return a, errors.New("it holds one number; want an array whose first size counts samples")
	}
	n, ok := oip.Elements(a.Shape)
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
