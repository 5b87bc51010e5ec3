package study

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Serve holds the keys of kind = "serve": a service and the load on it. The workers are the
// replicas of the service. The load generator is a further process with its own CPUs.
type Serve struct {
	Target string `toml:"target" json:"target"` // HTTP, GRPC, URL or Process
	URL    string `toml:"url" json:"url"`       // addresses for target = "url", separated by spaces: http://, https://, grpc:// or grpcs://

	Model         string   `toml:"model" json:"model"`                   // model file that scalebench's own server loads; for other servers, the model's name
	Precision     string   `toml:"precision" json:"precision"`           // precision of the deployed model; only a label, since the server decides
	ServerOptions string   `toml:"server_options" json:"server_options"` // arguments added to the command line of servers of language models
	Startup       Duration `toml:"startup" json:"startup"`               // maximum time until a replica is ready
	Ready         string   `toml:"ready" json:"ready"`                   // path that answers with status 2xx when the replica is ready

	// Path is the path of requests; "": the path that the Open Inference Protocol defines
	// for the model.
	Path        string `toml:"path" json:"path"`
	Payload     string `toml:"payload" json:"payload"` // file whose content every request posts; relative to the study file
	ContentType string `toml:"content_type" json:"content_type"`
	Expect      string `toml:"expect" json:"expect"` // text that every right answer contains
	Stream      bool   `toml:"stream" json:"stream"` // answers are streamed as in OpenAI's protocol
	// Prompts are the requests to a language model, for which Payload is the template.
	Prompts Prompts `toml:"prompts" json:"prompts"`
	Headers Headers `toml:"headers" json:"headers"` // of every request
	APIKey  string  `toml:"api_key" json:"api_key"` // location of the bearer token: "env:NAME" or "file:/PATH"
	Routing string  `toml:"routing" json:"routing"` // which replica gets a request; "": RoundRobin

	// Inputs and Outputs are .npy files for the model's inputs and outputs. Inputs are
	// samples to send in turn ("" sends random samples); Outputs are the right answers to
	// them.
	Inputs    Arrays  `toml:"inputs" json:"inputs"`
	Outputs   Arrays  `toml:"outputs" json:"outputs"`
	Tolerance float64 `toml:"tolerance" json:"tolerance"` // relative error allowed in answers, compared with the largest number; 0: depends on the data type

	Shape   Shapes    `toml:"shape" json:"shape"`     // sizes of the model's inputs, if they have variable dimensions other than the batch
	Batch   []int     `toml:"batch" json:"batch"`     // samples per request
	Threads []int     `toml:"threads" json:"threads"` // numbers of requests in flight, for loads in a closed loop
	Rate    []float64 `toml:"rate" json:"rate"`       // requests/s sent at random times, for loads in an open loop
	Limit   Limit     `toml:"limit" json:"limit"`     // search for the highest rate within this limit

	Arrivals       Arrivals `toml:"arrivals" json:"arrivals"`               // how an open loop draws its send times
	MaxConcurrency int      `toml:"max_concurrency" json:"max_concurrency"` // requests that an open loop has in flight at most; 0: 1024
	Ramp           Duration `toml:"ramp" json:"ramp"`                       // during which a load grows from 0, before it is measured
	Warmup         Duration `toml:"warmup" json:"warmup"`                   // during which a load runs after Ramp, before it is measured
	Duration       Duration `toml:"duration" json:"duration"`               // for how long each load is measured
	Requests       int      `toml:"requests" json:"requests"`               // a load ends after this number of requests, if Duration is not over before; 0: unlimited
	Cancel         float64  `toml:"cancel" json:"cancel"`                   // share of requests that the client abandons …
	CancelAfter    Duration `toml:"cancel_after" json:"cancel_after"`       // … after this time
	Timeout        Duration `toml:"timeout" json:"timeout"`                 // time after which an answer counts as too late
	Client         string   `toml:"client" json:"client"`                   // where the load generator of a job runs: on its own "node", or on separate "cores" of the replicas' node

	Metrics string `toml:"metrics" json:"metrics"` // path of the service's own metrics, in Prometheus' text format; "": not read
	GPUs    int    `toml:"gpus" json:"gpus"`       // GPUs of the service; 0: one per replica on device = "gpu", else none
	Export  bool   `toml:"export" json:"export"`   // write a line for each request
}

// Values of workload.target, to which the load generator sends requests.
const (
	HTTP = "http" // replicas that the run starts, over HTTP
	GRPC = "grpc" // replicas that the run starts, over gRPC (Open Inference Protocol)
	URL  = "url"  // a service that is already running
	// Process computes the model within the load generator's process, without a server.
	Process = "process"
)

// Values of workload.routing.
const (
	RoundRobin = "round-robin"
	Random     = "random"
	LeastBusy  = "least-busy" // the replica with the fewest requests in flight
	Sticky     = "sticky"     // all requests of a session go to one replica
)

// Where a job's load generator runs.
const (
	ownNode  = "node"
	ownCores = "cores"
)

// ReadyPath is the path at which a server reports that it is ready, by the Open Inference
// Protocol.
const ReadyPath = "/v2/health/ready"

func (Serve) kind() kind { return serve }

var serve = kind{
	loaded:     true,
	bounds:     []string{"workload.duration"},
	frameworks: []string{"native", "command"},
	servers:    true,
	defaults: Workload{Kind: "serve", Serve: Serve{
		Target:      HTTP,
		Precision:   "fp32",
		Startup:     Duration(2 * time.Minute),
		Ready:       ReadyPath,
		ContentType: "application/json",
		Batch:       []int{1},
		Threads:     []int{},
		Rate:        []float64{},
		Duration:    Duration(20 * time.Second),
		Timeout:     Duration(5 * time.Second),
		Client:      ownNode,
		Arrivals:    Poisson,
		Routing:     RoundRobin,

		MaxConcurrency: 1024,
	}},
	rules: map[string]rule{
		"workload.target":         among(HTTP, GRPC, URL, Process),
		"workload.url":            oneLine,
		"workload.model":          oneLine,
		"workload.precision":      notEmpty,
		"workload.server_options": oneLine,
		"workload.startup":        within(int64(time.Second), int64(24*time.Hour)),
		"workload.ready":          absolutePath,
		"workload.path":           absolutePath,
		"workload.payload":        oneLine,
		"workload.content_type":   oneLine,
		"workload.tolerance":      fraction,
		"workload.batch":          counts(1 << 20),
		"workload.threads":        counts(1 << 14),
		"workload.rate":           rates,
		"workload.duration":       within(int64(time.Second), int64(24*time.Hour)),
		"workload.timeout":        within(int64(time.Millisecond), int64(time.Hour)),
		"workload.client":         among(ownNode, ownCores),

		"workload.api_key":         reference,
		"workload.routing":         among(RoundRobin, Random, LeastBusy, Sticky),
		"workload.arrivals":        checkArrivals,
		"workload.max_concurrency": within(1, 1<<14),
		"workload.ramp":            within(0, int64(24*time.Hour)),
		"workload.warmup":          within(0, int64(24*time.Hour)),
		"workload.requests":        within(0, 1<<30),
		"workload.cancel":          fraction,
		"workload.cancel_after":    within(0, int64(time.Hour)),
		"workload.metrics":         absolutePath,
		"workload.gpus":            within(0, 1<<20),
	},
	follows: map[string][]string{
		"workload.threads": {"workload.rate", "workload.limit"},
		"workload.url":     {"workload.target"},
		"workload.path":    {"workload.target", "workload.payload"},
		"workload.stream":  {"workload.path", "workload.payload", "workload.limit"},
		"workload.prompts": {"workload.path", "workload.payload", "workload.arrivals"},
		"workload.client":  {"workers", "resources.workers_per_node"},
	},
	plausible: map[string]any{"workload.threads": []int{1}, "workload.url": "http://localhost/"},
	expand:    expandServe,
	workers:   "replicas",
	alone:     func(w Workload) bool { return !w.Serve.Starts() },
	files:     []string{"workload.payload"},
	locate:    locateFiles,
	beside:    auxRanks,
}

func expandServe(p *Point) map[string]string {
	wrong := map[string]string{}
	w := &p.Workload.Serve
	if len(w.Threads) == 0 && len(w.Rate) == 0 && w.Limit == "" && w.Arrivals != Trace {
		wrong["workload.threads"] = "no load; set threads = [1, 4, 16] (requests in flight), rate = [50, 100] (requests/s), or limit = { p95 = \"50ms\" } (search for the largest rate)"
	}
	if len(p.Command.Run) > 0 && !w.Starts() {
		wrong["command.run"] = "would be ignored: target = \"" + w.Target + "\" starts no server; leave [command] out, or set target = \"http\""
	}
	if p.Command.Start != "" && p.Command.Start != "rank" || p.Resources.Launch != "srun" {
		wrong["command.start"] = "a replica is one process: leave start = \"node\", start = \"once\" and launch = \"torchrun\" out"
	}
	w.checkTarget(p, wrong)
	w.checkStream(wrong)
	w.checkSamples(wrong)
	w.checkProtocol(p, wrong)
	w.checkPrompts(wrong)
	w.checkLoad(wrong)
	return wrong
}

// checkTarget adds to wrong, by TOML path, keys that are inconsistent with the target and
// its address.
func (w *Serve) checkTarget(p *Point, wrong map[string]string) {
	switch {
	case w.Target == URL && w.URL == "":
		wrong["workload.url"] = "missing; with target = \"url\", say where the service is, like \"http://gpu7:8000\" or \"grpc://gpu7:8001\" (https and grpcs with TLS)"
	case w.Target == Process && w.URL != "":
		wrong["workload.url"] = "would be ignored: target = \"process\" asks no server; leave it out"
	case w.Target != URL && w.URL != "":
		wrong["workload.url"] = "would be ignored: target = \"" + w.Target + "\" starts its own replicas; set target = \"url\" to load a service that runs already"
	}
	if !w.Starts() && p.Workers > 1 {
		wrong["workers"] = "target = \"" + w.Target + "\" starts no replicas; set replicas = [1], and sweep a key of your own for what differs between services"
	}
	if w.Path == "" && w.Model == "" && w.named(p.Framework) {
		wrong["workload.model"] = "missing; the Open Inference Protocol asks for a model by name. For another protocol set workload.path, and payload for what to post"
	}
	if w.Path == "" && w.Payload != "" {
		wrong["workload.payload"] = "needs workload.path, the path on the server to post it to, like \"/predict\""
	}
}

// checkStream adds to wrong keys that are inconsistent with streamed answers.
func (w *Serve) checkStream(wrong map[string]string) {
	bounds, _ := w.Limit.Of()
	ofStream := slices.IndexFunc(bounds, func(b Bound) bool { return b.Of != "" })
	switch {
	case w.Stream && (w.Path == "" || w.Payload == "" && w.Prompts == ""):
		wrong["workload.stream"] = "needs workload.path, like \"/v1/completions\", and workload.payload, a request with \"stream\": true, or workload.prompts"
	case !w.Stream && ofStream >= 0:
		wrong["workload.limit"] = bounds[ofStream].Of + " is a time of answers that come text by text; set workload.stream = true, or limit p50, p90, p95 or p99"
	}
}

// checkSamples adds to wrong keys that are inconsistent with the content of requests.
func (w *Serve) checkSamples(wrong map[string]string) {
	if w.Path != "" && w.Shape != "" {
		wrong["workload.shape"] = "requests to workload.path post the payload as it is; leave one of the two out"
	}
	for path, set := range map[string]bool{"workload.inputs": w.Inputs != "", "workload.outputs": w.Outputs != "", "workload.tolerance": w.Tolerance != 0} {
		switch {
		case set && w.Path != "":
			wrong[path] = "belongs to the Open Inference Protocol; requests to workload.path post workload.payload, and workload.expect is the text of right answers; leave one of the two out"
		case path == "workload.outputs" && set && w.Inputs == "":
			wrong[path] = "are the answers to workload.inputs, which is missing"
		}
	}
	if w.Inputs != "" && w.Shape != "" {
		wrong["workload.shape"] = "the files of workload.inputs have their own sizes; leave it out"
	}
	if w.Path != "" && !slices.Equal(w.Batch, []int{1}) && w.Payload == "" && w.Prompts == "" {
		wrong["workload.batch"] = "requests to workload.path have no samples to count without workload.payload"
	}
	if w.Path != "" && len(w.Batch) > 1 {
		wrong["workload.batch"] = "every request to workload.path posts the same payload; give the number of samples in it, like batch = [8]"
	}
}

// checkProtocol adds to wrong keys that the protocol of the requests does not support.
func (w *Serve) checkProtocol(p *Point, wrong map[string]string) {
	if w.Target == Process && p.Framework == "command" {
		wrong["workload.target"] = "\"process\" computes the model in the load generator itself, which cannot do so with a command; set framework = [\"native\"] or [\"onnxruntime\"], or another target"
	}
	if w.OverGRPC() || w.Target == Process {
		for path, set := range map[string]bool{"workload.path": w.Path != "", "workload.payload": w.Payload != "", "workload.expect": w.Expect != "", "workload.stream": w.Stream,
			"workload.prompts": w.Prompts != "", "workload.headers": w.Headers != "", "workload.api_key": w.APIKey != "", "workload.metrics": w.Metrics != "" && w.Target == Process,
			"workload.routing": w.Routing != "" && w.Routing != RoundRobin} {
			if set {
				wrong[path] = "belongs to HTTP; with target = \"" + w.Target + "\" requests are made from what the model says of its inputs; leave it out"
			}
		}
		if w.Target == GRPC && w.Ready != "" && w.Ready != ReadyPath {
			wrong["workload.ready"] = "is a path on an HTTP server; over gRPC a replica is asked ServerReady; leave it out, or set \"\" to wait only for its port"
		}
	}
}

// RandomModel is the prefix of workload.model for a native model with random weights. Such
// a model serves to measure speed, which does not depend on the weights.
const RandomModel = "random:"

// named reports whether workload.model is the name of a model in another service or a
// registry, and not a file that the framework serves.
func (w Serve) named(framework string) bool {
	return w.Target == URL || slices.Contains([]string{"command", "vllm", "sglang"}, framework)
}

// ModelFile returns the model file that the replicas serve; "": none, as for
// user's programs and services that are already running.
func (p Point) ModelFile() string {
	w := p.Workload.Serve
	if w.named(p.Framework) || strings.HasPrefix(w.Model, RandomModel) {
		return ""
	}
	return w.Model
}

// RequestFiles returns the paths of the files with requests and their right answers, by
// name. The name is the file's base name, or its path if two files have the same base name.
func (p Point) RequestFiles() map[string]string {
	paths := map[string]string{}
	w := p.Workload.Serve
	all := slices.AppendSeq([]string{w.Payload, w.Prompts.Path()}, maps.Values(w.Inputs.Of()))
	all = slices.AppendSeq(all, maps.Values(w.Outputs.Of()))
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(path string) bool { return path == "" })
	named := map[string]int{}
	for _, path := range all {
		named[filepath.Base(path)]++
	}
	for _, path := range all {
		name := filepath.Base(path)
		if named[name] > 1 {
			name = path
		}
		paths[name] = path
	}
	return paths
}

// locateFiles makes the paths of a point's model file and .npy files absolute. Relative
// paths start in the study's folder.
func locateFiles(p *Point, folder string) {
	p.Workload.Serve.Inputs = p.Workload.Serve.Inputs.in(folder)
	p.Workload.Serve.Outputs = p.Workload.Serve.Outputs.in(folder)
	p.Workload.Serve.Prompts = p.Workload.Serve.Prompts.in(folder)
	if file := p.ModelFile(); file != "" && !filepath.IsAbs(file) {
		p.Workload.Serve.Model = filepath.Join(folder, file)
	}
}

// auxRanks returns the number of ranks and nodes for the load generator. If it has
// its own node, that node gets as many ranks as each other node, since all nodes of a job
// must have the same number.
func auxRanks(p *Point) (ranks, nodes int) {
	if !p.Workload.Serve.Starts() {
		return 0, 0 // the only ranks are load generators
	}
	if p.Workload.Serve.Client == ownNode {
		return p.WorkersPerNode, 1
	}
	return 1, 0
}

// Starts reports whether the run itself starts the replicas.
func (s Serve) Starts() bool { return s.Target == HTTP || s.Target == GRPC }

// OverGRPC reports whether requests use gRPC.
func (s Serve) OverGRPC() bool {
	return s.Target == GRPC || s.Target == URL && (strings.HasPrefix(s.URL, "grpc://") || strings.HasPrefix(s.URL, "grpcs://"))
}

// URLs returns the addresses of a service that is already running, without a slash at the end.
func (s Serve) URLs() []string {
	list := strings.Fields(s.URL)
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "/")
	}
	return list
}

var pathPattern = regexp.MustCompile(`^/[!-~]*$`)

func absolutePath(v any) string {
	if s := v.(string); s != "" && !pathPattern.MatchString(s) {
		return fmt.Sprintf("%q is not a path on the server; one is like %q", s, "/v1/predict")
	}
	return ""
}

// counts returns a check for a list of different whole numbers from 1 to most.
func counts(most int) func(any) string {
	return func(v any) string {
		list := v.([]int)
		for i, n := range list {
			switch {
			case n < 1 || n > most:
				return fmt.Sprintf("want 1 to %d, got %d", most, n)
			case slices.Contains(list[:i], n):
				return fmt.Sprintf("%d is listed twice", n)
			}
		}
		return ""
	}
}

func rates(v any) string {
	list := v.([]float64)
	for i, x := range list {
		switch {
		case !(x > 0) || math.IsInf(x, 0) || x > 1e7:
			return fmt.Sprintf("want requests/s above 0 and up to 1e7, got %g", x)
		case slices.Contains(list[:i], x):
			return fmt.Sprintf("%g is listed twice", x)
		}
	}
	return ""
}
