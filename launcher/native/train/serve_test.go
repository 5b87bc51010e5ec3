package train

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// twoNumbers is a model for 2×2×1 images in 2 classes, whose logits are the first number
// of an image and the sum of all its numbers.
type twoNumbers struct{}

func (twoNumbers) Logits(images []float32) (logits []float32) {
	for ; len(images) > 0; images = images[4:] {
		logits = append(logits, images[0], images[0]+images[1]+images[2]+images[3])
	}
	return logits
}

func newServer(t *testing.T) string {
	t.Helper()
	m := &netspec.Trained{Model: "tiny", Classes: 2, Height: 2, Width: 2, Channels: 1}
	s := httptest.NewServer(ServeHandler(m, twoNumbers{}, "v1.2.3"))
	t.Cleanup(s.Close)
	return s.URL
}

// askServer returns the status, the headers and the body of an answer.
func askServer(t *testing.T, method, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// The server's descriptions of itself and of its model.
func TestMetadata(t *testing.T) {
	url := newServer(t)
	const tiny = `{"name":"tiny","versions":["1"],"platform":"scalebench_native","inputs":[{"name":"images","datatype":"FP32","shape":[-1,2,2,1]}],"outputs":[{"name":"logits","datatype":"FP32","shape":[-1,2]}]}`
	for path, want := range map[string]string{
		"/v2":                               `{"name":"scalebench","version":"v1.2.3","extensions":["binary_tensor_data"]}`,
		"/v2/health/live":                   `{"live":true}`,
		"/v2/health/ready":                  `{"ready":true}`,
		"/v2/models/tiny":                   tiny,
		"/v2/models/tiny/versions/1":        tiny,
		"/v2/models/tiny/ready":             `{"name":"tiny","ready":true}`,
		"/v2/models/tiny/versions/1/ready":  `{"name":"tiny","ready":true}`,
		"/v2/models/huge":                   `404 {"error":"there is no version \"1\" of a model \"huge\"; this server has version 1 of tiny"}`,
		"/v2/models/tiny/versions/2":        `404 {"error":"there is no version \"2\" of a model \"tiny\"; this server has version 1 of tiny"}`,
		"/v2/models/huge/ready":             `404 {"error":"there is no version \"1\" of a model \"huge\"; this server has version 1 of tiny"}`,
		"/":                                 `404 {"error":"GET / is not part of the Open Inference Protocol; to ask the model, POST to /v2/models/tiny/infer"}`,
		"/v2/models/tiny/infer":             `404 {"error":"GET /v2/models/tiny/infer is not part of the Open Inference Protocol; to ask the model, POST to /v2/models/tiny/infer"}`,
		"/v2/repository/models/tiny/unload": `404 {"error":"GET /v2/repository/models/tiny/unload is not part of the Open Inference Protocol; to ask the model, POST to /v2/models/tiny/infer"}`,
	} {
		status, header, got := askServer(t, "GET", url+path, "")
		if status != 200 {
			got = fmt.Sprintf("%d %s", status, got)
		}
		if diff := cmp.Diff(want, got); diff != "" || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, -want +got\n%s", path, header.Get("Content-Type"), diff)
		}
	}
}

// littleEndian returns the bytes of numbers.
func littleEndian(list ...float32) string {
	var text bytes.Buffer
	_ = binary.Write(&text, binary.LittleEndian, list)
	return text.String()
}

// binaryBody returns JSON followed by tensors, and the length of the JSON.
func binaryBody(text, tensors string) (body, length string) {
	return text + tensors, fmt.Sprint(len(text))
}

// Requests in each form of the protocol, with their answers.
func TestInfer(t *testing.T) {
	url := newServer(t) + "/v2/models/tiny/infer"
	const one = `{"model_name":"tiny","model_version":"1","outputs":[{"name":"logits","shape":[1,2],"datatype":"FP32","data":[1.5,10.5]}]}`
	const two = `{"model_name":"tiny","model_version":"1","outputs":[{"name":"logits","shape":[2,2],"datatype":"FP32","data":[1.5,10.5,-1,-1]}]}`
	body, length := binaryBody(`{"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","parameters":{"binary_data_size":16}}]}`, littleEndian(1.5, 2, 3, 4))
	for name, tt := range map[string]struct{ body, length, want string }{
		"flat":   {`{"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","data":[1.5,2,3,4]}]}`, "", one},
		"nested": {`{"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","data":[ [[[1.5], [2e0]],[[3 ],[4]]] ]}]}`, "", one},
		"two":    {`{"inputs":[{"name":"images","shape":[2,2,2,1],"datatype":"FP32","data":[1.5,2,3,4, -1,0,0.0,0e5]}]}`, "", two},
		"id":     {`{"id":"a\"b","inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","data":[1.5,2,3,4]}]}`, "", strings.Replace(one, `"outputs"`, `"id":"a\"b","outputs"`, 1)},
		"asked":  {`{"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","data":[1.5,2,3,4]}],"outputs":[{"name":"logits"}]}`, "", one},
		"binary": {body, length, one},
		"nulls":  {`{"id":null,"parameters":null,"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","parameters":null,"data":[1.5,2,3,4]}],"outputs":null}`, "", one},
	} {
		t.Run(name, func(t *testing.T) {
			header := []string{"Content-Type", "application/json"}
			if tt.length != "" {
				header = append(header, oip.LengthHeader, tt.length)
			}
			status, _, got := askServer(t, "POST", url, tt.body, header...)
			if diff := cmp.Diff(tt.want, got); diff != "" || status != 200 {
				t.Errorf("status %d, -want +got\n%s", status, diff)
			}
		})
	}
}

// An output is binary if the request, or the output in it, asks for that.
func TestInferBinaryAnswer(t *testing.T) {
	url := newServer(t) + "/v2/models/tiny/infer"
	for asked, want := range map[string]bool{
		`"parameters":{"binary_data_output":true}`:                                                                  true,
		`"outputs":[{"name":"logits","parameters":{"binary_data":true}}]`:                                           true,
		`"outputs":[{"name":"logits","parameters":{"binary_data":false}}]`:                                          false,
		`"parameters":{"binary_data_output":true},"outputs":[{"name":"logits","parameters":{"binary_data":false}}]`: false,
		`"parameters":{"binary_data_output":false},"outputs":[{"name":"logits","parameters":{"binary_data":true}}]`: true,
		`"parameters":{"binary_data_output":true},"outputs":[{"name":"logits"}]`:                                    true,
	} {
		status, header, got := askServer(t, "POST", url, `{`+asked+`,"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","data":[1.5,2,3,4]}]}`)
		const text = `{"model_name":"tiny","model_version":"1","outputs":[{"name":"logits","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}]}`
		if whole := text + littleEndian(1.5, 10.5); want && (got != whole || header.Get(oip.LengthHeader) != fmt.Sprint(len(text))) {
			t.Errorf("%s: status %d, %s %q, %q", asked, status, oip.LengthHeader, header.Get(oip.LengthHeader), got)
		}
		if !want && (header.Get(oip.LengthHeader) != "" || !strings.Contains(got, `"data":[1.5,10.5]`)) {
			t.Errorf("%s: status %d, %q", asked, status, got)
		}
	}
}

// A wrong request gets an error that says what is wrong, and never logits.
func TestInferRefuses(t *testing.T) {
	url := newServer(t)
	with := func(shape, datatype, rest string) string {
		return fmt.Sprintf(`{"inputs":[{"name":"images","shape":%s,"datatype":"%s",%s}]}`, shape, datatype, rest)
	}
	const shape, numbers = "[1,2,2,1]", `"data":[1,2,3,4]`
	const sized = `"parameters":{"binary_data_size":16}`
	for name, tt := range map[string]struct {
		body, tensors, length string // length "": of body, where there are tensors
		status                int
		want                  string
	}{
		"no JSON":          {body: "x", want: "the request is not JSON of the Open Inference Protocol: invalid character 'x'"},
		"empty":            {body: "", want: "unexpected end of JSON input"},
		"another type":     {body: `{"inputs":3}`, want: "cannot unmarshal number into Go struct field Request.inputs"},
		"no input":         {body: `{"inputs":[]}`, want: "tiny has one input, images; the request has none"},
		"another input":    {body: `{"inputs":[{"name":"x"},{"name":"y"}]}`, want: `the request has "x", "y"`},
		"another output":   {body: `{"outputs":[{"name":"classes"}]}`, want: `there is no output "classes"; tiny has logits`},
		"no image":         {body: with("[0,2,2,1]", "FP32", `"data":[]`), want: "the shape of images is [0 2 2 1]; want [N 2 2 1]"},
		"channels first":   {body: with("[1,1,2,2]", "FP32", numbers), want: "the shape of images is [1 1 2 2]"},
		"no batch":         {body: with("[2,2,1]", "FP32", numbers), want: "the shape of images is [2 2 1]"},
		"negative":         {body: with("[-1,2,2,1]", "FP32", numbers), want: "the shape of images is [-1 2 2 1]"},
		"huge":             {body: with("[4611686018427387904,2,2,1]", "FP32", numbers), want: "the shape of images is [4611686018427387904"},
		"datatype":         {body: with(shape, "FP64", numbers), want: `the datatype of images is "FP64"; want FP32`},
		"no data":          {body: with(shape, "FP32", `"parameters":{}`), want: "too little for the 4 numbers"},
		"null":             {body: with(shape, "FP32", `"data":null         `), want: "the data of images: "},
		"few":              {body: with(shape, "FP32", `"data":[1,2,3.000]`), want: "the data of images: a list of 3 at depth 1 does not fit shape [1 2 2 1]"},
		"many":             {body: with(shape, "FP32", `"data":[1,2,3,4,5]`), want: "the data of images: more than the 4 numbers"},
		"text":             {body: with(shape, "FP32", `"data":["1",2,3,4]`), want: `"\"1\"" is not a number of single precision in a list`},
		"an object":        {body: with(shape, "FP32", `"data":{"a":[1,2,3,4]}`), want: "is not a number"},
		"one number":       {body: with(shape, "FP32", `"data":1234567890`), want: "is not a number of single precision in a list"},
		"too large":        {body: with(shape, "FP32", `"data":[1,2,3,1e39]`), want: `"1e39" is not a number of single precision`},
		"half nested":      {body: with(shape, "FP32", `"data":[[1,2],[3,4]]`), want: "a list of 2 at depth 2 does not fit shape [1 2 2 1]"},
		"nested otherwise": {body: with(shape, "FP32", `"data":[[[[1,2]],[[3],[4]]]]`), want: "a list of 2 at depth 4 does not fit"},
		"too deep":         {body: with(shape, "FP32", `"data":[[[[[1]]]]]`), want: "nested deeper than the 4 dimensions"},
		"mixed":            {body: with(shape, "FP32", `"data":[1,[2,3],4]`), want: "the data of images: "},
		"bytes unnamed":    {body: with(shape, "FP32", numbers), tensors: "abcd", want: "4 bytes follow the JSON, and no input has a binary_data_size"},
		"bytes twice":      {body: with(shape, "FP32", numbers+","+sized), tensors: littleEndian(1, 2, 3, 4), want: "images has data both in the JSON and after it"},
		"bytes short":      {body: with(shape, "FP32", sized), tensors: "abcd", want: "images of shape [1 2 2 1] is 16 bytes; binary_data_size is 16, and 4 follow the JSON"},
		"bytes long":       {body: with(shape, "FP32", sized), tensors: littleEndian(1, 2, 3, 4, 5), want: "and 20 follow"},
		"size wrong":       {body: with(shape, "FP32", `"parameters":{"binary_data_size":8}`), tensors: littleEndian(1, 2), want: "is 16 bytes; binary_data_size is 8"},
		"no length":        {body: with(shape, "FP32", sized) + "xxxx", want: "is not JSON of the Open Inference Protocol"},
		"length":           {body: with(shape, "FP32", numbers), length: "9999", want: `Inference-Header-Content-Length is "9999"; want the length of the JSON, 0 to the body's`},
		"length of text":   {body: with(shape, "FP32", numbers), length: "x", want: `Inference-Header-Content-Length is "x"`},
		"negative length":  {body: with(shape, "FP32", numbers), length: "-1", want: `Inference-Header-Content-Length is "-1"`},
		"not a number":     {body: with(shape, "FP32", sized), tensors: littleEndian(1, 2, float32(math.NaN()), 4), want: "number 3 of images is not finite"},
		"infinite":         {body: with(shape, "FP32", sized), tensors: littleEndian(float32(math.Inf(-1)), 2, 3, 4), want: "number 1 of images is not finite"},
		"overflow":         {body: with(shape, "FP32", `"data":[3e38,3e38,0,0]`), status: 500, want: "a logit is not a finite number"},
		"too long":         {body: strings.Repeat(" ", mostBody+1), status: 413, want: "a body of over 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			if tt.length == "" && tt.tensors != "" {
				tt.length = fmt.Sprint(len(tt.body))
			}
			if tt.length != "" {
				header = []string{oip.LengthHeader, tt.length}
			}
			status, _, got := askServer(t, "POST", url+"/v2/models/tiny/infer", tt.body+tt.tensors, header...)
			var e oip.Error
			if err := json.Unmarshal([]byte(got), &e); err != nil {
				t.Fatalf("status %d, %q is not an error in JSON", status, got)
			}
			if tt.status == 0 {
				tt.status = 400
			}
			if status != tt.status || !strings.Contains(e.Error, tt.want) {
				t.Errorf("status %d: %q; want %d, %q", status, e.Error, tt.status, tt.want)
			}
		})
	}
	if status, _, got := askServer(t, "POST", url+"/v2/models/tiny/infer", "x", "Content-Encoding", "gzip"); status != 415 || !strings.Contains(got, `encoding \"gzip\"`) {
		t.Errorf("compressed: status %d, %s", status, got)
	}
	if status, _, got := askServer(t, "POST", url+"/v2/models/other/infer", "x"); status != 404 || !strings.Contains(got, "this server has version 1 of tiny") {
		t.Errorf("another model: status %d, %s", status, got)
	}
}

// Any text gives a tensor of the right size, or an error.
func FuzzNumbers(f *testing.F) {
	for _, seed := range []string{`[1,2,3,4]`, `[[[1],[2]],[[3],[4]]]`, `[[1,2],[3,4]]`, `[`, `]`, `[]`, `[[],[],[],[]]`, `1,2,3,4`, `[1,2,3,4]]`, `[[1],2,3,4]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return // readNumbers is given valid JSON only
		}
		for _, shape := range [][]int{{4}, {2, 2}, {1, 2, 2, 1}} {
			list, err := readNumbers([]byte(text), shape)
			if err != nil {
				continue
			}
			// encoding/json reads the same numbers, flat or nested.
			var want []float32
			var walk func(v any)
			walk = func(v any) {
				switch v := v.(type) {
				case []any:
					for _, e := range v {
						walk(e)
					}
				case float64:
					want = append(want, float32(v))
				}
			}
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			walk(v)
			if len(list) != 4 || len(want) != 4 {
				t.Fatalf("%q as %v is %v", text, shape, list)
			}
			for i := range want {
				if math.Abs(float64(want[i]-list[i])) > 1e-6*math.Abs(float64(want[i])) {
					t.Errorf("%q as %v is %v, want %v", text, shape, list, want)
				}
			}
		}
	})
}
