package target

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// A Model holds the metadata that a server of the Open Inference Protocol v2 gives about itself and one of its models.
type Model struct {
	oip.Model
	Server oip.Server
}

// Binary reports whether the server accepts tensors as raw bytes instead of JSON.
func (m *Model) Binary() bool { return slices.Contains(m.Server.Extensions, oip.BinaryExtension) }

// mostMetadata is the maximum size of a server's description of a model: 1 MiB.
const mostMetadata = 1 << 20

// awaitV2 waits until every server (http://HOST:PORT) reports that the model is ready, or until the context
// ends. Its requests carry the headers. It returns the first server's description of the model. The error includes the last answer of the
// server that was not ready.
func awaitV2(ctx context.Context, servers []string, model string, headers map[string]string) (*Model, error) {
	if err := (&HTTP{URLs: servers}).Check(); err != nil {
		return nil, err
	}
	if err := await(ctx, servers, model, ready(headers)); err != nil {
		return nil, err
	}
	m := &Model{}
	if err := get(ctx, servers[0], "/v2", headers, &m.Server); err != nil && !errors.Is(err, errNotFound) {
		return nil, err // a server without metadata gets JSON
	}
	if err := get(ctx, servers[0], modelPath(model), headers, &m.Model); err != nil {
		return nil, err
	}
	return m, nil
}

// await queries each server until it reports that the model is ready.
func await(ctx context.Context, servers []string, model string, ask func(ctx context.Context, server, model string) error) error {
	began := time.Now()
	for _, server := range servers {
		for last := error(nil); ; {
			patience, cancel := context.WithTimeout(ctx, 10*time.Second) // for servers that accept a connection and never answer
			err := ask(patience, server, model)
			cancel()
			if err == nil {
				break
			}
			if wrong := (*tls.CertificateVerificationError)(nil); errors.As(err, &wrong) { // waiting would not help
				return fmt.Errorf("model %s at %s: %w; if you trust this server, set SSL_CERT_FILE in the site file's [environment] to its authority's certificate", model, server, err)
			}
			if ctx.Err() == nil || last == nil {
				last = err // keep the last error, not the end of the context
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("model %s at %s is not ready after %s: %w", model, server, time.Since(began).Round(time.Second/10), last)
			case <-time.After(readyPause):
			}
		}
	}
	return nil
}

// readyPause is the time between two readiness queries.
const readyPause = 100 * time.Millisecond

func modelPath(model string) string { return "/v2/models/" + url.PathEscape(model) }

var errNotReady = errors.New(`it answers {"ready": false}`)

// ready returns a function that returns nil if the server reports that the model is ready.
func ready(headers map[string]string) func(ctx context.Context, server, model string) error {
	return func(ctx context.Context, server, model string) error {
		var says struct{ Ready *bool }
		if err := get(ctx, server, modelPath(model)+"/ready", headers, &says); err != nil {
			return err
		}
		if says.Ready != nil && !*says.Ready {
			return errNotReady
		}
		return nil
	}
}

var errNotFound = errors.New("status 404")

// describer queries servers as the load does: directly and not through a proxy from the environment. It keeps
// no connections open.
var describer = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: sameHost}

// sameHost follows a few redirects, but none to another host, which would not be the server that the study
// names.
func sameHost(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case next.URL.Host != first.Host:
		return fmt.Errorf("it redirects to another host, %.100q", next.URL.Host)
	case len(before) > 3:
		return errors.New("it redirects more than 3 times")
	}
	return nil
}

// get reads JSON, or an empty body, from a server.
func get(ctx context.Context, server, path string, headers map[string]string, into any) error {
	at := strings.TrimSuffix(server, "/") + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
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
	case len(text) > mostMetadata:
		return fmt.Errorf("%s: the answer has over %d bytes; descriptions of models have some thousand", at, mostMetadata)
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

// V2 is an HTTP target that is queried by the Open Inference Protocol v2. Learn obtains the answer that later
// ones are compared with.
type V2 struct {
	HTTP
	Known
}

// newV2 prepares a payload's requests to servers.
func newV2(servers []string, m *Model, p *Payload) *V2 {
	t := &V2{HTTP: HTTP{Bodies: p.Bodies, ContentType: "application/json"}, Known: p.known}
	if p.JSONLength > 0 {
		t.ContentType, t.Headers = "application/octet-stream", map[string]string{oip.LengthHeader: strconv.Itoa(p.JSONLength)}
	}
	for _, server := range servers {
		t.URLs = append(t.URLs, strings.TrimSuffix(server, "/")+modelPath(m.Name)+"/infer")
	}
	t.Judge = func(request int, r *fasthttp.Response) error {
		return t.right(request, r.Body(), func(room *share) (answer, error) { return readHTTP(r, room) })
	}
	return t
}

// Learn queries every replica twice and remembers the first answer; see Known.
func (t *V2) Learn(deadline time.Time) error {
	return t.learn(t.URLs, deadline, func(at string) (loadtest.Sender, error) {
		one := HTTP{URLs: []string{at}, Token: t.Token, Private: t.Private, Bodies: t.Bodies[:1], ContentType: t.ContentType, Headers: t.Headers, Expect: t.Expect, Judge: t.Judge}
		return one.Dial()
	})
}

// readHTTP parses an answer.
func readHTTP(r *fasthttp.Response, room *share) (a answer, err error) {
	text, tensors := r.Body(), []byte(nil)
	if length := r.Header.Peek(oip.LengthHeader); len(length) > 0 {
		n, err := strconv.Atoi(string(length))
		if err != nil || n < 0 || n > len(text) {
			return a, fmt.Errorf("%s is %q in an answer of %d bytes", oip.LengthHeader, length, len(text))
		}
		text, tensors = text[:n], text[n:]
	}
	var response oip.Response
	if err := json.Unmarshal(text, &response); err != nil {
		return a, fmt.Errorf("the answer is not JSON of the Open Inference Protocol: %w: %.200q", err, text)
	}
	a.model = response.ModelName
	for _, tensor := range response.Outputs {
		var own []byte
		if size := tensor.Parameters.BinarySize; size != nil {
			if *size < 0 || *size > len(tensors) {
				return a, fmt.Errorf("output %s is %d bytes; %d are left after the JSON", tensor.Name, *size, len(tensors))
			}
			own, tensors = tensors[:*size:*size], tensors[*size:]
		}
		o, err := newOutput(tensor, own, room)
		if err != nil {
			return a, fmt.Errorf("output %s: %w", tensor.Name, err)
		}
		a.outputs = append(a.outputs, o)
	}
	if len(tensors) > 0 {
		return a, fmt.Errorf("%d bytes of the answer belong to no output", len(tensors))
	}
	return a, nil
}
