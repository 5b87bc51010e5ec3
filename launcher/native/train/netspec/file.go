package netspec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxFile is the maximum size of a model file: 256 MiB.
const MaxFile = 256 << 20

// fileVersion increases with every change of the metadata.
const fileVersion = "1"

// entry describes a tensor in the header of a safetensors file.
type entry struct {
	Datatype string `json:"dtype"`
	Shape    []int  `json:"shape"`
	Offsets  [2]int `json:"data_offsets"` // first and last byte + 1, counted from the end of the header
}

// metadata is the key for text about the whole file.
const metadata = "__metadata__"

// Write writes the model in the safetensors format, which other programs can read: the length of
// the header as 8 bytes, little-endian; the header as JSON; and the tensors in single precision,
// little-endian (https://github.com/huggingface/safetensors). The metadata has the model's name,
// the shape of an image, and a SHA-256 of the content.
func (t *Trained) Write(w io.Writer) error {
	header, at := map[string]any{metadata: t.metadata()}, 0
	for _, tensor := range t.Tensors {
		size := 4 * len(tensor.Data)
		header[tensor.Name] = entry{"F32", tensor.Shape, [2]int{at, at + size}}
		at += size
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	text = append(text, bytes.Repeat([]byte(" "), -len(text)&7)...) // align the tensors
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)); err != nil {
		return err
	}
	for _, tensor := range t.Tensors {
		if _, err := w.Write(littleEndian(tensor.Data)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trained) metadata() map[string]string {
	return map[string]string{
		"format": "scalebench", "version": fileVersion, "model": t.Model, "layout": "images NHWC; convolutions output, row, column, input",
		"classes": strconv.Itoa(t.Classes), "height": strconv.Itoa(t.Height), "width": strconv.Itoa(t.Width), "channels": strconv.Itoa(t.Channels),
		"sha256": t.digest(),
	}
}

// digest returns the SHA-256 of all fields of a Trained.
func (t *Trained) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %d %d %d\n", t.Model, t.Classes, t.Height, t.Width, t.Channels)
	for _, tensor := range t.Tensors {
		fmt.Fprintf(h, "%q %v\n", tensor.Name, tensor.Shape)
		h.Write(littleEndian(tensor.Data))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func littleEndian(list []float32) []byte {
	text := make([]byte, 0, 4*len(list))
	for _, v := range list {
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(v))
	}
	return text
}

// Parse reads a file that Write wrote. Any other or damaged file is an error.
func Parse(file []byte) (*Trained, error) {
	if len(file) < 8 {
		return nil, errors.New("not a model that scalebench saved: there is no header")
	}
	length := binary.LittleEndian.Uint64(file)
	if length > uint64(len(file)-8) {
		return nil, fmt.Errorf("not a model that scalebench saved, or only part of one: its header needs %d bytes, and %d are there", length, len(file)-8)
	}
	text, data := file[8:8+length], file[8+length:]
	var header map[string]json.RawMessage
	var about map[string]string
	if err := errors.Join(json.Unmarshal(text, &header), json.Unmarshal(header[metadata], &about)); err != nil || about["format"] != "scalebench" {
		return nil, errors.New("not a model that scalebench saved: its header does not say so")
	}
	if v := about["version"]; v != fileVersion {
		return nil, fmt.Errorf("a model in version %q of the format; this build reads version %s: use the build that trained it", v, fileVersion)
	}
	delete(header, metadata)
	t := &Trained{Model: about["model"]}
	for key, into := range map[string]*int{"classes": &t.Classes, "height": &t.Height, "width": &t.Width, "channels": &t.Channels} {
		n, err := strconv.Atoi(about[key])
		if err != nil {
			return nil, fmt.Errorf("damaged: %s is %q", key, about[key])
		}
		*into = n
	}
	if err := t.tensors(header, data); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if sum := t.digest(); sum != about["sha256"] {
		return nil, fmt.Errorf("damaged: the SHA-256 of its content is %s, not %s as when it was written", sum, about["sha256"])
	}
	if want := t.metadata(); !maps.Equal(about, want) {
		return nil, fmt.Errorf("damaged: its metadata are %v, want %v", about, want)
	}
	return t, nil
}

// tensors reads the tensors in the header from the data, in the order of the data.
func (t *Trained) tensors(header map[string]json.RawMessage, data []byte) error {
	type named struct {
		name string
		entry
	}
	var list []named
	for name, text := range header {
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		list = append(list, named{name, e})
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(slices.Compare(a.Offsets[:], b.Offsets[:]), strings.Compare(a.name, b.name))
	})
	at := 0
	for _, e := range list {
		size := 4
		for _, n := range e.Shape {
			if n < 1 || n > MaxFile || size > MaxFile/n {
				return fmt.Errorf("tensor %q has the shape %v", e.name, e.Shape)
			}
			size *= n
		}
		if e.Datatype != "F32" || e.Offsets != [2]int{at, at + size} {
			return fmt.Errorf("tensor %q is %s %v at %v; want F32 at [%d %d]", e.name, e.Datatype, e.Shape, e.Offsets, at, at+size)
		}
		if at += size; at > len(data) {
			return fmt.Errorf("it ends within tensor %q", e.name)
		}
		tensor := Tensor{Name: e.name, Shape: e.Shape, Data: make([]float32, size/4)}
		for i := range tensor.Data {
			tensor.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[at-size+4*i:]))
		}
		t.Tensors = append(t.Tensors, tensor)
	}
	if at != len(data) {
		return fmt.Errorf("its tensors are %d bytes, and %d follow the header", at, len(data))
	}
	return nil
}
