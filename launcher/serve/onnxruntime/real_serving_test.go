//go:build serving

package onnxruntime

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/launcher/serve/target"
)

// interpreter returns the interpreter of the lock's environment.
func interpreter(t *testing.T) string {
	t.Helper()
	return pythontest.Environment(t, "../../framework/locks", "onnxruntime")
}

func reference(t *testing.T, python string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command(python, append([]string{"-B", filepath.Join("testdata", "reference.py")}, arguments...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func load(t *testing.T, l *Library, path string) *Model {
	t.Helper()
	m, err := l.Load(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func words(shape []int) string { return strings.Trim(fmt.Sprint(shape), "[]") }

// computed returns the outputs of the model, and the outputs of Python's onnxruntime.
func computed(t *testing.T, python, path string, m *Model, inputs []oip.Array) (got, want []oip.Array) {
	t.Helper()
	call, end, err := m.Prepare([][]oip.Array{inputs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	if got, err = call(0); err != nil {
		t.Fatal(err)
	}
	in, out := t.TempDir(), t.TempDir()
	for i, a := range inputs {
		for name, text := range map[string][]byte{"raw": a.Bytes, "shape": []byte(words(a.Shape))} {
			if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("%d.%s", i, name)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	reference(t, python, "answer", path, in, out)
	for i := range got {
		text, err := os.ReadFile(filepath.Join(out, fmt.Sprintf("%d.shape", i)))
		if err != nil {
			t.Fatal(err)
		}
		a := oip.Array{Port: got[i].Port}
		a.Shape = []int{}
		for word := range strings.FieldsSeq(string(text)) {
			size, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			a.Shape = append(a.Shape, size)
		}
		if a.Bytes, err = os.ReadFile(filepath.Join(out, fmt.Sprintf("%d.raw", i))); err != nil {
			t.Fatal(err)
		}
		want = append(want, a)
	}
	return got, want
}

func single(raw []byte) (list []float64) {
	for number := range slices.Chunk(raw, 4) {
		list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(number))))
	}
	return list
}

// An image classifier gives the same answer as Python's onnxruntime, which calls the same library.
func TestServing(t *testing.T) {
	python := interpreter(t)
	l, err := Open(Find(t.Context(), python, func(string) string { return "" }))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(l.Version(), "1.") || !strings.Contains(l.Path(), "onnxruntime/capi/libonnxruntime.so") {
		t.Errorf("onnxruntime %q at %s", l.Version(), l.Path())
	}
	t.Run("squeezenet", func(t *testing.T) {
		path := reference(t, python, "light", "light_squeezenet.onnx")
		m := load(t, l, path)
		want := oip.Model{Name: "model", Platform: "onnxruntime_onnx", Inputs: []oip.Port{{Name: "data_0", Datatype: "FP32", Shape: []int{1, 3, 224, 224}}},
			Outputs: []oip.Port{{Name: "softmaxout_1", Datatype: "FP32", Shape: []int{1, 1000, 1, 1}}}}
		if diff := cmp.Diff(want, m.Describe()); diff != "" {
			t.Error(diff)
		}
		image := oip.Array{Port: want.Inputs[0]}
		for i := range 3 * 224 * 224 {
			image.Bytes = binary.LittleEndian.AppendUint32(image.Bytes, math.Float32bits(float32(math.Sin(float64(i)))))
		}
		got, by := computed(t, python, path, m, []oip.Array{image})
		numbers, python := single(got[0].Bytes), single(by[0].Bytes)
		largest := slices.Max(python)
		if len(numbers) != 1000 || len(python) != 1000 || !(largest > 0) {
			t.Fatalf("%d numbers, of Python %d up to %g", len(numbers), len(python), largest)
		}
		for i := range numbers {
			if !(math.Abs(numbers[i]-python[i]) <= 1e-5*largest) {
				t.Errorf("class %d: %g, by Python %g", i, numbers[i], python[i])
			}
		}
		// A file with the same image twice: one expected answer is Python's, the other is wrong.
		name, other := got[0].Name, slices.Clone(by[0].Bytes)
		binary.LittleEndian.PutUint32(other[4*700:], math.Float32bits(1))
		set := &oip.SampleSet{
			Inputs:  map[string]oip.SampleFile{"data_0": {File: "x.npy", Datatype: "FP32", Shape: []int{2, 3, 224, 224}, Bytes: slices.Concat(image.Bytes, image.Bytes)}},
			Outputs: map[string]oip.SampleFile{name: {File: "y.npy", Datatype: "FP32", Shape: []int{2, 1000, 1, 1}, Bytes: slices.Concat(by[0].Bytes, other)}},
		}
		q, err := target.InProcess(m, target.Inputs{Batch: 1, Samples: set, Tolerance: 1e-5})
		if err != nil {
			t.Fatal(err)
		}
		s, err := q.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 4 {
			if err := s.Send(time.Now().Add(time.Minute)); (err != nil) != (i%2 == 1) || err != nil && !strings.Contains(err.Error(), "in y.npy it is 1") {
				t.Errorf("image %d: %v", i%2, err)
			}
		}
	})
	// For every type with an open batch, an identity model returns the bytes of its input.
	t.Run("types", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "types.onnx")
		reference(t, python, "types", path)
		m := load(t, l, path)
		var inputs []oip.Array
		for k, p := range m.Describe().Inputs {
			if !slices.Equal(p.Shape, []int{-1, 3}) {
				t.Errorf("%s has the shape %v", p.Name, p.Shape)
			}
			size, _ := oip.Size(p.Datatype)
			a := oip.Array{Port: oip.Port{Name: p.Name, Datatype: p.Datatype, Shape: []int{2, 3}}, Bytes: make([]byte, 6*size)}
			for i := range 6 {
				a.Bytes[i*size] = byte(i+k) & 1 // small numbers that are also valid for BOOL
			}
			inputs = append(inputs, a)
		}
		got, want := computed(t, python, path, m, inputs)
		if diff := cmp.Diff(want, got); diff != "" || len(got) != len(inputs)+1 {
			t.Errorf("-Python +here\n%s", diff)
		}
		for i, in := range inputs {
			if diff := cmp.Diff(in.Bytes, got[i].Bytes); diff != "" {
				t.Errorf("%s: %s", in.Name, diff)
			}
		}
		if _, _, err := m.Prepare([][]oip.Array{inputs[1:]}); err == nil {
			t.Error("a missing input is accepted")
		}
		slices.Reverse(inputs)
		if _, _, err := m.Prepare([][]oip.Array{inputs}); err == nil {
			t.Error("inputs in another order are accepted")
		}
		// Concurrent callers, as in a load test.
		q, err := target.InProcess(m, target.Inputs{Batch: 5, Seed: 1})
		if err != nil || q.Varies {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				s, err := q.Dial()
				if err != nil {
					t.Error(err)
					return
				}
				for range 50 {
					if err := s.Send(time.Now().Add(time.Minute)); err != nil {
						t.Error(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	t.Run("no model", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "text.onnx")
		if err := os.WriteFile(path, []byte("this is no model"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{path, path + "x"} {
			if _, err := l.Load(path, 1); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}
