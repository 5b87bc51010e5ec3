package target

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// fiveSamples returns five inputs x, and the expected outputs of a model that computes y = 2x.
func fiveSamples() *oip.SampleSet {
	return &oip.SampleSet{
		Inputs: map[string]oip.SampleFile{"x": {File: "x.npy", Datatype: "FP32", Shape: []int{5, 2}, Bytes: floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)}},
		Outputs: map[string]oip.SampleFile{
			"y": {File: "y.npy", Datatype: "FP32", Shape: []int{5, 2}, Bytes: floats(2, 4, 6, 8, 10, 12, 14, 16, 18, 20)},
		},
	}
}

// A doubler answers y = 2x over every protocol, and 3x if x begins with wrong. It records the first number of
// each request.
type doubler struct {
	sync.Mutex
	wrong float32
	begun []float32
}

func (d *doubler) answer(x []byte) (y []byte) {
	d.Lock()
	defer d.Unlock()
	first := math.Float32frombits(binary.LittleEndian.Uint32(x))
	d.begun = append(d.begun, first)
	for b := range slices.Chunk(x, 4) {
		v := 2 * math.Float32frombits(binary.LittleEndian.Uint32(b))
		if first == d.wrong {
			v *= 1.5
		}
		y = append(y, floats(v)...)
	}
	return y
}

func (d *doubler) Describe() oip.Model {
	return oip.Model{Name: "m", Inputs: []oip.Port{{Name: "x", Datatype: "FP32", Shape: []int{-1, 2}}}, Outputs: []oip.Port{{Name: "y", Datatype: "FP32", Shape: []int{-1, 2}}}}
}

func (d *doubler) Prepare(requests [][]oip.Array) (func(int) ([]oip.Array, error), func(), error) {
	return func(i int) ([]oip.Array, error) {
		x := requests[i][0]
		return []oip.Array{{Port: oip.Port{Name: "y", Datatype: "FP32", Shape: x.Shape}, Bytes: d.answer(x.Bytes)}}, nil
	}, func() {}, nil
}

// ServeHTTP answers in JSON, or in binary tensors if the request has them.
func (d *doubler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	length, err := strconv.Atoi(r.Header.Get(oip.LengthHeader))
	if err != nil {
		length = len(body)
	}
	var request oip.Request
	_ = json.Unmarshal(body[:length], &request)
	x := request.Inputs[0]
	response := oip.Response{ModelName: "m", Outputs: []oip.Tensor{{Name: "y", Datatype: "FP32", Shape: x.Shape}}}
	if x.Parameters.BinarySize != nil {
		y := d.answer(body[length:])
		size := len(y)
		response.Outputs[0].Parameters.BinarySize = &size
		text, _ := json.Marshal(response)
		w.Header().Set(oip.LengthHeader, strconv.Itoa(len(text)))
		_, _ = w.Write(append(text, y...))
		return
	}
	var numbers, doubled []float32
	_ = json.Unmarshal(x.Data, &numbers)
	for b := range slices.Chunk(d.answer(floats(numbers...)), 4) {
		doubled = append(doubled, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	response.Outputs[0].Data, _ = json.Marshal(doubled)
	_ = json.NewEncoder(w).Encode(response)
}

// ways returns a function for each protocol that prepares requests to the doubler.
func ways(t *testing.T, d *doubler) map[string]func(in Inputs) (func() (loadtest.Sender, error), error) {
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	rpc := serveGRPC(t, func(_ string, request []byte) (reply []byte, err error) {
		err = each(request, func(x field) error {
			if x.number == 7 {
				reply = message(1, "m", 5, message(1, "y", 2, "FP32", 3, sizes(len(x.content)/8, 2)), 6, d.answer(x.content))
			}
			return nil
		})
		return reply, err
	})
	m := &Model{Model: d.Describe(), Server: oip.Server{Extensions: []string{oip.BinaryExtension}}}
	over := func(asJSON bool) func(in Inputs) (func() (loadtest.Sender, error), error) {
		return func(in Inputs) (func() (loadtest.Sender, error), error) {
			in.JSON = asJSON
			p, err := m.Payload(in)
			if err != nil {
				return nil, err
			}
			target := newV2([]string{server.URL}, m, p)
			return target.Dial, target.Learn(soon())
		}
	}
	return map[string]func(in Inputs) (func() (loadtest.Sender, error), error){
		"JSON": over(true), "bytes": over(false),
		"gRPC": func(in Inputs) (func() (loadtest.Sender, error), error) {
			g, err := newGRPC([]string{rpc}, m, in)
			if err != nil {
				return nil, err
			}
			return g.Dial, g.Learn(soon())
		},
		"process": func(in Inputs) (func() (loadtest.Sender, error), error) {
			q, err := InProcess(d, in)
			if err != nil {
				return nil, err
			}
			return q.Dial, nil
		},
	}
}

// Samples are sent in turn without those left over, and each answer is compared with the expected one. A wrong
// answer is found even if it is the first.
func TestSamples(t *testing.T) {
	d := &doubler{}
	for name, ask := range ways(t, d) {
		for _, wrong := range []float32{0, 1, 5} { // none wrong, the first of two requests, the second
			d.wrong = wrong
			dial, err := ask(Inputs{Batch: 2, Samples: fiveSamples()})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			d.begun = nil
			for i := range 6 {
				first := float32(1 + 4*(i%2)) // 1 and 5
				err := s.Send(soon())
				if wrong != first && err != nil || wrong == first && (err == nil || !strings.Contains(err.Error(), "element 0 of output y is ") || !strings.Contains(err.Error(), "in y.npy it is ")) {
					t.Errorf("%s: with %g wrong, request %d: %v", name, wrong, i, err)
				}
			}
			if diff := cmp.Diff([]float32{1, 5, 1, 5, 1, 5}, d.begun); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Without expected answers, the first answer to each request is the known one.
func TestSamplesWithoutAnswers(t *testing.T) {
	d := &doubler{}
	for name, ask := range ways(t, d) {
		set := fiveSamples()
		set.Outputs = nil
		d.wrong = 0
		dial, err := ask(Inputs{Batch: 1, Samples: set})
		if err != nil {
			t.Fatal(err)
		}
		s, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if i == 7 { // the second request with 5 and 6
				d.wrong = 5
			}
			if err := s.Send(soon()); (err != nil) != (i == 7) {
				t.Errorf("%s: request %d: %v", name, i, err)
			}
		}
		_ = s.Close()
	}
}

// Every replica gets every request.
func TestTurns(t *testing.T) {
	h := &HTTP{}
	seen := map[[2]int]int{}
	for range 24 {
		replica, request := next(&h.turn, 2, 4)
		seen[[2]int{replica, request}]++
	}
	if len(seen) != 8 || seen[[2]int{1, 2}] != 3 {
		t.Errorf("%v", seen)
	}
}

// Files that do not fit the model are refused with the key, the file, and the shapes.
func TestSamplesRefused(t *testing.T) {
	d := &doubler{}
	for _, c := range []struct {
		change func(*oip.SampleSet)
		batch  int
		want   string
	}{
		{func(s *oip.SampleSet) {
			s.Inputs["x"] = oip.SampleFile{File: "x.npy", Datatype: "FP64", Shape: []int{5, 2}, Bytes: make([]byte, 80)}
		}, 2,
			"workload.inputs: x: x.npy holds samples of FP64 [2], so a request of 2 would be FP64 [2 2]; the model's input is FP32 [-1 2]"},
		{func(s *oip.SampleSet) {
			s.Inputs["x"] = oip.SampleFile{File: "x.npy", Datatype: "FP32", Shape: []int{5, 3}, Bytes: make([]byte, 60)}
		}, 1,
			"workload.inputs: x: x.npy holds samples of FP32 [3], so a request of 1 would be FP32 [1 3]; the model's input is FP32 [-1 2]"},
		{func(s *oip.SampleSet) { s.Inputs["z"] = s.Inputs["x"] }, 2, "workload.inputs: z: model m has no such input; it has x"},
		{func(s *oip.SampleSet) { s.Inputs["z"] = s.Inputs["x"]; delete(s.Inputs, "x") }, 2, "workload.inputs has z, but not the model's input x"},
		{func(s *oip.SampleSet) { s.Outputs["z"] = s.Outputs["y"] }, 2, "workload.outputs: z: the answer has no such output; it has y"},
		{func(s *oip.SampleSet) {
			s.Outputs["y"] = oip.SampleFile{File: "y.npy", Datatype: "FP32", Shape: []int{5, 3}, Bytes: make([]byte, 60)}
		}, 2,
			"workload.outputs: y: y.npy has FP32 [2 3] for this request; want floating-point numbers of [2 2], or whole numbers of [2], the classes"},
		{func(s *oip.SampleSet) {
			s.Outputs["y"] = oip.SampleFile{File: "y.npy", Datatype: "INT64", Shape: []int{5, 2}, Bytes: make([]byte, 80)}
		}, 2,
			"workload.outputs: y: y.npy has INT64 [2 2] for this request; want floating-point"},
		{func(s *oip.SampleSet) {
			s.Outputs["y"] = oip.SampleFile{File: "y.npy", Datatype: "FP32", Shape: []int{5, 2}, Bytes: floats(1, 2, 3, 4, float32(math.NaN()), 6, 7, 8, 9, 10)}
		}, 2,
			"workload.outputs: y: y.npy, from sample 2 on: element 0 is NaN"},
	} {
		set := fiveSamples()
		c.change(set)
		if _, err := InProcess(d, Inputs{Batch: c.batch, Samples: set}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// An expected output is compared by number within the tolerance, or by the index of the largest number.
func TestWants(t *testing.T) {
	got := func(datatype string, shape []int, raw []byte) []output {
		o, err := newOutput(oip.Tensor{Name: "y", Datatype: datatype, Shape: shape}, raw, newShare())
		if err != nil {
			t.Fatal(err)
		}
		return []output{o}
	}
	logits := got("FP32", []int{2, 3}, floats(1, 3, 2, -1, -2, -1))
	for name, c := range map[string]struct {
		outputs   []output
		known     oip.SampleFile
		tolerance float64
		want      string
	}{
		"classes":             {logits, oip.SampleFile{Datatype: "INT64", Shape: []int{2}, Bytes: int64s(1, 0)}, 0, ""}, // the first of equal ones
		"another class":       {logits, oip.SampleFile{Datatype: "INT64", Shape: []int{2}, Bytes: int64s(1, 2)}, 0, "sample 2 of the request: class 0 of output y is the largest; f has 2"},
		"whole logits":        {got("UINT8", []int{1, 3}, []byte{3, 200, 7}), oip.SampleFile{Datatype: "UINT8", Shape: []int{1}, Bytes: []byte{1}}, 0, ""},
		"no classes":          {logits, oip.SampleFile{Datatype: "FP32", Shape: []int{2}, Bytes: floats(1, 0)}, 0, "want floating-point numbers of [2 3], or whole numbers of [2], the classes"},
		"without a batch":     {got("FP32", []int{3}, floats(1, 3, 2)), oip.SampleFile{Datatype: "INT32", Shape: []int{1}, Bytes: []byte{1, 0, 0, 0}}, 0, ""},
		"double precision":    {got("FP32", []int{1}, floats(0.1)), oip.SampleFile{Datatype: "FP64", Shape: []int{1}, Bytes: int64s(int64(math.Float64bits(0.1)))}, 1e-7, ""},
		"within a part":       {got("FP32", []int{2}, floats(100, 1)), oip.SampleFile{Datatype: "FP32", Shape: []int{2}, Bytes: floats(100, 1.09)}, 0, ""}, // 0.09 of 100
		"beyond it":           {got("FP32", []int{2}, floats(100, 1)), oip.SampleFile{Datatype: "FP32", Shape: []int{2}, Bytes: floats(100, 1.11)}, 0, "element 1 of output y is 1; in f it is 1.11"},
		"within a wider one":  {got("FP32", []int{2}, floats(100, 1)), oip.SampleFile{Datatype: "FP32", Shape: []int{2}, Bytes: floats(100, 10)}, 0.1, ""},
		"beyond a narrow one": {got("FP32", []int{2}, floats(100, 1)), oip.SampleFile{Datatype: "FP32", Shape: []int{2}, Bytes: floats(100, 1.001)}, 1e-6, "element 1"},
		"negative whole":      {got("INT8", []int{2}, []byte{0xff, 2}), oip.SampleFile{Datatype: "INT64", Shape: []int{2}, Bytes: int64s(-1, 2)}, 0, ""},
		"another whole":       {got("INT8", []int{2}, []byte{0xff, 2}), oip.SampleFile{Datatype: "INT64", Shape: []int{2}, Bytes: int64s(255, 2)}, 0, `element 0 of output y is "-1"; in f it is "255"`},
		"truth":               {got("BOOL", []int{2}, []byte{1, 0}), oip.SampleFile{Datatype: "BOOL", Shape: []int{2}, Bytes: []byte{1, 1}}, 0, `element 1 of output y is "false"; in f it is "true"`},
	} {
		c.known.File = "f"
		w, err := newWant("y", c.known, 0, c.known.Shape[0])
		if err == nil {
			err = w.hold(c.outputs, c.tolerance)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
	}
	// JSON integers are compared exactly.
	o, err := newOutput(oip.Tensor{Name: "y", Datatype: "INT64", Shape: []int{2}, Data: json.RawMessage("[-9007199254740993, 2]")}, nil, newShare())
	if err == nil {
		err = want{output: got("INT64", []int{2}, int64s(-9007199254740993, 2))[0], file: "f"}.hold([]output{o}, 0)
	}
	if err != nil {
		t.Error(err)
	}
}
