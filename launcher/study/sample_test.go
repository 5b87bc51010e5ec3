package study

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Declaring the sample changes no identity, sets the known tokens per sample (llama-1m has
// sequences of 256), and must agree with what our own trainers count.
func TestSample(t *testing.T) {
	const command = `[study]
name = "llm"
[workload]
MORE
[command]
run = ["true"]
[sweep]
framework = ["command"]
workers = [1]
`
	const images = `[study]
name = "images"
[workload]
model = "cnn"
epochs = 1
MORE
[data]
kind = "cifar10"
path = "."
[sweep]
framework = ["other"]
workers = [1]
`
	for _, tt := range []struct {
		text, more string
		tokens     any
		wrong      string
	}{
		{withModel, "", nil, ""},
		{withModel, `sample = "sequence"`, int64(256), ""},
		{withModel, "sample = \"sequence\"\nsequence = 64", int64(64), ""},
		{withModel, `sample = "token"`, nil, "our own trainers count sequences of language models"},
		{withModel, `sample = "image"`, nil, "\"llama-1m\" is a language model, and an image is no sample of it"},
		{images, `sample = "image"`, nil, ""},
		{images, `sample = "token"`, nil, "model = \"cnn\" is trained on images"},
		{command, `sample = "token"`, int64(1), ""},
		{command, `sample = "sequence"`, nil, ""},
		{command, "sample = \"sequence\"\nsequence = 2048", int64(2048), ""},
		{command, "sample = \"image\"\nsequence = 2048", nil, "an image has no tokens"},
		{command, `sample = "row"`, nil, "workload.sample: "},
	} {
		known := []Framework{{Name: "other"}, {Name: "command", Command: true, Uses: func(Point) []string { return nil }}}
		s, err := Parse("study.toml", []byte(strings.Replace(tt.text, "MORE", tt.more, 1)), known)
		var p *Plan
		if err == nil {
			p, err = s.Plan(DefaultSite())
		}
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%q: %v, want %s", tt.more, err, tt.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.more, err)
			continue
		}
		if got := p.Points[0].Point.Parameters()[measure.SampleTokensKey]; got != tt.tokens {
			t.Errorf("%q: %v tokens of a sample, want %v", tt.more, got, tt.tokens)
		}
		if tt.more == `sample = "image"` || tt.more == `sample = "token"` {
			plain, err := Parse("study.toml", []byte(strings.Replace(tt.text, "MORE", "", 1)), known)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := plan(t, plain, DefaultSite()).Points[0].Point.ID, p.Points[0].Point.ID; a != b {
				t.Errorf("%s and %s", a, b)
			}
		}
	}
}
