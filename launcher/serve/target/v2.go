package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/v2"
)

// Model is what a server of the Open Inference Protocol v2 says of itself and of one
// of its models.
type Model struct {
	v2.Model
	Server v2.Server
}

// Binary reports whether the server takes binary tensors.
func (m *Model) Binary() bool { return slices.Contains(m.Server.Extensions, v2.BinaryExtension) }

// mostMetadata bounds what is read of a server that describes itself: 1 MiB.
const mostMetadata = 1 << 20

// Ready waits until every server (http://HOST:PORT) says that it has the model ready,
// for as long as the context lasts, and returns what the first says of the model. The
// error has the last answer of the one that was not.
func Ready(ctx context.Context, servers []string, model string) (*Model, error) {
	if err := (&HTTP{URLs: servers}).Check(); err != nil {
		return nil, err
	}
	began := time.Now()
	for _, server := range servers {
		for last := error(nil); ; {
			err := ready(ctx, server, model)
			if err == nil {
				break
			}
			if ctx.Err() == nil || last == nil {
				last = err // and not that the context ended
			}
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("model %s at %s is not ready after %s: %w", model, server, time.Since(began).Round(time.Second/10), last)
			case <-time.After(readyPause):
			}
		}
	}
	m := &Model{}
	if err := get(ctx, servers[0], "/v2", &m.Server); err != nil && !errors.Is(err, errNotFound) {
		return nil, err // a server that says nothing of itself is asked in JSON
	}
	if err := get(ctx, servers[0], modelPath(model), &m.Model); err != nil {
		return nil, err
	}
	return m, nil
}

// readyPause is how long a server that is not ready is left alone.
const readyPause = 100 * time.Millisecond

func modelPath(model string) string { return "/v2/models/" + url.PathEscape(model) }

// ready is nil when the server says that the model is.
func ready(ctx context.Context, server, model string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // of one that accepts and says nothing
	defer cancel()
	var says struct{ Ready *bool }
	if err := get(ctx, server, modelPath(model)+"/ready", &says); err != nil {
		return err
	}
	if says.Ready != nil && !*says.Ready {
		return errors.New(`it answers {"ready": false}`)
	}
	return nil
}

var errNotFound = errors.New("status 404")

// describer asks servers what they are: as the load does, directly and not through the
// proxy of the environment, and it leaves no connection behind.
var describer = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// get reads JSON, or nothing, from a server.
func get(ctx context.Context, server, path string, into any) error {
	at := strings.TrimSuffix(server, "/") + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := describer.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostMetadata+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", at, err)
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w: %.200q", at, errNotFound, text)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: status %d: %.200q", at, answer.StatusCode, text)
	case len(bytes.TrimSpace(text)) == 0:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w: %.200q", at, err, text)
	}
	return nil
}

// V2 is an HTTP target that is asked by the Open Inference Protocol. Learn finds the
// answer that it is then held to.
type V2 struct {
	HTTP
	// Varies: its first two answers to one request differ, so that of later ones only
	// names, types and shapes are checked.
	Varies bool

	model   *Model
	payload *Payload
	first   []byte   // a right answer, byte by byte
	outputs []output // what it says
}

// NewV2 asks servers for a model's answer to a payload.
func NewV2(servers []string, m *Model, p *Payload) *V2 {
	t := &V2{HTTP: HTTP{Body: p.Body, ContentType: "application/json"}, model: m, payload: p}
	if p.JSONLength > 0 {
		t.ContentType, t.Headers = "application/octet-stream", map[string]string{v2.LengthHeader: strconv.Itoa(p.JSONLength)}
	}
	for _, server := range servers {
		t.URLs = append(t.URLs, strings.TrimSuffix(server, "/")+modelPath(m.Name)+"/infer")
	}
	return t
}

// Learn asks every replica twice, checks the answers against the model's description,
// and remembers the first. Replicas that answer differently are an error.
func (t *V2) Learn(deadline time.Time) error {
	var last []output
	t.Judge = func(r *fasthttp.Response) error {
		var err error
		if last, err = t.read(r); err == nil && t.first == nil {
			t.first, t.outputs = bytes.Clone(r.Body()), last
		}
		return err
	}
	for i, at := range t.URLs {
		one := HTTP{URLs: []string{at}, Body: t.Body, ContentType: t.ContentType, Headers: t.Headers, Expect: t.Expect, Judge: t.Judge}
		s, err := one.Dial()
		if err != nil {
			return err
		}
		for range 2 {
			if err = s.Send(deadline); err != nil {
				err = fmt.Errorf("%s: %w", at, err)
				break
			}
			if differ := compare(last, t.outputs); differ != nil && i == 0 {
				t.Varies = true
			} else if differ != nil && !t.Varies {
				err = fmt.Errorf("%s answers differently from %s: %w", at, t.URLs[0], differ)
				break
			}
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	t.Judge = t.judge
	return nil
}

// judge holds an answer to the first. Most are equal to it, byte by byte.
func (t *V2) judge(r *fasthttp.Response) error {
	if bytes.Equal(r.Body(), t.first) {
		return nil
	}
	outputs, err := t.read(r)
	if err != nil || t.Varies {
		return err
	}
	return compare(outputs, t.outputs)
}

// read reads an answer and checks that it is one to the payload, as the model describes
// its outputs.
func (t *V2) read(r *fasthttp.Response) ([]output, error) {
	text, tensors := r.Body(), []byte(nil)
	if length := r.Header.Peek(v2.LengthHeader); len(length) > 0 {
		n, err := strconv.Atoi(string(length))
		if err != nil || n < 0 || n > len(text) {
			return nil, fmt.Errorf("%s is %q in an answer of %d bytes", v2.LengthHeader, length, len(text))
		}
		text, tensors = text[:n], text[n:]
	}
	var response v2.Response
	if err := json.Unmarshal(text, &response); err != nil {
		return nil, fmt.Errorf("the answer is not JSON of the Open Inference Protocol: %w: %.200q", err, text)
	}
	if name := response.ModelName; name != "" && name != t.model.Name {
		return nil, fmt.Errorf("the answer is of model %q; want %q", name, t.model.Name)
	}
	outputs := make([]output, 0, len(response.Outputs))
	for _, tensor := range response.Outputs {
		var own []byte
		if size := tensor.Parameters.BinarySize; size != nil {
			if *size < 0 || *size > len(tensors) {
				return nil, fmt.Errorf("output %s is %d bytes; %d are left behind the JSON", tensor.Name, *size, len(tensors))
			}
			own, tensors = tensors[:*size:*size], tensors[*size:]
		}
		o, err := newOutput(tensor, own)
		if err != nil {
			return nil, fmt.Errorf("output %s: %w", tensor.Name, err)
		}
		outputs = append(outputs, o)
	}
	if len(tensors) > 0 {
		return nil, fmt.Errorf("%d bytes of the answer belong to no output", len(tensors))
	}
	return outputs, t.payload.fits(outputs)
}

// fits says how outputs are not those of the payload.
func (p *Payload) fits(outputs []output) error {
	byName := map[string]output{}
	for _, o := range outputs {
		if _, twice := byName[o.Name]; twice {
			return fmt.Errorf("output %s comes twice", o.Name)
		}
		byName[o.Name] = o
	}
	if len(outputs) == 0 {
		return errors.New("the answer has no outputs")
	}
	for _, want := range p.outputs {
		o, ok := byName[want.Name]
		if !ok {
			return fmt.Errorf("the answer has no output %s; it has %s", want.Name, strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
		}
		fits := len(o.Shape) == len(want.Shape)
		for i := 0; fits && i < len(o.Shape); i++ {
			fits = want.Shape[i] == -1 || o.Shape[i] == want.Shape[i]
		}
		if !fits || o.Datatype != want.Datatype {
			return fmt.Errorf("output %s is %s %v; want %s %v", o.Name, o.Datatype, o.Shape, want.Datatype, want.Shape)
		}
	}
	return nil
}
