package framework

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/study"
)

// Each command line ends with the study's own arguments.
func TestLanguageServers(t *testing.T) {
	p := study.Point{Workers: 2}
	p.Workload.Kind = "serve"
	p.Workload.Serve = study.Serve{Target: study.HTTP, Path: "/v1/completions", Prompts: "isl=5", ServerOptions: "--max-num-seqs 64"}
	p.Resources.Device, p.Resources.CPUsPerWorker, p.Resources.Launch = "gpu", 3, "srun"
	for name, tt := range map[string]struct {
		model string
		other string // a model that it does not serve
		want  []string
	}{
		"vllm":      {"Qwen/Qwen3-0.6B", "a.gguf", []string{"/env/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "Qwen/Qwen3-0.6B", "--served-model-name", "model"}},
		"sglang":    {"/m/qwen", "a.gguf", []string{"/env/bin/python", "-m", "sglang.launch_server", "--enable-metrics", "--model-path", "/m/qwen", "--served-model-name", "model"}},
		"llama-cpp": {"/m/a.gguf", "a.onnx", []string{"llama-server", "--metrics", "--threads", "3", "--model", "/m/a.gguf", "--alias", "model"}},
	} {
		f, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p.Framework, p.Workload.Serve.Model = name, tt.model
		want := append(tt.want, "--host", "10.0.0.7", "--port", "4711", "--max-num-seqs", "64")
		if diff := cmp.Diff(want, f.Command(Rank{Point: p, Python: "/env/bin/python", Listen: "10.0.0.7", Ports: Ports{HTTP: 4711}})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if wrong := f.check(p); len(wrong) > 0 || !f.Server {
			t.Errorf("%s refuses %v", name, wrong)
		}
		for key, change := range map[string]func(*study.Serve){
			"workload.target: framework = \"" + name + "\" starts a server": func(s *study.Serve) { s.Target = study.URL },
			"workload.path: missing; " + name + " speaks OpenAI's protocol": func(s *study.Serve) { s.Path = "" },
			"workload.prompts: missing; say what to ask":                    func(s *study.Serve) { s.Prompts = "" },
			"workload.model: missing; name the model":                       func(s *study.Serve) { s.Model = "" },
			"workload.model: \"" + tt.other + "\" is":                       func(s *study.Serve) { s.Model = tt.other },
		} {
			q := p
			change(&q.Workload.Serve)
			path, message, _ := strings.Cut(key, ": ")
			if got := f.check(q)[path]; !strings.Contains(got, message) {
				t.Errorf("%s: %s: %q, want %q", name, path, got, message)
			}
		}
	}
	if vllm.Install() != "pip install vllm" || llamaCPP.Install() != "" {
		t.Errorf("%q, %q", vllm.Install(), llamaCPP.Install())
	}
}
