//go:build python

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// `data tokens` says how many tokens each text has. The tokenizer merges none of A to E.
func TestDataTokens(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"train.txt": "ABCDE", "test.txt": "ABC"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output := filepath.Join(folder, "tokens")
	printed, _ := inProcess(t, filepath.Join(folder, "x.db"), exitDone, "data", "tokens", "--python", environmentPython(t, "tokens"),
		"--tokenizer", "../../launcher/native/dataset/testdata/tokens/gpt2.json", folder, output)
	for _, want := range []string{"train.bin       5   10 B                   1.00", "val.bin         3    6 B                   1.00", "The vocabulary has 702 tokens: a model for it has vocabulary=702 or more"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
	about, err := os.ReadFile(filepath.Join(output, "tokens.json"))
	if err != nil || !strings.HasPrefix(string(about), `{"format":1,"vocabulary":702,"bytes":2,"tokenizer":"`) {
		t.Errorf("%s, %v", about, err)
	}
}
