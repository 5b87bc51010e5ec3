package study

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// language returns a study of a language model with further keys.
func language(keys string) string {
	return strings.Replace(serving("path = \"/v1/completions\"\nmodel = \"m\"\nthreads = [1]\n"+keys), "replicas = [1, 2]", "replicas = [1]", 1)
}

func TestLanguageProblems(t *testing.T) {
	for keys, want := range map[string]string{
		"prompts = \"x\"":                                              "workload.prompts: want a table, like { isl = 512, osl = 128 }",
		"prompts = {}":                                                 "workload.prompts: want a table",
		"prompts = { osl = 5 }":                                        "workload.prompts: want one source of prompts: file, trace or isl",
		"prompts = { isl = 5, file = \"a\" }":                          "workload.prompts: want one source of prompts: file, trace or isl",
		"prompts = { isl = 0 }":                                        `workload.prompts: isl: "0" in constant(0): want tokens from 1 to 1048576, like constant(N)`,
		"prompts = { isl = \"gauss(1, 2)\" }":                          `workload.prompts: isl: "gauss(1, 2)" is not a number of tokens; valid: 512, uniform(LOW, HIGH), normal(MEAN, SD), lognormal(MEDIAN, SIGMA)`,
		"prompts = { isl = \"uniform(9, 2)\" }":                        "workload.prompts: isl: uniform(9, 2): want uniform(LOW, HIGH), with LOW up to HIGH",
		"prompts = { isl = 5, prefix = 1 }":                            `workload.prompts: prefix: want the share of a prompt that all have in common, 0 or more and less than 1, got "1"`,
		"prompts = { file = \"a\", prefix = 0.5 }":                     "workload.prompts: prefix: only synthetic prompts (isl) share one",
		"prompts = { isl = 5, turns = 0 }":                             `workload.prompts: turns: want 1 to 1000, got "0"`,
		"prompts = { isl = 5, think = \"1s\" }":                        "workload.prompts: think: it is the time between the turns of a session; set turns = 2 or more",
		"prompts = { trace = \"a\", turns = 2 }":                       "workload.prompts: turns, think, osl: a trace has single requests",
		"prompts = { isl = 5, ols = 3 }":                               "workload.prompts: ols is unknown; valid: file, isl, osl, prefix, think, trace, turns",
		"prompts = { isl = 5 }\nexpect = \"a\"":                        "workload.expect: the answers to workload.prompts differ",
		"arrivals = \"uniform\"":                                       `workload.arrivals: "uniform" is not known; valid: "poisson", "constant", "gamma(SHAPE)"`,
		"arrivals = \"gamma(0)\"":                                      `workload.arrivals: "gamma(0)" is not known`,
		"arrivals = \"trace\"":                                         `workload.arrivals: "trace" needs workload.prompts = { trace = "FILE" }`,
		"routing = \"first\"":                                          `workload.routing: "first" is not known`,
		"routing = \"sticky\"":                                         `workload.routing: "sticky" keeps the requests of a session at one replica`,
		"cancel = 0.1":                                                 "workload.cancel_after: missing; say after how long",
		"cancel_after = \"1s\"":                                        "workload.cancel: missing; say what share",
		"cancel = 0.1\ncancel_after = \"5s\"":                          "workload.cancel_after: want less than workload.timeout, 5s",
		"headers = { Authorization = \"Bearer a\" }":                   "workload.headers: Authorization looks like a secret, and it would be stored",
		"headers = { X-Key = \"file:key\" }":                           "workload.headers: X-Key: want an absolute path after file:",
		"headers = { \"a b\" = \"c\" }":                                `workload.headers: "a b" cannot name a header`,
		"headers = { Content-Type = \"text/plain\" }":                  "workload.headers: Content-Type: set workload.content_type; leave it out",
		"api_key = \"sk-123\"":                                         `workload.api_key: want "env:NAME" for an environment variable or "file:/PATH" for a file`,
		"headers = { Authorization = \"env:A\" }\napi_key = \"env:B\"": "workload.api_key: sets the header Authorization, which workload.headers set too",
		"target = \"url\"\nurl = \"http://a gpu:1\"":                   `workload.url: "gpu:1" is not the address of a service`,
		"target = \"url\"\nurl = \"http://a grpc://b\"":                "workload.url: some addresses are gRPC and others HTTP; use one protocol",
		"metrics = \"metrics\"":                                        `workload.metrics: "metrics" is not a path on the server`,
		"stream = true":                                                "workload.stream: needs workload.path",
	} {
		s, err := Parse("s.toml", []byte(language(keys)), []Framework{{Name: "native"}})
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", keys, err, want)
		}
	}
	for _, keys := range []string{
		"prompts = { isl = 5 }\nstream = true", "arrivals = \"gamma(0.5)\"", "cancel = 0.1\ncancel_after = \"1s\"",
		"headers = { X-Tenant = \"a\", X-API-Key = \"env:KEY\" }\napi_key = \"file:/home/me/key\"", "target = \"url\"\nurl = \"http://a:1 https://b/\"\nrouting = \"random\"",
	} {
		s, err := Parse("s.toml", []byte(language(keys)), []Framework{{Name: "native"}})
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err != nil {
			t.Errorf("%s:\n%v", keys, err)
		}
	}
}

// A trace is a load by itself. Its path starts in the study's folder, but does not change the point's ID.
func TestPromptFiles(t *testing.T) {
	var ids []string
	for _, folder := range []string{"/one", "/another"} {
		text := strings.Replace(language("arrivals = \"trace\"\nprompts = { trace = \"a=b.jsonl\" }"), "threads = [1]\n", "", 1)
		s, err := Parse(folder+"/s.toml", []byte(text), []Framework{{Name: "native"}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		point := p.Points[0].Point
		ids = append(ids, point.ID)
		if got := point.Workload.Serve.Prompts.Path(); got != folder+"/a=b.jsonl" {
			t.Errorf("the trace is %s", got)
		}
		if diff := cmp.Diff(map[string]string{"a=b.jsonl": folder + "/a=b.jsonl"}, point.RequestFiles()); diff != "" {
			t.Error(diff)
		}
	}
	if ids[0] != ids[1] {
		t.Errorf("the same study has the points %q", ids)
	}
}

func TestPromptSpec(t *testing.T) {
	var p Prompts
	if err := p.UnmarshalTOML(map[string]any{"isl": "normal(512, 64)", "osl": int64(128), "prefix": 0.25, "turns": int64(3), "think": "2s"}); err != nil {
		t.Fatal(err)
	}
	want := PromptSpec{Input: TokenLength{"normal", 512, 64}, Output: TokenLength{"constant", 128, 0}, Prefix: 0.25, Turns: 3, Think: 2 * time.Second}
	if diff := cmp.Diff(want, p.Of()); diff != "" {
		t.Error(diff)
	}
	for text, shares := range map[Prompts]bool{"isl=5": false, "isl=5|prefix=0.5": true, "isl=5|turns=2": true, "file=a": true, "file=a|turns=1": false, "trace=a": true} {
		if text.Shares() != shares {
			t.Errorf("%s shares text: %v", text, !shares)
		}
	}
}

// The moments of the distributions in closed form, and of draws from them.
func TestTokenLengths(t *testing.T) {
	for text, want := range map[string][2]float64{
		"512":                  {512, 0},
		"constant(7)":          {7, 0},
		"uniform(100, 1000)":   {550, 900 / math.Sqrt(12)},
		"normal(512, 64)":      {512, 64},
		"lognormal(1000, 0.5)": {1133.148453, 603.900}, // 1000·e^0.125, and that times √(e^0.25 − 1)
	} {
		l, err := parseTokenLength(text)
		if err != nil {
			t.Fatal(err)
		}
		mean, sd := l.Moments()
		if math.Abs(mean-want[0]) > 1e-3 || math.Abs(sd-want[1]) > 1e-2 {
			t.Errorf("%s: mean %g, sd %g; want %g", text, mean, sd, want)
		}
		r, n := rand.New(rand.NewPCG(1, 2)), 100_000
		sum, squares := 0.0, 0.0
		for range n {
			x := float64(l.Draw(r))
			sum, squares = sum+x, squares+x*x
		}
		drawn := sum / float64(n)
		spread := math.Sqrt(max(squares/float64(n)-drawn*drawn, 0))
		if math.Abs(drawn-mean) > 0.01*mean || math.Abs(spread-sd) > 0.02*sd+0.3 {
			t.Errorf("%s: draws have the mean %g and the sd %g; want %g", text, drawn, spread, want)
		}
	}
}
