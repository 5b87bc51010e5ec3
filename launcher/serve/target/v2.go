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

// Model is what a server of the Open Inference Protocol v2 says of itself and of one
// of its models.
type Model struct {
	oip.Model
	Server oip.Server
}

// Binary reports whether the server takes binary tensors.
func (m *Model) Binary() bool { return slices.Contains(m.Server.Extensions, oip.BinaryExtension) }

// mostMetadata bounds what is read of a server that describes itself: 1 MiB.
const mostMetadata = 1 << 20

// awaitV2 waits until every server (http://HOST:PORT) says that it has the model ready,
// for as long as the context lasts, and returns what the first says of the model. The
// error has the last answer of the one that was not.
func awaitV2(ctx context.Context, servers []string, model string) (*Model, error) {
	if err := (&HTTP{URLs: servers}).Check(); err != nil {
		return nil, err
	}
	if err := await(ctx, servers, model, ready); err != nil {
		return nil, err
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

// await asks each server until it says that the model is ready.
func await(ctx context.Context, servers []string, model string, ask func(ctx context.Context, server, model string) error) error {
	began := time.Now()
	for _, server := range servers {
		for last := error(nil); ; {
			patience, cancel := context.WithTimeout(ctx, 10*time.Second) // of one that accepts and says nothing
			err := ask(patience, server, model)
			cancel()
			if err == nil {
				break
			}
			if wrong := (*tls.CertificateVerificationError)(nil); errors.As(err, &wrong) { // waiting mends none
				return fmt.Errorf("model %s at %s: %w; if you trust this server, set SSL_CERT_FILE in the site file's [environment] to its authority's certificate", model, server, err)
			}
			if ctx.Err() == nil || last == nil {
				last = err // and not that the context ended
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

// readyPause is how long a server that is not ready is left alone.
const readyPause = 100 * time.Millisecond

func modelPath(model string) string { return "/v2/models/" + url.PathEscape(model) }

var errNotReady = errors.New(`it answers {"ready": false}`)

// ready is nil when the server says that the model is.
func ready(ctx context.Context, server, model string) error {
	var says struct{ Ready *bool }
	if err := get(ctx, server, modelPath(model)+"/ready", &says); err != nil {
		return err
	}
	if says.Ready != nil && !*says.Ready {
		return errNotReady
	}
	return nil
}

var errNotFound = errors.New("status 404")

// describer asks servers what they are: as the load does, directly and not through the
// proxy of the environment, and it leaves no connection behind.
var describer = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: sameHost}

// sameHost follows a few redirects, and none to another host: what answers there is not
// the server that the study names.
func sameHost(next *http.Request, before []*http.Request) error {
	switch first := before[0].URL; {
	case next.URL.Host != first.Host:
		return fmt.Errorf("it redirects to another host, %.100q", next.URL.Host)
	case len(before) > 3:
		return errors.New("it redirects more than 3 times")
	}
	return nil
}

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

// V2 is an HTTP target that is asked by the Open Inference Protocol. Learn finds the
// answer that it is then held to.
type V2 struct {
	HTTP
	Known
}

// newV2 asks servers for a model's answer to a payload.
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

// Learn asks every replica twice and remembers the first answer; see Known.
func (t *V2) Learn(deadline time.Time) error {
	return t.learn(t.URLs, deadline, func(at string) (loadtest.Sender, error) {
		one := HTTP{URLs: []string{at}, Token: t.Token, Bodies: t.Bodies[:1], ContentType: t.ContentType, Headers: t.Headers, Expect: t.Expect, Judge: t.Judge}
		return one.Dial()
	})
}

// readHTTP reads an answer.
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
				return a, fmt.Errorf("output %s is %d bytes; %d are left behind the JSON", tensor.Name, *size, len(tensors))
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
