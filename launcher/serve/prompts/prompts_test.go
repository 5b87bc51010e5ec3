package prompts

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/study"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens prompts for a template with a prompt.
func open(t *testing.T, p study.Prompts) *Source {
	t.Helper()
	s, err := Open(p, []byte(`{"model": "m", "prompt": "", "max_tokens": 9}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A request holds the parts of a body that the tests check.
type request struct {
	Model    string
	Prompt   string
	Messages []message
	Most     int `json:"max_tokens"`
}

func parse(t *testing.T, body []byte) (r request) {
	t.Helper()
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func ask(t *testing.T, s *Session) request {
	t.Helper()
	body, ok := s.Ask()
	if !ok {
		t.Fatal("the session has no turn")
	}
	return parse(t, body)
}

// All forms of datasets give the same two sessions. The second line has no output length, so the template's
// stays.
func TestDatasets(t *testing.T) {
	forms := map[string]string{
		"lines":    "{\"prompt\": \"one two\", \"output_tokens\": 7}\n\n{\"prompt\": \"three\"}\n",
		"messages": `{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]}], "output_tokens": 7}` + "\n" + `{"messages": [{"role": "user", "content": "three"}]}`,
		"sharegpt": `[{"id": 1, "conversations": [{"from": "human", "value": "one two"}], "output_tokens": 7}, {"conversations": []}, {"conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "three"}]}]`,
	}
	for name, text := range forms {
		s := open(t, study.Prompts("file="+writeFile(t, "d.jsonl", text)))
		var got []request
		for range 3 { // the third is the first again
			got = append(got, ask(t, s.Session()))
		}
		want := []request{{Model: "m", Prompt: "one two", Most: 7}, {Model: "m", Prompt: "three", Most: 9}, {Model: "m", Prompt: "one two", Most: 7}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A session repeats what was said: the dataset's answers if it has them, else those of the service. The
// template's system message stays first.
func TestSessions(t *testing.T) {
	path := writeFile(t, "d.json", `[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "c"}, {"from": "human", "value": "d"}]}]`)
	s, err := Open(study.Prompts("file="+path+"|osl=4|think=3s"), []byte(`{"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "replaced"}]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	session := s.Session()
	system := message{"system", "be brief"}
	want := [][]message{
		{system, {"user", "a"}},
		{system, {"user", "a"}, {"assistant", "b"}, {"user", "c"}},
		{system, {"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "from the service"}, {"user", "d"}},
	}
	for i, messages := range want {
		r := ask(t, session)
		if diff := cmp.Diff(messages, r.Messages); diff != "" || r.Most != 4 {
			t.Errorf("turn %d: %d tokens, %s", i, r.Most, diff)
		}
		session.Answer("from the service")
		if think, more := session.More(); more != (i < 2) || think != 3*time.Second {
			t.Errorf("turn %d: think %v, more %v", i, think, more)
		}
	}
	if _, ok := session.Ask(); ok || s.Turns() != 3 {
		t.Errorf("a fourth turn: %v; %g turns on average", ok, s.Turns())
	}
}

// Synthetic prompts have the lengths asked for and never repeat, except for the shared prefix.
func TestSynthetic(t *testing.T) {
	s := open(t, "isl=uniform(100, 300)|osl=normal(50, 5)|prefix=0.4")
	seen := map[string]bool{}
	input, output, shortest := 0.0, 0.0, math.MaxInt
	const n = 2000
	for range n {
		r := ask(t, s.Session())
		words := strings.Fields(r.Prompt)
		input, output, shortest = input+float64(len(words))/n, output+float64(r.Most)/n, min(shortest, len(words))
		if len(words) < 100 || len(words) > 300 || seen[r.Prompt] {
			t.Fatalf("a prompt of %d words; seen before: %v", len(words), seen[r.Prompt])
		}
		seen[r.Prompt] = true
	}
	// Three standard errors: 57.7/√2000 = 1.29 and 5/√2000 = 0.11 tokens.
	if math.Abs(input-200) > 3.9 || math.Abs(output-50) > 0.34 {
		t.Errorf("prompts have %.1f words on average, want 200, and ask for %.2f tokens, want 50", input, output)
	}
	a, b := strings.Fields(ask(t, s.Session()).Prompt), strings.Fields(ask(t, s.Session()).Prompt)
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	// A word more may be the same by chance.
	if want := int(0.4 * float64(min(len(a), len(b)))); same < want || same > want+3 {
		t.Errorf("prompts of %d and %d words share %d, want %d", len(a), len(b), same, want)
	}
}

// A service that counts 1.5 tokens for each word and 20 for each request gets prompts of as many fewer words.
func TestCalibrate(t *testing.T) {
	s := open(t, "isl=400|osl=10")
	tokens := func(body []byte) int { return 20 + len(strings.Fields(parse(t, body).Prompt))*3/2 }
	if err := s.Calibrate(func(body []byte) (int, error) { return tokens(body), nil }); err != nil {
		t.Fatal(err)
	}
	body, _ := s.Session().Ask()
	if got := tokens(body); got < 399 || got > 401 {
		t.Errorf("%d tokens, want 400", got)
	}
	for _, tt := range []struct {
		tokens int
		err    error
	}{{0, nil}, {0, os.ErrClosed}} {
		s := open(t, "isl=400|osl=10")
		if err := s.Calibrate(func([]byte) (int, error) { return tt.tokens, tt.err }); err != tt.err {
			t.Errorf("%v, want %v", err, tt.err)
		}
		if n := len(strings.Fields(ask(t, s.Session()).Prompt)); n != 400 {
			t.Errorf("%d words without counts, want 400", n)
		}
	}
}

// Both forms of traces, out of order: requests come in the order of their times.
func TestTraces(t *testing.T) {
	for name, text := range map[string]string{
		"mooncake": `{"timestamp": 3500, "input_length": 1100, "output_length": 3, "hash_ids": [1, 2, 4]}
{"timestamp": 1000, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2]}
{"timestamp": 1500, "input_length": 600, "output_length": 2, "hash_ids": [1, 3]}`,
		"azure":        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5000000,1024,1\n2023-11-16 18:15:47.0000000,600,2\n2023-11-16 18:15:49.0000000,1100,3\n",
		"azure zone":   "ContextTokens,TIMESTAMP,GeneratedTokens\n1024,2024-05-10 00:00:00.009930+00:00,1\n600,2024-05-10 00:00:00.509930+00:00,2\n1100,2024-05-10 00:00:02.509930+00:00,3\n",
		"azure number": "TIMESTAMP,ContextTokens,GeneratedTokens\n0,1024,1\n0.5,600,2\n2.5,1100,3\n",
	} {
		s := open(t, study.Prompts("trace="+writeFile(t, "trace", text)))
		times := s.Times()
		if len(times) != 3 || times[0] != 0 || math.Abs(times[1]-0.5) > 1e-6 || math.Abs(times[2]-2.5) > 1e-6 {
			t.Errorf("%s: times %v", name, times)
		}
		var all [][]string
		var outputs []int
		for range 3 {
			r := ask(t, s.Session())
			all, outputs = append(all, strings.Fields(r.Prompt)), append(outputs, r.Most)
		}
		if len(all[0]) != 1024 || len(all[1]) != 600 || len(all[2]) != 1100 || !slices.Equal(outputs, []int{1, 2, 3}) {
			t.Errorf("%s: %d, %d and %d words, outputs %v", name, len(all[0]), len(all[1]), len(all[2]), outputs)
		}
		shares := name == "mooncake"
		if slices.Equal(all[0][:512], all[1][:512]) != shares || slices.Equal(all[0], all[2][:1024]) != shares || slices.Equal(all[0][512:600], all[1][512:600]) {
			t.Errorf("%s: shared blocks are not those of the trace", name)
		}
		s.Rewind()
		if again := ask(t, s.Session()); again.Most != 1 {
			t.Errorf("%s: after Rewind the first request asks for %d tokens", name, again.Most)
		}
	}
}

func TestFileProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "f is empty",
		"[]":                               "f has no question from a user",
		"{\"prompt\": 3}":                  "f:1: json: cannot unmarshal number",
		"{\"prompt\": \"a\"}\n{\"x\": 1}":  `f:2: no question from a user; want "prompt", "messages" or "conversations"`,
		"{\"messages\": [{\"content\": 1}": "f:1: unexpected end of JSON input",
	} {
		_, err := readDataset(writeFile(t, "f", text), study.PromptSpec{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"input_length": 5, "output_length": 5}`:                 `f:1: no "timestamp"`,
		`{"timestamp": 1, "input_length": 0, "output_length": 5}`: "f:1: 0 input and 5 output tokens; want 1 to 1048576 of each",
		"a,b\n1,2": "f:1: no column TIMESTAMP; a trace is Azure's CSV",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n":                "f has no request",
		"TIMESTAMP,ContextTokens,GeneratedTokens\nx,1,2":           `f:2: "x" is not a time`,
		"TIMESTAMP,ContextTokens,GeneratedTokens\nNaN,1,2":         `f:2: "NaN" is not a time`,
		"TIMESTAMP,ContextTokens,GeneratedTokens\n1,1.5,2":         "f:2: strconv.Atoi",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n1,1,2\n2,1,2,\n": "f: record on line 3: wrong number of fields",
	} {
		_, err := readTrace(writeFile(t, "f", text), 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{"[]": "is not a JSON object", `{"input": 1}`: `has neither "messages" nor "prompt"`, `{"messages": 1}`: "messages: json"} {
		if err := CheckTemplate(writeFile(t, "f", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestTemplate(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": `{"ignore_eos":true,"messages":[],"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0}`,
		"/v1/completions":      `{"ignore_eos":true,"model":"m","prompt":"","stream":true,"stream_options":{"include_usage":true},"temperature":0}`,
	} {
		body := Template("m", path, true, true)
		if string(body) != want || CheckTemplate(writeFile(t, "f", string(body))) != nil {
			t.Errorf("%s: %s", path, body)
		}
	}
	if got := string(Template("m", "/v1/completions", false, false)); got != `{"model":"m","prompt":"","temperature":0}` {
		t.Error(got)
	}
	// The length of an answer goes into the field that the template has, and into min_tokens.
	s, err := Open("isl=3|osl=5", []byte(`{"prompt": "", "max_completion_tokens": 1, "min_tokens": 1}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := s.Session().Ask()
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil || fmt.Sprint(fields["max_completion_tokens"], fields["min_tokens"], fields["max_tokens"]) != "5 5 <nil>" {
		t.Errorf("%s, %v", body, err)
	}
}

// Files of strangers give sessions or an error, and each session has a turn with text.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{
		`{"prompt": "a"}`, `[{"conversations": [{"from": "human", "value": "a"}]}]`, `{"messages": [{"role": "user", "content": [{"text": "a"}]}]}`,
		`{"timestamp": 1, "input_length": 3, "output_length": 5, "hash_ids": [1]}`, "TIMESTAMP,ContextTokens,GeneratedTokens\n1,1,2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := writeFile(t, "f", text)
		if d, err := readDataset(path, study.PromptSpec{}); err == nil {
			for i := range d.sessions {
				if len(d.session(uint64(i), scale{})) == 0 {
					t.Error("a session without a turn")
				}
			}
		}
		if tr, err := readTrace(path, 1); err == nil && (len(tr.calls) == 0 || !slices.IsSorted(tr.times)) {
			t.Errorf("%d calls at %v", len(tr.calls), tr.times)
		}
	})
}
