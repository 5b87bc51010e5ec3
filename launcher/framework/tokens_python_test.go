//go:build python

package framework

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeTokens writes the bytes of a point's text as token ids of the given width into a new folder.
func writeTokens(t *testing.T, text string, width int, about string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{}
	for from, to := range map[string]string{"train.txt": "train.bin", "test.txt": "val.bin"} {
		letters, err := os.ReadFile(filepath.Join(text, from))
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]byte, width*len(letters))
		for i, letter := range letters {
			binary.LittleEndian.PutUint16(ids[width*i:], uint16(letter))
		}
		files[to] = ids
	}
	if about != "" {
		files["tokens.json"] = []byte(about)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Ids of two and of four bytes train the same as the bytes that they encode. Unknown ids and invalid files
// are refused.
func TestTokens(t *testing.T) {
	p := decoderPoint(t, "llama-100k", 1)
	text := p.Data.Path
	train := func(kind, dir string) (losses []float64, failure string) {
		t.Helper()
		p.Data.Kind, p.Data.Path = kind, dir
		events, _ := start(t, p, 1).wait()
		for _, e := range events[0] {
			switch {
			case e.Evaluation != nil:
				losses = append(losses, *e.Evaluation.Loss)
			case e.Error != nil:
				failure += e.Error.Message
			}
		}
		return losses, failure
	}
	want, failure := train("text", text)
	if failure != "" || len(want) < 2 || want[0] == want[len(want)-1] {
		t.Fatalf("a text: losses %v, %s", want, failure)
	}
	for width, about := range map[int]string{2: "", 4: `{"format":1,"vocabulary":256,"bytes":4,"tokenizer":""}`} {
		got, failure := train("tokens", writeTokens(t, text, width, about))
		if failure != "" || len(got) != len(want) {
			t.Fatalf("ids of %d bytes: losses %v, %s", width, got, failure)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("ids of %d bytes: loss %d is %g, the text's %g", width, i, got[i], want[i])
			}
		}
	}

	strange := writeTokens(t, text, 2, "")
	ids, err := os.ReadFile(filepath.Join(strange, "train.bin"))
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint16(ids[2*777:], 300)
	if err := os.WriteFile(filepath.Join(strange, "train.bin"), ids, 0o600); err != nil {
		t.Fatal(err)
	}
	cut := writeTokens(t, text, 4, `{"format":1,"vocabulary":256,"bytes":4,"tokenizer":""}`)
	if err := os.Truncate(filepath.Join(cut, "val.bin"), 1021); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{
		strange: "train.bin has the token 300, and the model knows those below 256",
		cut:     "val.bin has 1021 bytes, which are no whole ids of 4",
		writeTokens(t, text, 2, `{"format":1,"vocabulary":50257,"bytes":2}`): "of a vocabulary of 50257, and the model knows 256",
		writeTokens(t, text, 2, `{"format":1,"vocabulary":256,"bytes":3}`):   "tokens.json cannot be read",
		writeTokens(t, text, 2, `[]`):                                        "tokens.json cannot be read",
	} {
		if _, failure := train("tokens", dir); !strings.Contains(failure, says) {
			t.Errorf("%q, want %q", failure, says)
		}
	}

	// NumPy's arrays, which jax takes, from the same files.
	dir := writeTokens(t, text, 4, "")
	cmd := exec.Command(debianPython, "-B", "-c", `
import sys, batches
with open(sys.argv[1], "rb") as f:
    want = list(f.read())
ids = batches.tokens(batches.ids_of(sys.argv[2], len(want), 4))
assert ids.tolist() == want and ids.dtype == "int32", ids`, filepath.Join(text, "train.txt"), filepath.Join(dir, "train.bin"))
	cmd.Env = append(os.Environ(), "PYTHONPATH=programs")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
