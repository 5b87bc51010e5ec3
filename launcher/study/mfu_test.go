package study

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

const withModel = `[study]
name = "llm"
[workload]
model = "llama-1m"
epochs = 1
MORE
[data]
kind = "text"
path = "."
[sweep]
framework = ["other"]
workers = [1, 2]
`

// The MFU only evaluates runs, so it changes no identity. It needs the plan's knowledge of
// the model, and is an error if the operations are unknown.
func TestMFUAsked(t *testing.T) {
	read := func(more string) (*Study, error) {
		return Parse("study.toml", []byte(strings.Replace(withModel, "MORE", more, 1)), []Framework{{Name: "other"}})
	}
	points := func(more string) []Planned {
		s, err := read(more)
		if err != nil {
			t.Fatal(err)
		}
		return plan(t, s, DefaultSite()).Points
	}
	plain, asked := points(""), points("mfu = \"palm\"\npeak_tflops = 0.1")
	if plain[0].Point.ID != asked[0].Point.ID {
		t.Errorf("%s and %s", plain[0].Point.ID, asked[0].Point.ID)
	}
	// By hand: h = 128, 2·128·128 + 2·128·64 = 49152 for attention, 3·128·512 = 196608
	// for the feed-forward, 256 for two norms: 246016 a layer, 984064 in 4; 128 for the
	// last norm, 2·256·128 = 65536 for the embeddings: 1049728. Six of each, and
	// 12·4·128·256 = 1572864 for attention over the sequence: 7871232.
	parameters := asked[0].Point.Parameters()
	if got := parameters[measure.FLOPsPerTokenKey]; got != 7871232.0 {
		t.Errorf("%v FLOPs a token", got)
	}
	if _, has := plain[0].Point.Parameters()[measure.FLOPsPerTokenKey]; has {
		t.Error("FLOPs that nobody asked for")
	}
	for more, want := range map[string]string{
		"mfu = \"pam\"":                        "workload.mfu: unknown convention \"pam\"; valid: palm, torchtitan, megatron, nanogpt, hf",
		"peak_tflops = 100":                    "workload.peak_tflops: an MFU is made of it",
		"mfu = \"palm\"\nrecompute = \"full\"": "(\"command\" has recompute)",
	} {
		s, err := read(more)
		if err == nil {
			_, err = s.Plan(DefaultSite())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
}

// The HFU also counts recomputed operations: all layers for our trainers with checkpointing, and
// what the study declares for a command. checkpointing. For a command, it is unknown unless the
// study declares it.
//
// By hand, as above: in the layers are 6·984064 + 1572864 = 7477248 FLOPs, a third of
// which is 2492416; attention's third is 524288.
func TestHFUAsked(t *testing.T) {
	const command = `[study]
name = "llm"
[workload]
model = "llama-1m"
mfu = "palm"
MORE
[command]
run = ["true"WORD]
[sweep]
framework = ["command"]
workers = [1]
`
	ours := strings.Replace(withModel, "MORE", "mfu = \"palm\"\nMORE", 1)
	for _, tt := range []struct {
		text, more, word string
		want             any
	}{
		{ours, "", "", 7871232.0},
		{ours, "checkpointing = true", "", 7871232.0 + 2492416},
		{command, "", "", nil},
		{command, "recompute = \"none\"", "", 7871232.0},
		{command, "recompute = \"selective\"", "", 7871232.0 + 524288},
		{command, "recompute = \"full\"", "", 7871232.0 + 2492416},
		{command, "", ", \"{checkpointing}\"", 7871232.0},
		{command, "checkpointing = true", ", \"{checkpointing}\"", 7871232.0 + 2492416},
		{command, "checkpointing = true\nrecompute = \"selective\"", ", \"{checkpointing}\"", 7871232.0 + 524288},
	} {
		known := Framework{Name: "other"}
		if strings.Contains(tt.text, "[command]") {
			known = Framework{Name: "command", Command: true, Uses: func(Point) []string {
				if tt.word != "" {
					return []string{"workload.checkpointing"}
				}
				return nil
			}}
		}
		s, err := Parse("study.toml", []byte(strings.NewReplacer("MORE", tt.more, "WORD", tt.word).Replace(tt.text)), []Framework{known})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan(t, s, DefaultSite()).Points[0].Point.Parameters()[measure.HardwareFLOPsPerTokenKey]; got != tt.want {
			t.Errorf("%q%s: %v FLOPs a token, want %v", tt.more, tt.word, got, tt.want)
		}
	}
}

// A command's model may use attention windows; our trainers' models do not. By hand: two of
// four layers see 128 of 256 tokens, so attention is 12·128·(2·256 + 2·128) = 1179648
// instead of 1572864 FLOPs.
func TestWindowsOfAModel(t *testing.T) {
	windows := strings.NewReplacer("llama-1m", "llama-1m window=128 global_every=2", "MORE", "mfu = \"palm\"")
	s, err := Parse("study.toml", []byte(windows.Replace(withModel)), []Framework{{Name: "other"}})
	if err == nil {
		_, err = s.Plan(DefaultSite())
	}
	if err == nil || !strings.Contains(err.Error(), `our own trainers have no head_size, window or experts; leave them out, or train it with framework = ["command"]`) {
		t.Error(err)
	}
	text := windows.Replace(`[study]
name = "llm"
[workload]
model = "llama-1m"
MORE
[command]
run = ["true"]
[sweep]
framework = ["command"]
workers = [1]
`)
	if s, err = Parse("study.toml", []byte(text), []Framework{{Name: "command", Command: true, Uses: func(Point) []string { return nil }}}); err != nil {
		t.Fatal(err)
	}
	if got := plan(t, s, DefaultSite()).Points[0].Point.Parameters()[measure.FLOPsPerTokenKey]; got != 7871232.0-1572864+1179648 {
		t.Errorf("%v FLOPs a token", got)
	}
}
