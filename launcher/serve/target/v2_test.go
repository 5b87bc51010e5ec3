package target

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

const (
	describesModel  = `{"name":"m","versions":["1"],"platform":"p","inputs":[{"name":"x","datatype":"FP32","shape":[-1,2]}],"outputs":[{"name":"y","datatype":"FP32","shape":[-1,2]},{"name":"n","datatype":"INT64","shape":[-1]}]}`
	describesServer = `{"name":"s","version":"9","extensions":["x","binary_tensor_data"]}`
)

// model returns the description of the test model.
func model(t *testing.T) *Model {
	t.Helper()
	m := &Model{}
	if err := errors.Join(json.Unmarshal([]byte(describesModel), &m.Model), json.Unmarshal([]byte(describesServer), &m.Server)); err != nil {
		t.Fatal(err)
	}
	return m
}

// awaitV2 waits until the server reports that the model is ready.
func TestReady(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch n := len(asked); {
		case n == 1:
			http.Error(w, "loading", http.StatusServiceUnavailable)
		case n == 2:
			_, _ = io.WriteString(w, `{"name":"m","ready":false}`)
		case r.URL.Path == "/v2/models/m/ready": // some servers answer with an empty body
		case r.URL.Path == "/v2":
			_, _ = io.WriteString(w, describesServer)
		case r.URL.Path == "/v2/models/m":
			_, _ = io.WriteString(w, describesModel)
		}
	}))
	defer s.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // a proxy that must not be used
	m, err := awaitV2(t.Context(), []string{s.URL}, "m", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(model(t), m); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/v2/models/m/ready", "/v2/models/m/ready", "/v2/models/m/ready", "/v2", "/v2/models/m"}, asked); diff != "" {
		t.Errorf("-want +asked\n%s", diff)
	}
}

// A server that never becomes ready is an error with its last answer.
func TestNotReady(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"loading": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "loading weights", http.StatusServiceUnavailable)
		}, `/v2/models/m/ready: status 503: "loading weights\n"`},
		"unknown":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such model", http.StatusNotFound) }, `status 404: "no such model\n"`},
		"says false": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ready":false}`) }, `it answers {"ready": false}`},
		"no JSON":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, `"<html>"`},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls == 3 {
				cancel() // the context ends during the third answer
				<-r.Context().Done()
				return
			}
			tt.answer(w, r)
		}))
		_, err := awaitV2(ctx, []string{s.URL}, "m", nil)
		s.Close()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "model m at "+s.URL+" is not ready after") {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := awaitV2(ctx, []string{closed.URL}, "m", nil); err == nil {
		t.Error("a server that is not there is ready")
	}
	if _, err := awaitV2(ctx, nil, "m", nil); err == nil {
		t.Error("no server is ready")
	}
}

// A server without metadata gets JSON. If the model is ready but not described, that is an error.
func TestReadyWithoutMetadata(t *testing.T) {
	for described, want := range map[bool]string{true: "", false: "/v2/models/m: status 404"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/ready"):
			case r.URL.Path == "/v2/models/m" && described:
				_, _ = io.WriteString(w, describesModel)
			default:
				http.NotFound(w, r)
			}
		}))
		m, err := awaitV2(t.Context(), []string{s.URL}, "m", nil)
		s.Close()
		if want == "" && (err != nil || m.Binary()) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("described %v: %+v, %v; want %q", described, m, err, want)
		}
	}
}

// Requests fit the model's inputs, are equal for equal seeds, and agree between JSON and binary tensors.
func TestPayload(t *testing.T) {
	m := model(t)
	m.Inputs = []oip.Port{{Name: "f", Datatype: "FP32", Shape: []int{-1, 3, -1}}, {Name: "d", Datatype: "FP64", Shape: []int{-1}}, {Name: "u", Datatype: "UINT8", Shape: []int{-1, 1}},
		{Name: "i", Datatype: "INT32", Shape: []int{-1, 1}}, {Name: "b", Datatype: "BOOL", Shape: []int{-1, 2}}, {Name: "s", Datatype: "BYTES", Shape: []int{-1}}}
	in := Inputs{Batch: 2, Seed: 4, Dims: map[string][]int{"f": {3, 2}}}
	binaryBody, err := m.Payload(in)
	if err != nil {
		t.Fatal(err)
	}
	in.JSON = true
	text, err := m.Payload(in)
	if err != nil || text.JSONLength != 0 {
		t.Fatal(text.JSONLength, err)
	}
	var asText, asBytes oip.Request
	if err := errors.Join(json.Unmarshal(text.Bodies[0], &asText), json.Unmarshal(binaryBody.Bodies[0][:binaryBody.JSONLength], &asBytes)); err != nil {
		t.Fatal(err)
	}
	if asText.Parameters.BinaryOutputs != nil || asBytes.Parameters.BinaryOutputs == nil || !*asBytes.Parameters.BinaryOutputs {
		t.Errorf("binary outputs are asked for by %+v and %+v", asText.Parameters, asBytes.Parameters)
	}
	rest := binaryBody.Bodies[0][binaryBody.JSONLength:]
	next := func(n int) []byte { part := rest[:n]; rest = rest[n:]; return part }
	var f [12]float32
	var d [2]float64
	_, _ = binary.Decode(next(48), binary.LittleEndian, &f)
	_, _ = binary.Decode(next(16), binary.LittleEndian, &d)
	u, i, b := next(2), next(8), next(4)
	asJSON := func(v any) string { text, _ := json.Marshal(v); return string(text) }
	var words []string
	for range 2 {
		words = append(words, string(next(int(binary.LittleEndian.Uint32(next(4))))))
	}
	want := []string{asJSON(f), asJSON(d), fmt.Sprintf("[%d,%d]", u[0], u[1]), fmt.Sprintf("[%d,%d]", i[0], i[4]),
		fmt.Sprintf("[%v,%v,%v,%v]", b[0] == 1, b[1] == 1, b[2] == 1, b[3] == 1), asJSON(words)}
	if len(rest) > 0 || len(asText.Inputs) != 6 || len(asBytes.Inputs) != 6 {
		t.Fatalf("%d bytes too many, %d and %d inputs", len(rest), len(asText.Inputs), len(asBytes.Inputs))
	}
	shapes := [][]int{{2, 3, 2}, {2}, {2, 1}, {2, 1}, {2, 2}, {2}}
	for n, size := range []int{48, 16, 2, 8, 4, 20} {
		a, b := asText.Inputs[n], asBytes.Inputs[n]
		if string(a.Data) != want[n] || b.Data != nil || b.Parameters.BinarySize == nil || *b.Parameters.BinarySize != size {
			t.Errorf("input %s: %s in JSON, %+v behind it; want %s, %d bytes", a.Name, a.Data, b, want[n], size)
		}
		if !cmp.Equal(a.Shape, shapes[n]) || !cmp.Equal(b.Shape, shapes[n]) {
			t.Errorf("input %s: shapes %v and %v, want %v", a.Name, a.Shape, b.Shape, shapes[n])
		}
	}
	again, _ := m.Payload(in)
	in.Seed++
	other, _ := m.Payload(in)
	if !bytes.Equal(again.Bodies[0], text.Bodies[0]) || bytes.Equal(other.Bodies[0], text.Bodies[0]) {
		t.Error("the numbers do not come from the seed")
	}
}

// A model that cannot be queried is an error with the input and its shape.
func TestPayloadRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		port oip.Port
		in   Inputs
		want string // "" means no error
	}{
		"open batch":        {oip.Port{Datatype: "FP32", Shape: []int{-1, 2}}, Inputs{Batch: 3}, ""},
		"a batch of 1":      {oip.Port{Datatype: "FP32", Shape: []int{1, 2}}, Inputs{Batch: 1}, ""},
		"no batch":          {oip.Port{Datatype: "FP32", Shape: []int{16}}, Inputs{Batch: 1}, ""},
		"fixed batch":       {oip.Port{Datatype: "FP32", Shape: []int{8, 2}}, Inputs{Batch: 8}, ""},
		"zero":              {oip.Port{Datatype: "FP32", Shape: []int{-1, 2}}, Inputs{}, "a batch of 0; want at least 1"},
		"another batch":     {oip.Port{Datatype: "FP32", Shape: []int{1, 2}}, Inputs{Batch: 4}, "input x of model m: its shape is [1 2], which has no batch of 4"},
		"open size":         {oip.Port{Datatype: "FP32", Shape: []int{-1, 3, -1, -1}}, Inputs{Batch: 1}, "its shape is [-1 3 -1 -1], which leaves more open than the batch; post a request from a file"},
		"sizes":             {oip.Port{Datatype: "FP32", Shape: []int{-1, 3, -1, -1}}, Inputs{Batch: 1, Dims: map[string][]int{"x": {3, 2, 2}}}, ""},
		"too few sizes":     {oip.Port{Datatype: "FP32", Shape: []int{-1, 3, -1}}, Inputs{Batch: 1, Dims: map[string][]int{"x": {3}}}, "it has 2 dimensions after the batch, not 1"},
		"sizes do not fit":  {oip.Port{Datatype: "FP32", Shape: []int{-1, 3, -1}}, Inputs{Batch: 1, Dims: map[string][]int{"x": {4, 2}}}, "its shape is [-1 3 -1], which [4 2] does not fit"},
		"sizes of nothing":  {oip.Port{Datatype: "FP32", Shape: []int{-1}}, Inputs{Batch: 1, Dims: map[string][]int{"z": {4}}}, "model m has no input z"},
		"negative":          {oip.Port{Datatype: "FP32", Shape: []int{-1, -1}}, Inputs{Batch: 1, Dims: map[string][]int{"x": {-4}}}, "which [-4] does not fit"},
		"too large":         {oip.Port{Datatype: "FP32", Shape: []int{-1, 1 << 29}}, Inputs{Batch: 8}, "its shape is [-1 536870912], which has over 1073741824 elements with a batch of 8"},
		"unknown type":      {oip.Port{Datatype: "FP8", Shape: []int{-1}}, Inputs{Batch: 1}, `its datatype "FP8" is not one`},
		"half":              {oip.Port{Datatype: "FP16", Shape: []int{-1}}, Inputs{Batch: 1}, ""},
		"half in JSON":      {oip.Port{Datatype: "FP16", Shape: []int{-1}}, Inputs{Batch: 1, JSON: true}, "input x of model m is FP16, which JSON cannot hold"},
		"bfloat16 in JSON":  {oip.Port{Datatype: "BF16", Shape: []int{-1}}, Inputs{Batch: 1, JSON: true}, "is BF16, which JSON cannot hold"},
		"64 bits, unsigned": {oip.Port{Datatype: "UINT64", Shape: []int{-1}}, Inputs{Batch: 1}, ""},
	} {
		m := model(t)
		tt.port.Name = "x"
		m.Inputs = []oip.Port{tt.port}
		_, err := m.Payload(tt.in)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	m := model(t)
	m.Inputs = nil
	if _, err := m.Payload(Inputs{Batch: 1}); err == nil || !strings.Contains(err.Error(), "does not say what inputs model m has") {
		t.Errorf("no inputs: %v", err)
	}
}

// Numbers of half precision, by IEEE 754-2008, table 3.5.
func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0400: math.Ldexp(1, -14), 0x0001: math.Ldexp(1, -24), 0x8000: 0, 0x3555: 0.333251953125, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1)} {
		if got := fromHalf(bits); got != want {
			t.Errorf("%#x is %g, want %g", bits, got, want)
		}
	}
	if v := fromHalf(0x7e00); v == v {
		t.Errorf("0x7e00 is %g", v)
	}
	for v, want := range map[float32]uint16{1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 1e9: 0x7bff, 1. / 3: 0x3555, 1e-9: 0, -1e-9: 0x8000, 6.103515625e-05: 0x0400} {
		if got := half(v); got != want {
			t.Errorf("%g is %#x, want %#x", v, got, want)
		}
	}
}

// An answer to a batch of 2, in JSON.
const rightAnswer = `{"model_name":"m","id":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"data":[0.5,1.5,2,-10]},{"name":"n","datatype":"INT64","shape":[2],"data":[3,9007199254740993]}]}`

// answering returns a target whose server gives a list of answers, each with an optional JSON length; the last
// one repeats.
func answering(t *testing.T, answers ...func(w http.ResponseWriter)) *V2 {
	t.Helper()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answers[min(int(calls.Add(1)), len(answers))-1](w)
	}))
	t.Cleanup(s.Close)
	p, err := model(t).Payload(Inputs{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	return newV2([]string{s.URL}, model(t), p)
}

func text(answer string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = io.WriteString(w, answer) }
}

// withBytes returns an answer with binary tensors.
func withBytes(answer string, tensors ...any) func(w http.ResponseWriter) {
	var body bytes.Buffer
	body.WriteString(answer)
	for _, v := range tensors {
		_ = binary.Write(&body, binary.LittleEndian, v)
	}
	return func(w http.ResponseWriter) {
		w.Header().Set(oip.LengthHeader, strconv.Itoa(len(answer)))
		_, _ = w.Write(body.Bytes())
	}
}

const binaryAnswer = `{"model_name":"m","outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"parameters":{"binary_data_size":16}},{"name":"n","datatype":"INT64","shape":[2],"parameters":{"binary_data_size":16}}]}`

var rightNumbers = []float32{0.5, 1.5, 2, -10}

// Requests follow the protocol, and answers that differ only in irrelevant details are right.
func TestV2(t *testing.T) {
	var header http.Header
	var body []byte
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, path = r.Header, r.URL.Path
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, rightAnswer)
	}))
	defer s.Close()
	for _, asJSON := range []bool{false, true} {
		p, err := model(t).Payload(Inputs{Batch: 2, JSON: asJSON})
		if err != nil {
			t.Fatal(err)
		}
		target := newV2([]string{s.URL + "/"}, model(t), p)
		if err := target.Learn(soon()); err != nil || target.Varies {
			t.Fatal(err, target.Varies)
		}
		length, kind := "", "application/json"
		if !asJSON {
			length, kind = strconv.Itoa(len(body)-16), "application/octet-stream" // 2×2 numbers of 4 bytes
		}
		if path != "/v2/models/m/infer" || header.Get(oip.LengthHeader) != length || header.Get("Content-Type") != kind || !bytes.Equal(body, p.Bodies[0]) {
			t.Errorf("%s, %q, %q", path, header, body)
		}
	}
	for name, again := range map[string]func(w http.ResponseWriter){
		"the same":      text(rightAnswer),
		"another id":    text(strings.Replace(rightAnswer, `"id":"1"`, `"id":"2","parameters":{"took":3}`, 1)),
		"nested":        text(strings.Replace(rightAnswer, `[0.5,1.5,2,-10]`, `[[0.5,1.5],[2,-10]]`, 1)),
		"other order":   text(strings.Replace(rightAnswer, `[0.5,1.5,2,-10]`, `[0.501,1.499,2.009,-10]`, 1)), // a different order of additions
		"with nulls":    text(strings.Replace(rightAnswer, `"data"`, `"parameters":null,"data"`, 2)),
		"no model name": text(strings.Replace(rightAnswer, `"model_name":"m",`, ``, 1)),
	} {
		target := answering(t, text(rightAnswer), text(rightAnswer), again)
		if err := target.Learn(soon()); err != nil {
			t.Fatal(err)
		}
		if err := ask(target); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ask sends one request.
func ask(target *V2) error {
	s, err := target.Dial()
	if err != nil {
		return err
	}
	return errors.Join(s.Send(soon()), s.Close())
}

// Each case is an answer that is wrong in one way. It is tried as a later answer and, if the error can be seen without a known
// answer, as the first one.
func TestV2WrongAnswers(t *testing.T) {
	right := withBytes(binaryAnswer, rightNumbers, []int64{3, 4})
	change := func(old, other string) func(w http.ResponseWriter) {
		if strings.Count(rightAnswer, old) != 1 {
			t.Fatalf("%q is there %d times", old, strings.Count(rightAnswer, old))
		}
		return text(strings.Replace(rightAnswer, old, other, 1))
	}
	inBytes := func(old, other string) func(w http.ResponseWriter) {
		if strings.Count(binaryAnswer, old) < 1 {
			t.Fatalf("%q is not there", old)
		}
		return withBytes(strings.Replace(binaryAnswer, old, other, 1), rightNumbers, []int64{3, 4})
	}
	nan := []float32{0.5, 1.5, float32(math.NaN()), -10}
	for name, tt := range map[string]struct {
		wrong func(w http.ResponseWriter)
		want  string
		later bool // wrong only compared with a known answer
		bytes bool // the known answer is binary
	}{
		"status":            {wrong: func(w http.ResponseWriter) { http.Error(w, `{"error":"shape"}`, http.StatusUnprocessableEntity) }, want: "status 422"},
		"empty":             {wrong: text(""), want: "the answer is not JSON of the Open Inference Protocol"},
		"an error":          {wrong: text(`{"error":"queue full"}`), want: "the answer has no outputs"},
		"half":              {wrong: text(rightAnswer[:100]), want: "the answer is not JSON"},
		"another model":     {wrong: change(`"model_name":"m"`, `"model_name":"k"`), want: `the answer is of model "k"; want "m"`},
		"missing output":    {wrong: change(`"name":"n"`, `"name":"k"`), want: "the answer has no output n; it has k, y"},
		"an output twice":   {wrong: change(`"name":"n"`, `"name":"y"`), want: "output y appears twice"},
		"datatype":          {wrong: change(`"FP32"`, `"FP64"`), want: "output y is FP64 [2 2]; want FP32 [2 2]"},
		"batch":             {wrong: change(`"shape":[2,2],"data":[0.5,1.5,2,-10]`, `"shape":[1,2],"data":[0.5,1.5]`), want: "output y is FP32 [1 2]; want FP32 [2 2]"},
		"dimensions":        {wrong: change(`"shape":[2,2]`, `"shape":[4]`), want: "output y is FP32 [4]; want FP32 [2 2]"},
		"too few":           {wrong: change(`[0.5,1.5,2,-10]`, `[0.5,1.5,2]`), want: "its shape [2 2] has 4 elements, but 3 came"},
		"too many":          {wrong: change(`[0.5,1.5,2,-10]`, `[0.5,1.5,2,-10,1]`), want: "its shape [2 2] has 4 elements, but more came"},
		"negative shape":    {wrong: change(`"shape":[2,2]`, `"shape":[-1,2]`), want: "output y: its shape is [-1 2]"},
		"no data":           {wrong: change(`,"data":[0.5,1.5,2,-10]`, ``), want: "output y: it has no data"},
		"null":              {wrong: change(`[0.5,1.5,2,-10]`, `null`), want: "output y: its data are not a list"},
		"a null in it":      {wrong: change(`[0.5,1.5,2,-10]`, `[0.5,1.5,2,null]`), want: `"<nil>" is not an element of a tensor`},
		"text":              {wrong: change(`[0.5,1.5,2,-10]`, `[0.5,1.5,2,"NaN"]`), want: `"NaN" is not a number`},
		"too large":         {wrong: change(`[0.5,1.5,2,-10]`, `[0.5,1.5,2,1e400]`), want: "value out of range"},
		"a number":          {wrong: change(`[0.5,1.5,2,-10]`, `[0.5,1.5,2.02,-10]`), want: "element 2 of output y is 2.02; in the known answer it is 2", later: true},
		"an integer":        {wrong: change(`9007199254740993`, `9007199254740992`), want: `element 1 of output n is "9007199254740992"; in the known answer it is "9007199254740993"`, later: true},
		"one output more":   {wrong: change(`{"name":"n"`, `{"name":"k","datatype":"BOOL","shape":[1],"data":[true]},{"name":"n"`), want: "3 outputs; the known answer has 2", later: true},
		"the other order":   {wrong: text(`{"outputs":[{"name":"n","datatype":"INT64","shape":[2],"data":[3,9007199254740993]},{"name":"y","datatype":"FP32","shape":[2,2],"data":[0.5,1.5,2,-10]}]}`), want: "output 1 is n INT64 [2]; in the known answer it is y FP32 [2 2]", later: true},
		"a number in bytes": {wrong: withBytes(binaryAnswer, []float32{0.5, 1.5, 2, -9}, []int64{3, 4}), want: "element 3 of output y is -9; in the known answer it is -10", later: true, bytes: true},
		"integer in bytes":  {wrong: withBytes(binaryAnswer, rightNumbers, []int64{3, 5}), want: "element 1 of output n is", later: true, bytes: true},
		"not a number":      {wrong: withBytes(binaryAnswer, nan, []int64{3, 4}), want: "output y: element 2 is NaN", bytes: true},
		"bytes missing":     {wrong: withBytes(binaryAnswer, rightNumbers, []int32{3}), want: "output n is 16 bytes; 4 are left after the JSON", bytes: true},
		"bytes left":        {wrong: withBytes(binaryAnswer, rightNumbers, []int64{3, 4, 5}), want: "8 bytes of the answer belong to no output", bytes: true},
		"wrong size":        {wrong: inBytes(`"binary_data_size":16`, `"binary_data_size":12`), want: "output y: its shape [2 2] has 4 elements, but 3 came", bytes: true},
		"odd size":          {wrong: inBytes(`"binary_data_size":16`, `"binary_data_size":15`), want: "output y: 15 bytes are not a whole number of FP32 elements", bytes: true},
		"negative size":     {wrong: inBytes(`"binary_data_size":16`, `"binary_data_size":-1`), want: "output y is -1 bytes", bytes: true},
		"both":              {wrong: inBytes(`"parameters":{"binary_data_size":16}`, `"data":[1,2,3,4],"parameters":{"binary_data_size":16}`), want: "output y: it has data both in the JSON and after it", bytes: true},
		"unknown type":      {wrong: inBytes(`"FP32"`, `"FP8"`), want: `output y: its datatype "FP8" is not one`, bytes: true},
		"text cut off":      {wrong: withBytes(strings.Replace(binaryAnswer, `"FP32"`, `"BYTES"`, 1), []int32{1}, []byte("a"), []int32{9}, []byte("bcd"), []int32{0}, []int64{3, 4}), want: "output y: it ends within an element", bytes: true},
		"length": {wrong: func(w http.ResponseWriter) {
			w.Header().Set(oip.LengthHeader, "100000")
			text(rightAnswer)(w)
		}, want: `Inference-Header-Content-Length is "100000" in an answer of`, bytes: true},
	} {
		t.Run(name, func(t *testing.T) {
			known := text(rightAnswer)
			if tt.bytes {
				known = right
			}
			check := func(what string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: error %v, want %q", what, err, tt.want)
				}
			}
			later := answering(t, known, known, tt.wrong)
			if err := later.Learn(soon()); err != nil || later.Varies {
				t.Fatal(err, later.Varies)
			}
			check("later", ask(later))
			if !tt.later {
				check("at first", answering(t, tt.wrong).Learn(soon()))
			}
		})
	}
}

// If answers vary, numbers are not compared, but everything else is.
func TestV2Varies(t *testing.T) {
	other := text(strings.Replace(rightAnswer, "0.5", "7", 1))
	target := answering(t, text(rightAnswer), other, other, text(strings.Replace(rightAnswer, `"n"`, `"k"`, 1)))
	if err := target.Learn(soon()); err != nil || !target.Varies {
		t.Fatal(err, target.Varies)
	}
	if err := ask(target); err != nil {
		t.Error(err)
	}
	if err := ask(target); err == nil || !strings.Contains(err.Error(), "the answer has no output n") {
		t.Errorf("error %v", err)
	}
}

// Replicas that answer differently are an error.
func TestV2Replicas(t *testing.T) {
	for answer, want := range map[string]string{rightAnswer: "", strings.Replace(rightAnswer, "0.5", "7", 1): "/v2/models/m/infer answers differently from "} {
		target := answering(t, text(rightAnswer))
		target.URLs = append(target.URLs, answering(t, text(answer)).URLs...)
		err := target.Learn(soon())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// An answer that equals the known one byte by byte is not parsed.
func TestV2KnownAnswerIsCheap(t *testing.T) {
	target := answering(t, text(rightAnswer))
	if err := target.Learn(soon()); err != nil {
		t.Fatal(err)
	}
	var r fasthttp.Response
	r.SetBodyString(rightAnswer)
	if n := testing.AllocsPerRun(10, func() {
		if err := target.Judge(0, &r); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// Any answer parses or returns an error, and never panics.
func FuzzV2Answer(f *testing.F) {
	f.Add([]byte(rightAnswer), "")
	f.Add([]byte(binaryAnswer+"0123456789abcdef0123456789abcdef"), strconv.Itoa(len(binaryAnswer)))
	f.Add([]byte(`{"outputs":[{"name":"s","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]}`+"\x01\x00\x00\x00a"), "91")
	f.Fuzz(func(t *testing.T, body []byte, length string) {
		var r fasthttp.Response
		r.SetBody(body)
		if length != "" {
			r.Header.Set(oip.LengthHeader, length)
		}
		a, err := readHTTP(&r, newShare())
		if err != nil {
			return
		}
		for _, o := range a.outputs {
			if n, ok := oip.Elements(o.Shape); !ok || n != len(o.numbers)+len(o.exact) {
				t.Errorf("%+v", o)
			}
		}
		if err := compare(a.outputs, a.outputs, 0); err != nil {
			t.Errorf("differs from itself: %v", err)
		}
	})
}

// An untrusted certificate fails at once.
func TestUntrustedIsFinal(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2, s.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, http := awaitV2(ctx, []string{s.URL}, "m", nil)
	_, rpc := awaitGRPC(ctx, []string{"grpcs" + strings.TrimPrefix(s.URL, "https")}, "m")
	for _, err := range []error{http, rpc} {
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "unknown authority; if you trust this server, set SSL_CERT_FILE") {
			t.Error(err)
		}
	}
}

// Descriptions, readiness queries, the first answers and the load carry the headers.
func TestHeadersOfV2(t *testing.T) {
	var refused atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "secret" {
			refused.Add(1)
			http.Error(w, "who is it?", http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/v2":
			_, _ = io.WriteString(w, `{"name":"s"}`)
		case "/v2/models/m":
			_, _ = io.WriteString(w, describesModel)
		case "/v2/models/m/infer":
			_, _ = io.WriteString(w, `{"model_name":"m","outputs":[{"name":"y","datatype":"FP32","shape":[1,2],"data":[1,2]},{"name":"n","datatype":"INT64","shape":[1],"data":[3]}]}`)
		}
	}))
	defer s.Close()
	found, err := Find(t.Context(), []string{s.URL}, "m", map[string]string{"X-Key": "secret"})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	q, err := found.Ask(t.Context(), Inputs{Batch: 1}, nil, deadline)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := q.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	if err := sender.Send(deadline); err != nil || refused.Load() != 0 {
		t.Errorf("%v; %d requests without the header", err, refused.Load())
	}
}
