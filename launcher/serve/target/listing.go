package target

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// mostAsked bounds what is read of an answer to a readiness query or of a server's metrics: 64 MiB.
const mostAsked = 64 << 20

// Get returns the body of a URL that answers with a 2xx status. headers may be nil.
func Get(ctx context.Context, url string, headers map[string]string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAsked))
	if answer.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s answers %d: %q", url, answer.StatusCode, body[:min(len(body), 200)])
	}
	return body, err
}

// IsListing reports whether a path is the list of models of OpenAI's protocol, such as /v1/models.
func IsListing(path string) bool { return strings.HasSuffix(path, "/models") }

// Lists returns nil if a list of models, as of OpenAI's protocol, has the model; "" means any.
func Lists(body []byte, model string) error {
	var list struct {
		Data []struct{ ID string }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("the answer is not a list of models: %w: %.200q", err, body)
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	switch {
	case len(names) == 0:
		return fmt.Errorf("the list of models is empty: %.200q", body)
	case model != "" && !slices.Contains(names, model):
		return fmt.Errorf("model %q is not among those listed: %q", model, names)
	}
	return nil
}
