package study

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// This file checks the keys of services that mainly concern language models, and the shape of loads.

// checkPrompts adds to wrong keys that are inconsistent with the prompts.
func (w *Serve) checkPrompts(wrong map[string]string) {
	spec := w.Prompts.Of()
	switch {
	case w.Prompts != "" && w.Path == "" && !w.OverGRPC() && w.Target != Process:
		wrong["workload.prompts"] = "need workload.path, like \"/v1/chat/completions\" or \"/v1/completions\""
	case w.Prompts != "" && w.Payload == "" && w.Model == "":
		wrong["workload.prompts"] = "need workload.model, the model's name in requests, or workload.payload, a request as the template"
	case w.Prompts != "" && w.Expect != "":
		wrong["workload.expect"] = "the answers to workload.prompts differ; leave it out"
	}
	if w.Headers.Of()["Authorization"] != "" && w.APIKey != "" {
		wrong["workload.api_key"] = "sets the header Authorization, which workload.headers set too; leave one of the two out"
	}
	if w.Arrivals == Trace && spec.Trace == "" {
		wrong["workload.arrivals"] = "\"trace\" needs workload.prompts = { trace = \"FILE\" }"
	}
	if w.Routing == Sticky && w.Prompts == "" {
		wrong["workload.routing"] = "\"sticky\" keeps the requests of a session at one replica, and without workload.prompts there are no sessions; use \"round-robin\", \"random\" or \"least-busy\""
	}
}

// checkLoad adds to wrong keys that are inconsistent with how requests are sent.
func (w *Serve) checkLoad(wrong map[string]string) {
	switch {
	case w.Cancel > 0 && w.CancelAfter == 0:
		wrong["workload.cancel_after"] = "missing; say after how long the client abandons a request, like \"500ms\""
	case w.Cancel == 0 && w.CancelAfter > 0:
		wrong["workload.cancel"] = "missing; say what share of the requests the client abandons, like 0.1"
	case w.Cancel > 0 && w.CancelAfter >= w.Timeout:
		wrong["workload.cancel_after"] = fmt.Sprintf("want less than workload.timeout, %v: later a request has failed already", w.Timeout)
	}
	for _, text := range w.URLs() {
		u, err := url.Parse(text)
		switch {
		case err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "grpc", "grpcs"}, u.Scheme):
			wrong["workload.url"] = fmt.Sprintf("%.60q is not the address of a service; write http://HOST:PORT, https://…, grpc://… or grpcs://…, and separate several by spaces", text)
		case strings.HasPrefix(u.Scheme, "grpc") != w.OverGRPC():
			wrong["workload.url"] = "some addresses are gRPC and others HTTP; use one protocol"
		}
	}
}

// ServedBy returns the number of GPUs of a service; 0 if it has none or they are unknown.
func (p *Point) ServedBy() int {
	w := p.Workload.Serve
	if w.GPUs == 0 && w.Starts() && p.Resources.Device == "gpu" {
		return p.Workers
	}
	return w.GPUs
}

// mostPayload bounds the payload that CheckPayload reads: 256 MiB, as for requests.
const mostPayload = 256 << 20

// CheckPayload returns what is wrong with a payload: with streams, it must be a JSON object that asks for a
// stream, and without, no such object. err is set if the file cannot be read.
func CheckPayload(path string, streams bool) (wrong string, err error) {
	text, err := sharedfs.ReadFile(path, mostPayload)
	if err != nil {
		return "", err
	}
	var body map[string]any
	err = json.Unmarshal(text, &body)
	switch asked, _ := body["stream"].(bool); {
	case err != nil && streams:
		return fmt.Sprintf("workload.stream = true needs a JSON object with \"stream\": true, as in OpenAI's protocol: %v", err), nil
	case streams && !asked:
		return "workload.stream = true needs \"stream\": true in it", nil
	case !streams && asked:
		return "it asks for \"stream\": true; set workload.stream = true, or leave it out of the payload", nil
	}
	return "", nil
}
