package framework

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

// This file declares servers of language models, which speak OpenAI's protocol. They differ in their command
// line and in how they say that they are ready. All report metrics in Prometheus' format.

// vllm is vLLM's server, of the Python package vllm.
var vllm = language(Framework{
	Name: "vllm", Imports: []string{"vllm"}, versions: []string{"vllm", "torch"},
	Command: func(s Rank) []string {
		return append([]string{s.interpreter(), "-m", "vllm.entrypoints.openai.api_server", "--model", s.Point.Workload.Serve.Model, "--served-model-name", ServedModel}, listen(s)...)
	},
})

// sglang is SGLang's server, of the Python package sglang.
var sglang = language(Framework{
	Name: "sglang", Imports: []string{"sglang"}, versions: []string{"sglang", "torch"},
	Command: func(s Rank) []string {
		return append([]string{s.interpreter(), "-m", "sglang.launch_server", "--enable-metrics", "--model-path", s.Point.Workload.Serve.Model, "--served-model-name", ServedModel}, listen(s)...)
	},
})

// llamaCPP is llama.cpp's llama-server, found on the PATH.
var llamaCPP = language(Framework{
	Name: llamaCPPName,
	Command: func(s Rank) []string {
		return append([]string{"llama-server", "--metrics", "--threads", strconv.Itoa(s.Point.Resources.CPUsPerWorker), "--model", s.Point.Workload.Serve.Model, "--alias", ServedModel}, listen(s)...)
	},
})

// listen returns the arguments that end every command line: where to listen, and the study's own arguments.
func listen(s Rank) []string {
	return append([]string{"--host", s.Listen, "--port", strconv.Itoa(s.Ports.HTTP)}, strings.Fields(s.Point.Workload.Serve.ServerOptions)...)
}

// language completes the framework of a server of language models.
func language(f Framework) Framework {
	f.Server, f.Language = true, true
	f.Check = func(p study.Point) map[string]string { return checkLanguage(f.Name, p) }
	return f
}

// Ways of servers of language models to say that they are ready, and to report metrics.
const (
	LanguageReady   = "/health"
	LanguageModels  = "/v1/models"
	LanguageMetrics = "/metrics"
)

func checkLanguage(name string, p study.Point) map[string]string {
	wrong := map[string]string{}
	w := p.Workload.Serve
	gguf := strings.EqualFold(filepath.Ext(w.Model), ".gguf")
	switch {
	case w.Target != study.HTTP:
		wrong["workload.target"] = fmt.Sprintf("framework = %q starts a server and is asked over HTTP; set target = \"http\", not %q", name, w.Target)
	case w.Path == "":
		wrong["workload.path"] = fmt.Sprintf("missing; %s speaks OpenAI's protocol: set \"/v1/chat/completions\" or \"/v1/completions\"", name)
	case w.Prompts == "" && w.Payload == "":
		wrong["workload.prompts"] = "missing; say what to ask, like { isl = 512, osl = 128 }, or name a request in workload.payload"
	}
	switch {
	case w.Model == "":
		wrong["workload.model"] = "missing; name the model, like \"Qwen/Qwen3-0.6B\", or the path of its folder"
	case name == llamaCPPName && !gguf:
		wrong["workload.model"] = fmt.Sprintf("%q is not a model that llama.cpp serves; name a GGUF file, like \"model.gguf\"", w.Model)
	case name != llamaCPPName && gguf:
		wrong["workload.model"] = fmt.Sprintf("%q is a GGUF file, which framework = \"llama-cpp\" serves; for %s name a model or its folder", w.Model, name)
	}
	return wrong
}

const llamaCPPName = "llama-cpp"
