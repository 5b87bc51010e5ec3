package train

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// mostBody is the maximum size of a request's body: 64 MiB, about 5,000 images as
// binary tensors.
const mostBody = 64 << 20

const (
	inputName, outputName = "images", "logits"
	datatype              = "FP32"
	version               = "1" // of every model
)

// A Classifier computes a model, such as cpu.Classifier. It returns the logits of all
// images in one list. Several goroutines may call it at the same time.
type Classifier interface {
	Logits(images []float32) []float32
}

// ServeHandler answers for one model; NewModelServer bounds its requests. build is scalebench's
// version.
func ServeHandler(m *netspec.Trained, c Classifier, build string) http.Handler {
	h := &modelHandler{model: m, classifier: c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2", func(w http.ResponseWriter, _ *http.Request) {
		writeAnswer(w, oip.Server{Name: "scalebench", Version: build, Extensions: []string{oip.BinaryExtension}})
	})
	mux.HandleFunc("GET /v2/health/live", func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, map[string]bool{"live": true}) })
	mux.HandleFunc("GET /v2/health/ready", func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, map[string]bool{"ready": true}) })
	for _, at := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		mux.HandleFunc("GET "+at, h.known(func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, h.metadata()) }))
		mux.HandleFunc("GET "+at+"/ready", h.known(func(w http.ResponseWriter, _ *http.Request) {
			writeAnswer(w, map[string]any{"name": m.Model, "ready": true})
		}))
		mux.HandleFunc("POST "+at+"/infer", h.known(h.infer))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("%s %s is not part of the Open Inference Protocol; to ask the model, POST to /v2/models/%s/infer", r.Method, r.URL.Path, m.Model))
	})
	return mux
}

type modelHandler struct {
	model      *netspec.Trained
	classifier Classifier
}

func (h *modelHandler) metadata() oip.Model { return describeModel(h.model) }

func describeModel(m *netspec.Trained) oip.Model {
	return oip.Model{Name: m.Model, Versions: []string{version}, Platform: "scalebench_native",
		Inputs:  []oip.Port{{Name: inputName, Datatype: datatype, Shape: []int{-1, m.Height, m.Width, m.Channels}}},
		Outputs: []oip.Port{{Name: outputName, Datatype: datatype, Shape: []int{-1, m.Classes}}}}
}

// known returns a handler that calls next if the request is for this model, and
// otherwise answers with an error.
func (h *modelHandler) known(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if name, v := r.PathValue("model"), cmp.Or(r.PathValue("version"), version); name != h.model.Model || v != version {
			refuse(w, http.StatusNotFound, fmt.Errorf("there is no version %q of a model %q; this server has version %s of %s", v, name, version, h.model.Model))
			return
		}
		next(w, r)
	}
}

// infer answers a request for logits.
func (h *modelHandler) infer(w http.ResponseWriter, r *http.Request) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		refuse(w, http.StatusUnsupportedMediaType, fmt.Errorf("the body has the encoding %q; send it without one", encoding))
		return
	}
	body, err := readBody(w, r)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("a body of over %d bytes; send fewer images at once", tooLarge.Limit))
		return
	}
	if busy := (*busyError)(nil); errors.As(err, &busy) {
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusServiceUnavailable, busy)
		return
	}
	var request oip.Request
	var images []float32
	if err == nil {
		request, images, err = h.parse(body, r.Header.Get(oip.LengthHeader))
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	logits := h.classifier.Logits(images)
	response := oip.Response{ModelName: h.model.Model, ModelVersion: version, ID: request.ID,
		Outputs: []oip.Tensor{{Name: outputName, Shape: []int{len(logits) / h.model.Classes, h.model.Classes}, Datatype: datatype}}}
	if binaryAnswer(request) {
		h.answerBinary(w, response, logits)
		return
	}
	response.Outputs[0].Data, err = json.Marshal(logits)
	if err != nil {
		refuse(w, http.StatusInternalServerError, errors.New("a logit is not a finite number, which JSON cannot hold"))
		return
	}
	writeAnswer(w, response)
}

// firstRead is the size of the buffer for a body's first part.
const firstRead = 64 << 10

// readBody reads a body, in memory that grows with what has come: the announced length is
// only a number. Parts of a long one are joined at the end, since a buffer that doubles
// would use several times as much while it waits for the rest.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	from := http.MaxBytesReader(w, r.Body, mostBody)
	var parts [][]byte
	for {
		var part bytes.Buffer
		if n := r.ContentLength - int64(len(parts))*firstRead; n > 0 {
			part.Grow(int(min(n, firstRead)) + bytes.MinRead)
		}
		n, err := part.ReadFrom(io.LimitReader(from, firstRead))
		parts = append(parts, part.Bytes())
		switch {
		case err != nil:
			return nil, err
		case n < firstRead && len(parts) == 1:
			return parts[0], nil
		case n < firstRead:
			return bytes.Join(parts, nil), nil
		}
	}
}

// parse reads a request and its images.
func (h *modelHandler) parse(body []byte, length string) (request oip.Request, images []float32, err error) {
	text, tensors, err := splitBody(body, length)
	if err != nil {
		return request, nil, err
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return request, nil, fmt.Errorf("the request is not JSON of the Open Inference Protocol: %w", err)
	}
	for _, output := range request.Outputs {
		if output.Name != outputName {
			return request, nil, fmt.Errorf("there is no output %q; %s has %s", output.Name, h.model.Model, outputName)
		}
	}
	if len(request.Inputs) != 1 || request.Inputs[0].Name != inputName {
		return request, nil, fmt.Errorf("%s has one input, %s; the request has %s", h.model.Model, inputName, inputNames(request.Inputs))
	}
	in := request.Inputs[0]
	image := h.metadata().Inputs[0].Shape[1:]
	n, ok := oip.Elements(in.Shape)
	if !ok || len(in.Shape) != 4 || !slices.Equal(in.Shape[1:], image) || in.Shape[0] < 1 {
		return request, nil, fmt.Errorf("the shape of %s is %v; want [N %d %d %d], with at least one image", inputName, in.Shape, image[0], image[1], image[2])
	}
	if in.Datatype != datatype {
		return request, nil, fmt.Errorf("the datatype of %s is %q; want %s", inputName, in.Datatype, datatype)
	}
	switch size := in.Parameters.BinarySize; {
	case size == nil && len(tensors) > 0:
		return request, nil, fmt.Errorf("%d bytes follow the JSON, and no input has a binary_data_size", len(tensors))
	case size == nil:
		images, err = readNumbers(in.Data, in.Shape)
	case in.Data != nil:
		return request, nil, fmt.Errorf("%s has data both in the JSON and after it", inputName)
	case *size != 4*n || *size != len(tensors):
		return request, nil, fmt.Errorf("%s of shape %v is %d bytes; binary_data_size is %d, and %d follow the JSON", inputName, in.Shape, 4*n, *size, len(tensors))
	default:
		images = make([]float32, n)
		for i := range images {
			images[i] = math.Float32frombits(binary.LittleEndian.Uint32(tensors[4*i:]))
		}
	}
	if err != nil {
		return request, nil, fmt.Errorf("the data of %s: %w", inputName, err)
	}
	for i, v := range images {
		if v-v != 0 { // infinite, or not a number
			return request, nil, fmt.Errorf("number %d of %s is not finite", i+1, inputName)
		}
	}
	return request, images, nil
}

// splitBody divides a body into its JSON and the tensors after it.
func splitBody(body []byte, length string) (text, tensors []byte, err error) {
	if length == "" {
		return body, nil, nil
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(body) {
		return nil, nil, fmt.Errorf("%s is %q; want the length of the JSON, 0 to the body's %d", oip.LengthHeader, length, len(body))
	}
	return body[:n], body[n:], nil
}

func inputNames(inputs []oip.Tensor) string {
	var list []string
	for _, in := range inputs {
		list = append(list, strconv.Quote(in.Name))
	}
	return cmp.Or(strings.Join(list, ", "), "none")
}

// readNumbers reads a tensor's data: one flat list, or lists nested as its shape says.
func readNumbers(data json.RawMessage, shape []int) ([]float32, error) {
	n, _ := oip.Elements(shape)
	if len(data) < 2*n { // each has a digit, and a comma or bracket
		return nil, fmt.Errorf("too little for the %d numbers of shape %v", n, shape)
	}
	l := nestedLists{shape: shape, elements: n, numbers: make([]float32, 0, n)}
	// The request was valid JSON as a whole: brackets and commas are where they may be.
	for at := 0; at < len(data); {
		end, err := at+1, error(nil)
		switch data[at] {
		case ' ', '\t', '\r', '\n', ',':
		case '[':
			err = l.open()
		case ']':
			err = l.close()
		default:
			for end < len(data) && bytes.IndexByte([]byte(" \t\r\n,]"), data[end]) < 0 {
				end++
			}
			err = l.number(string(data[at:end]))
		}
		if err != nil {
			return nil, err
		}
		at = end
	}
	if len(l.numbers) != n {
		return nil, fmt.Errorf("%d numbers; shape %v has %d", len(l.numbers), shape, n)
	}
	return l.numbers, nil
}

// nestedLists collects the numbers of lists that are nested according to a shape, or flat.
type nestedLists struct {
	shape    []int
	elements int // of the shape
	numbers  []float32
	counts   []int // entries of each open list, by depth
	deepest  int   // depth of the numbers; 0: unknown yet
}

func (l *nestedLists) open() error {
	if len(l.counts) == len(l.shape) {
		return fmt.Errorf("lists are nested deeper than the %d dimensions of the shape", len(l.shape))
	}
	if len(l.counts) > 0 {
		l.counts[len(l.counts)-1]++
	}
	l.counts = append(l.counts, 0)
	return nil
}

func (l *nestedLists) close() error {
	depth := len(l.counts)
	count := l.counts[depth-1]
	l.counts = l.counts[:depth-1]
	l.deepest = cmp.Or(l.deepest, depth)
	flat := l.deepest == 1 && depth == 1 && len(l.shape) != 1
	if flat && count != l.elements || !flat && (l.deepest != len(l.shape) || count != l.shape[depth-1]) {
		return fmt.Errorf("a list of %d at depth %d does not fit shape %v; give one flat list, or lists nested as the shape says", count, depth, l.shape)
	}
	return nil
}

func (l *nestedLists) number(text string) error {
	v, err := strconv.ParseFloat(text, 32)
	if err != nil || len(l.counts) == 0 {
		return fmt.Errorf("%.40q is not a number of single precision in a list", text)
	}
	l.deepest = cmp.Or(l.deepest, len(l.counts))
	if len(l.counts) != l.deepest || len(l.numbers) == l.elements {
		return fmt.Errorf("more than the %d numbers of shape %v, or some nested deeper than others", l.elements, l.shape)
	}
	l.counts[len(l.counts)-1]++
	l.numbers = append(l.numbers, float32(v))
	return nil
}

// binaryAnswer reports whether the output is wanted as bytes.
func binaryAnswer(r oip.Request) bool {
	for _, output := range r.Outputs {
		if b := output.Parameters.Binary; b != nil {
			return *b
		}
	}
	b := r.Parameters.BinaryOutputs
	return b != nil && *b
}

func (h *modelHandler) answerBinary(w http.ResponseWriter, response oip.Response, logits []float32) {
	size := 4 * len(logits)
	response.Outputs[0].Parameters.BinarySize = &size
	body, err := json.Marshal(response)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set(oip.LengthHeader, strconv.Itoa(len(body)))
	for _, v := range logits {
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(v))
	}
	writeBody(w, http.StatusOK, "application/octet-stream", body)
}

func writeAnswer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	writeBody(w, http.StatusOK, "application/json", body)
}

func refuse(w http.ResponseWriter, status int, err error) {
	body, _ := json.Marshal(oip.Error{Error: err.Error()}) // a string is always JSON
	writeBody(w, status, "application/json", body)
}

func writeBody(w http.ResponseWriter, status int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // tests have writers without one
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
