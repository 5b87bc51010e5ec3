package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func serving(keys string) string {
	return "[study]\nname = \"s\"\n[workload]\nkind = \"serve\"\n" + keys + "\n[sweep]\nreplicas = [1, 2]\n"
}

func TestServeProblems(t *testing.T) {
	for keys, want := range map[string]string{
		"":                                  "workload.threads: no load; set threads",
		"threads = [0]":                     "workload.threads: want 1 to 16384, got 0",
		"threads = [2, 2]":                  "workload.threads: 2 is listed twice",
		"rate = [-1]":                       "workload.rate: want requests/s above 0",
		"limit = { p95 = \"50\" }":          `workload.limit: p95 = "50" is not a latency; write it with its unit`,
		"limit = { p97 = \"50ms\" }":        "workload.limit: p97 is unknown; valid: p50, p90, p95, p99, the same behind ttft_, tpot_ and itl_ for streams, and errors",
		"limit = { ttft_p95 = \"200ms\" }":  "workload.limit: ttft is a time of answers that come text by text; set workload.stream = true",
		"limit = { ttft_p42 = \"200ms\" }":  "workload.limit: ttft_p42 is unknown",
		"limit = { first_p95 = \"200ms\" }": "workload.limit: first_p95 is unknown",
		"threads = [1]\nstream = true":      "workload.stream: needs workload.path, like \"/v1/completions\", and workload.payload",
		"limit = { errors = 0.1 }":          "workload.limit: limits no latency",
		"limit = { errors = 2 }":            "workload.limit: errors = 2; want a share",
		"limit = \"50ms\"":                  "workload.limit: want a table, like { p95 =",
		"threads = [1]\nready = \"x\"":      `workload.ready: "x" is not a path on the server`,
		"threads = [1]\ntarget = \"url\"":   "workload.url: missing",
		"threads = [1]\ntarget = \"url\"\nurl = \"http://h\"\nmodel = \"m\"":    "sweep.replicas: target = \"url\" starts no replicas; set replicas = [1]",
		"threads = [1]\ntarget = \"url\"\nurl = \"http://h\"":                   "workload.model: missing; the Open Inference Protocol asks for a model by name",
		"threads = [1]\nurl = \"http://h/\"":                                    "workload.url: would be ignored",
		"threads = [1]\ntarget = \"grpc\"\nmodel = \"m\"\nready = \"/health\"":  "workload.ready: is a path on an HTTP server; over gRPC",
		"threads = [1]\ntarget = \"url\"\nurl = \"grpc://h:1\"\nexpect = \"x\"": "workload.expect: belongs to HTTP",
		"limit = { tpot_p95 = \"1s\" }\ntarget = \"grpc\"\nmodel = \"m\"":       "workload.limit: tpot is a time of answers that come text by text",
		"threads = [1]\ntarget = \"process\"":                                   "sweep.replicas: target = \"process\" starts no replicas; set replicas = [1]",
		"threads = [1]\ntarget = \"process\"\npath = \"/p\"":                    "workload.path: belongs to HTTP; with target = \"process\" requests are made",
		"threads = [1]\ntarget = \"process\"\nurl = \"http://h\"":               "workload.url: would be ignored: target = \"process\" asks no server",
		"threads = [1]\npayload = \"x.json\"":                                   "workload.payload: needs workload.path",
		"threads = [1]\npath = \"/p\"\nbatch = [1, 8]":                          "workload.batch: every request to workload.path posts the same payload",
		"threads = [1]\nmomentum = 0.9":                                         "workload.momentum: unknown key",
		"threads = [1]\n[data]\nkind = \"synthetic\"":                           "data: kind = \"serve\" uses no data",
		"threads = [1]\n[resources]\nlaunch = \"torchrun\"":                     "a replica is one process",
		"threads = [1]\nclient = \"nobody\"":                                    `workload.client: "nobody" is not known; valid: "node", "cores"`,
		"threads = [1]\nduration = \"10ms\"":                                    "workload.duration: want",
		"threads = [1]\nshape = [3]":                                            `workload.shape: want a table, like { x = [3, 224, 224] }`,
		"threads = [1]\nshape = {}":                                             `workload.shape: names no input`,
		"threads = [1]\nshape = { x = [] }":                                     `workload.shape: x = []; want the sizes after the batch dimension`,
		"threads = [1]\nshape = { x = [3, 0] }":                                 `workload.shape: x = [3 0]; want the sizes after the batch dimension`,
		"threads = [1]\nshape = { x = [1.5] }":                                  `workload.shape: x = [1.5]; want`,
		"threads = [1]\nshape = { \"a b\" = [3] }":                              `workload.shape: "a b" cannot name an input`,
		"threads = [1]\npath = \"/p\"\npayload = \"x\"\nshape = { x = [3] }":    "workload.shape: requests to workload.path post the payload as it is",
		"threads = [1]\ninputs = \"x.npy\"":                                     `workload.inputs: want a table of .npy files, like { x = "images.npy" }, got x.npy`,
		"threads = [1]\ninputs = { x = \"x.npz\" }":                             `workload.inputs: x = "x.npz"; want the path of a .npy file`,
		"threads = [1]\ninputs = { \"a=b\" = \"x.npy\" }":                       `workload.inputs: "a=b" cannot name an input or output`,
		"threads = [1]\noutputs = { y = 3 }":                                    `workload.outputs: y = "3"; want the path`,
		"threads = [1]\noutputs = { y = \"y.npy\" }":                            `workload.outputs: are the answers to workload.inputs, which is missing`,
		"threads = [1]\ntolerance = 1.5":                                        `workload.tolerance: want 0 or more and less than 1, got 1.5`,
		"threads = [1]\npath = \"/p\"\ninputs = { x = \"x.npy\" }":              `workload.inputs: belongs to the Open Inference Protocol`,
		"threads = [1]\nshape = { x = [3] }\ninputs = { x = \"x.npy\" }":        `workload.shape: the files of workload.inputs have their own sizes; leave it out`,
	} {
		s, err := Parse("s.toml", []byte(serving(keys)), []Framework{{Name: "native"}})
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", keys, err, want)
		}
	}
}

func TestLimit(t *testing.T) {
	s, err := Parse("s.toml", []byte(serving("limit = { p95 = \"50ms\", p50 = \"0.01s\", errors = 0.002 }")), []Framework{{Name: "native"}})
	if err != nil {
		t.Fatal(err)
	}
	limit := s.Workload.Serve.Limit
	if limit != "errors=0.002 p50=10ms p95=50ms" {
		t.Errorf("%q", limit)
	}
	bounds, errors := limit.Of()
	if diff := cmp.Diff([]Bound{{"", 0.5, 0.01}, {"", 0.95, 0.05}}, bounds); diff != "" || errors != 0.002 {
		t.Errorf("%s, errors %g", diff, errors)
	}
	if _, errors := Limit("p95=50ms").Of(); errors != 0.001 {
		t.Errorf("without a word of them, errors may be %g", errors)
	}
}

// Sizes of inputs survive their text form, for any input name.
func TestShapes(t *testing.T) {
	s, err := Parse("s.toml", []byte(serving("threads = [1]\nshape = { x = [3, 48, 192], \"gpu_0/data:0\" = [7] }")), []Framework{{Name: "native"}})
	if err != nil {
		t.Fatal(err)
	}
	shape := s.Workload.Serve.Shape
	if diff := cmp.Diff(map[string][]int{"x": {3, 48, 192}, "gpu_0/data:0": {7}}, shape.Of()); diff != "" || shape != "gpu_0/data:0:7 x:3,48,192" {
		t.Errorf("%q: %s", shape, diff)
	}
	if n := len(Shapes("").Of()); n != 0 {
		t.Errorf("no shape has %d inputs", n)
	}
}

// Sample files are relative to the study's folder, and a sweep distinguishes them by their
// names in the study.
func TestArrays(t *testing.T) {
	text := strings.Replace(serving("threads = [1]\nmodel = \"random:mlp\"\ninputs = { x = \"a b/x.npy\", \"d:0\" = \"/far/x.npy\" }"), "[sweep]", "[sweep]\noutputs = [{ y = \"y.npy\" }, { y = \"z.npy\" }]", 1)
	var ids [2]string
	for i, folder := range []string{"/one", "/another"} {
		s, err := Parse(folder+"/s.toml", []byte(text), []Framework{{Name: "native"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		point := p.Points[0].Point
		ids[i] = point.ID
		w := point.Workload.Serve
		if diff := cmp.Diff(map[string]string{"x": folder + "/a b/x.npy", "d:0": "/far/x.npy"}, w.Inputs.Of()); diff != "" || len(p.Points) != 4 {
			t.Errorf("%d points: %s", len(p.Points), diff)
		}
		if diff := cmp.Diff(map[string]string{folder + "/a b/x.npy": folder + "/a b/x.npy", "/far/x.npy": "/far/x.npy", "y.npy": folder + "/y.npy"}, point.RequestFiles()); diff != "" {
			t.Error(diff)
		}
	}
	if ids[0] != ids[1] {
		t.Errorf("the same study has the points %q", ids)
	}
}

// A model that we serve is a file, relative to the study's folder; for other servers it is
// a name. Model servers run only this kind.
func TestServedModel(t *testing.T) {
	all := []Framework{{Name: "native"}, {Name: "command", Command: true}, {Name: "server", Server: true}, {Name: "trainer"}}
	plan := func(text string) (*Plan, error) {
		s, err := Parse("/studies/s.toml", []byte(text), all)
		if err != nil {
			return nil, err
		}
		return s.Plan(DefaultSite())
	}
	const run = "[study]\nname = \"s\"\n[workload]\nkind = \"serve\"\nthreads = [1]\n"
	for text, want := range map[string]struct{ model, file string }{
		"model = \"m/a.onnx\"\n[sweep]\nframework = [\"server\"]\nreplicas = [1]\n":                            {"/studies/m/a.onnx", "/studies/m/a.onnx"},
		"model = \"/a.onnx\"\n[sweep]\nframework = [\"server\"]\nreplicas = [1]\n":                             {"/a.onnx", "/a.onnx"},
		"model = \"a.safetensors\"\n[sweep]\nreplicas = [1]\n":                                                 {"/studies/a.safetensors", "/studies/a.safetensors"},
		"model = \"random:mlp\"\n[sweep]\nreplicas = [1]\n":                                                    {"random:mlp", ""},
		"model = \"resnet\"\n[command]\nrun = \"serve\"\n[sweep]\nframework = [\"command\"]\nreplicas = [1]\n": {"resnet", ""},
		"model = \"resnet\"\ntarget = \"url\"\nurl = \"http://h\"\n[sweep]\nreplicas = [1]\n":                  {"resnet", ""},
	} {
		p, err := plan(run + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := p.Points[0].Point; got.Workload.Serve.Model != want.model || got.ModelFile() != want.file {
			t.Errorf("%s: model %q, file %q", text, got.Workload.Serve.Model, got.ModelFile())
		}
	}
	for text, want := range map[string]string{
		run + "model = \"a.onnx\"\n[sweep]\nframework = [\"trainer\"]\nreplicas = [1]\n":                                     `sweep.framework: "trainer" does not run this kind of workload; valid for it: "native", "command", "server"`,
		"[study]\nname = \"s\"\n[workload]\nmodel = \"mlp\"\nepochs = 1\n[sweep]\nframework = [\"server\"]\nworkers = [1]\n": `sweep.framework: "server" does not run this kind of workload; valid for it: "native", "command", "trainer"`,
		run + "[command]\nrun = \"serve\"\n[sweep]\nframework = [\"command\"]\nreplicas = [1]\n":                             "workload.model: missing; the Open Inference Protocol asks for a model by name",
	} {
		if _, err := plan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", text, err, want)
		}
	}
}

// Times of streamed answers have their own limits, which need streams.
func TestLimitOfStreams(t *testing.T) {
	const keys = "path = \"/v1/completions\"\npayload = \"ask.json\"\nstream = true\nlimit = { ttft_p95 = \"200ms\", tpot_p99 = \"20ms\", p99 = \"2s\" }"
	s, err := Parse("s.toml", []byte(serving(keys)), []Framework{{Name: "native"}})
	if err != nil {
		t.Fatal(err)
	}
	bounds, _ := s.Workload.Serve.Limit.Of()
	if diff := cmp.Diff([]Bound{{"", 0.99, 2}, {TPOT, 0.99, 0.02}, {TTFT, 0.95, 0.2}}, bounds); diff != "" {
		t.Error(diff)
	}
}

// The load generator is next to the replicas, and the job has room for it.
func TestServeShape(t *testing.T) {
	site := DefaultSite()
	site.Partitions = []Partition{{Name: "main", CPUsPerNode: 4, MaxNodes: 4}}
	type shape struct{ Workers, Nodes, PerNode, Beside, JobNodes, JobRanks int }
	for keys, want := range map[string][]shape{
		"threads = [1]\n[resources]\nworkers_per_node = 1": {{1, 1, 1, 1, 2, 1}, {2, 2, 1, 1, 3, 1}},
		"threads = [1]\n[resources]\ncpus_per_worker = 2":  {{1, 1, 1, 1, 2, 1}, {2, 1, 2, 2, 2, 2}},
		"threads = [1]\nclient = \"cores\"":                {{1, 1, 1, 1, 1, 2}, {2, 1, 2, 1, 1, 3}},
	} {
		s, err := Parse("s.toml", []byte(serving(keys)), []Framework{{Name: "native"}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := s.Plan(site)
		if err != nil {
			t.Fatalf("%s: %v", keys, err)
		}
		var got []shape
		for _, p := range plan.Points {
			nodes, ranks := p.Point.Shape()
			got = append(got, shape{p.Point.Workers, p.Point.Nodes, p.Point.WorkersPerNode, p.Point.AuxRanks, nodes, ranks})
			if nodes*ranks != p.Point.Ranks() {
				t.Errorf("%s: %d nodes of %d ranks are not %d", keys, nodes, ranks, p.Point.Ranks())
			}
			here := p.Point
			if here.OnOneNode(); here.Nodes != 1 || here.AuxNodes != 0 || here.Ranks() != p.Point.Workers+min(p.Point.AuxRanks, 1) {
				t.Errorf("%s: on one node %+v", keys, here)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", keys, diff)
		}
	}
	for keys, want := range map[string]string{
		"threads = [1]\nclient = \"cores\"\n[resources]\nworkers_per_node = 1": "workload.client: 2 workers take 2 nodes of 1, but the load generator has its cores on one",
		"threads = [1]\nclient = \"cores\"\n[resources]\ncpus_per_worker = 2":  "3 ranks a node with 2 CPUs each, but a node has 4",
	} {
		s, err := Parse("s.toml", []byte(serving(keys)), []Framework{{Name: "native"}})
		if err == nil {
			_, err = s.Plan(site)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", keys, err, want)
		}
	}
}

// Replicas is another word for workers. A file is located relative to the study's folder,
// under any name in the point's identity.
func TestServeNames(t *testing.T) {
	plan := func(folder, text string) *Plan {
		s, err := Parse(folder+"/s.toml", []byte(text), []Framework{{Name: "native"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	text := serving("threads = [1]\npath = \"/p\"\npayload = \"in.json\"")
	here, there := plan("/a", text), plan("/b", strings.Replace(text, "replicas", "workers", 1))
	if got := here.Points[0].Point.Workload.Serve.Payload; got != "/a/in.json" {
		t.Errorf("payload %s", got)
	}
	for i, p := range here.Points {
		if q := there.Points[i]; p.Point.ID != q.Point.ID || p.Point.Workers != i+1 {
			t.Errorf("%s and %s", p.Point.ID, q.Point.ID)
		}
	}
	both := strings.Replace(text, "replicas = [1, 2]", "replicas = [1, 2]\nworkers = [1]", 1)
	if _, err := Parse("s.toml", []byte(both), []Framework{{Name: "native"}}); err == nil || !strings.Contains(err.Error(), "is sweep.replicas by another name") {
		t.Errorf("%v", err)
	}
	none := strings.Replace(text, "replicas = [1, 2]\n", "", 1)
	// A service that runs already counts as one replica.
	running, err := Parse("s.toml", []byte(strings.Replace(none, "[sweep]", "target = \"url\"\nurl = \"http://h\"\nmodel = \"resnet\"\n[sweep]", 1)), []Framework{{Name: "native"}})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := running.Plan(nil); err != nil || len(p.Points) != 1 || p.Points[0].Point.Workers != 1 {
		t.Errorf("target = \"url\" without replicas: %+v, %v", p, err)
	}
	if _, err := Parse("s.toml", []byte(none), []Framework{{Name: "native"}}); err == nil || !strings.Contains(err.Error(), "sweep.replicas: missing; list the replica counts") {
		t.Errorf("%v", err)
	}
}

// A stream needs a payload that asks for one, at its top level; a payload that asks for one needs a stream.
func TestCheckPayload(t *testing.T) {
	for _, tt := range []struct{ text, streams, plain string }{
		{`{"prompt": "x", "stream": true}`, "", "it asks for"},
		{`{"prompt": "x", "stream": false}`, `needs "stream": true in it`, ""},
		{`{"prompt": "x"}`, `needs "stream": true in it`, ""},
		{`{"prompt": "x", "stream": "true"}`, `needs "stream": true in it`, ""},
		{`{"options": {"stream": true}}`, `needs "stream": true in it`, ""},
		{`[{"stream": true}]`, "needs a JSON object", ""},
		{`"stream": true`, "needs a JSON object", ""},
		{"", "needs a JSON object", ""},
	} {
		path := filepath.Join(t.TempDir(), "payload")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for streams, want := range map[bool]string{true: tt.streams, false: tt.plain} {
			wrong, err := CheckPayload(path, streams)
			if err != nil || (want == "") != (wrong == "") || !strings.Contains(wrong, want) {
				t.Errorf("%s, stream %v: %q, %v; want %q", tt.text, streams, wrong, err, want)
			}
		}
	}
}
