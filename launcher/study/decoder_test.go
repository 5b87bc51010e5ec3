package study

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Published parameter counts: GPT-2's from its checkpoint, Llama's from the checkpoints in
// its model cards. The small ones are counted by hand: llama-100k has 2 layers of
// 64·(64+32+32+64) + 3·64·128 + 2·64, one norm of 64, and twice 256·64.
func TestDecoderParameters(t *testing.T) {
	for name, want := range map[string]float64{
		"gpt2": 124_439_808, "gpt2-xl": 1_557_611_200,
		"llama3.2-1b": 1_235_814_400, "llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496,
		"llama-100k": 2*(64*192+3*64*128+128) + 64 + 2*256*64,
	} {
		a, ok, err := Decoder(name)
		if n := a.Parameters(true); !ok || err != nil || n != want {
			t.Errorf("%s has %.0f parameters, want %.0f; %t, %v", name, n, want, ok, err)
		}
	}
	for _, name := range DecoderNames() {
		a, ok, err := Decoder(name)
		if !ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if n := a.Parameters(true); strings.HasSuffix(name, "-100k") && (n < 0.9e5 || n > 1.3e5) || strings.HasSuffix(name, "-1m") && (n < 0.9e6 || n > 1.2e6) || strings.HasSuffix(name, "-10m") && (n < 0.9e7 || n > 1.2e7) {
			t.Errorf("%s has %.0f parameters", name, n)
		}
	}
}

// Words after a model's name change its sizes; invalid ones are errors.
func TestDecoderSizes(t *testing.T) {
	a, ok, err := Decoder("llama-1m layers=8 vocabulary=512")
	if !ok || err != nil || a.Layers != 8 || a.Vocabulary != 512 || a.Hidden != 128 {
		t.Errorf("%+v, %t, %v", a, ok, err)
	}
	a, ok, err = Decoder("gpt-100k positions=64")
	if !ok || err != nil || a.Positions != 64 || a.Sequence != 64 || a.KVHeads != 4 {
		t.Errorf("%+v, %t, %v", a, ok, err)
	}
	for model, says := range map[string]string{
		"llama-1m layer=2":               "did you mean layers?",
		"llama-1m layers=two":            "want a whole number",
		"llama-1m layers":                "want a whole number",
		"llama-1m layers=2 layers=3":     "given twice",
		"llama-1m layers=0":              "layers = 0",
		"llama-1m heads=3":               "no multiple of heads",
		"llama-1m kv_heads=3":            "no multiple of kv_heads",
		"llama-1m kv_heads=0":            "no multiple of kv_heads",
		"llama-1m hidden=12 heads=4":     "has to be even",
		"llama-1m vocabulary=255":        "at least 256",
		"gpt-1m kv_heads=2":              "is no size of gpt-1m",
		"llama-1m positions=2":           "is no size of llama-1m",
		"llama-1m layers=99999999999999": "layers",
	} {
		if _, ok, err := Decoder(model); !ok || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %t, %v; want %q", model, ok, err, says)
		}
	}
	for _, model := range []string{"", "cnn", "llama", "my_model.py:build", "layers=2"} {
		if _, ok, err := Decoder(model); ok || err != nil {
			t.Errorf("%q: %t, %v; it is none", model, ok, err)
		}
	}
}

const decoderStudy = `[study]
name = "s"
[workload]
model = "llama-100k"
batch = 8
max_steps = 10
[data]
kind = "text"
path = "."
[sweep]
framework = ["other"]
workers = [1, 2]
`

// A language model's point has its sizes, and how its step is computed is part of its
// identity. Image trainings are unchanged.
func TestDecoderPoints(t *testing.T) {
	points := func(text string) []Planned {
		t.Helper()
		s, err := Parse("s.toml", []byte(text), []Framework{{Name: "other", Command: strings.Contains(text, "[command]")}})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := s.Plan(DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		return plan.Points
	}
	plain := points(decoderStudy)
	if a := plain[0].Point.Architecture; a.Layers != 2 || a.Sequence != 128 {
		t.Errorf("%+v", a)
	}
	longer := points(strings.Replace(decoderStudy, "batch = 8", "batch = 8\nsequence = 256\nmicro_batch = 2", 1))
	if longer[0].Point.ID == plain[0].Point.ID || longer[0].Point.Architecture.Sequence != 256 {
		t.Errorf("%s, %s: %+v", plain[0].Point.ID, longer[0].Point.ID, longer[0].Point.Architecture)
	}
	swept := points(strings.Replace(decoderStudy, "[sweep]", "[sweep]\ncheckpointing = [false, true]", 1))
	if len(swept) != 4 || swept[0].Point.Parameters()["workload.checkpointing"] != false {
		t.Errorf("%d points, %v", len(swept), swept[0].Point.Parameters())
	}
	images := points(strings.NewReplacer("llama-100k", "cnn", `"text"`, `"cifar10"`).Replace(decoderStudy))
	for _, key := range yielding {
		if v, ok := images[0].Point.Parameters()["workload."+key]; ok {
			t.Errorf("a training of images has %s = %v", key, v)
		}
	}
	// In a study with an older parameter of that name, the name means the parameter.
	own := points(`[study]
name = "s"
[command]
run = "train {zero}"
extract = ["time"]
[parameters]
zero = 1
[sweep]
framework = ["other"]
zero = [1, 2]
workers = [1]
`)
	if len(own) != 2 || own[1].Point.Own["zero"].Value != int64(2) {
		t.Errorf("%d points, %+v", len(own), own)
	}
}

// Inconsistent keys about a language model's step are reported by key.
func TestDecoderProblems(t *testing.T) {
	said := func(text string) error {
		s, err := Parse("s.toml", []byte(text), []Framework{{Name: "other"}})
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		return err
	}
	for change, says := range map[string]string{
		"micro_batch = 3":        "workload.micro_batch: a worker's batch of 8 is no multiple of 3",
		"shard = 2":              "workload.shard: 1 worker cannot be divided into groups of 2",
		"zero = 4":               "workload.zero: want 0 to 3",
		"sequence = -1":          "workload.sequence: want 0 to",
		"augment = false":        "would be ignored: the data of \"text\" is not augmented",
		"batch_norm = \"sync\"":  "would be ignored: model = \"llama-100k\" has no batch normalisation",
		"learning_rates = [0.1]": "unknown key",
	} {
		err := said(strings.Replace(decoderStudy, "batch = 8", "batch = 8\n"+change, 1))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", change, err, says)
		}
	}
	for replace, says := range map[string]string{
		"llama-100k layers=x": "workload.model: \"layers=x\": want a whole number",
		"gpt-100k":            "workload.sequence: \"gpt-100k\" has positions for 128 tokens, and the sequence is of 256",
		"my_model.py:build":   "",
		"cnn":                 "would be ignored",
	} {
		text := strings.Replace(strings.Replace(decoderStudy, "llama-100k", replace, 1), "batch = 8", "batch = 8\nsequence = 256\nmicro_batch = 2", 1)
		err := said(text)
		if says == "" {
			if err != nil && strings.Contains(err.Error(), "sequence") {
				t.Errorf("%s: %v", replace, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", replace, err, says)
		}
	}
}

// The documentation's table lists every model with its sizes.
func TestDecodersInDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/frameworks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range decoders {
		heads := fmt.Sprint(d.Heads)
		if d.KVHeads < d.Heads {
			heads += fmt.Sprint(" / ", d.KVHeads)
		}
		n := fmt.Sprintf("%.0f", d.Parameters(true))
		for i := len(n) - 3; i > 0; i -= 3 {
			n = n[:i] + "," + n[i:]
		}
		row := fmt.Sprintf("| `%s` | %d | %d | %s | %d | %d | %d | %s |", d.name, d.Layers, d.Hidden, heads, d.FFN, d.Vocabulary, d.Sequence, n)
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/frameworks.md has no line %s", row)
		}
	}
}
