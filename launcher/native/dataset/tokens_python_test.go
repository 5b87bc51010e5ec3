//go:build python

package dataset

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
)

// tokenizersPython returns an interpreter that has the package tokenizers.
func tokenizersPython(t *testing.T) string {
	t.Helper()
	return pythontest.Environment(t, "../../framework/locks", "tokens")
}

// corpus writes a folder with both texts.
func corpus(t *testing.T, train, test string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{TrainText: train, TestText: test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readIDs(t *testing.T, path string) []uint32 {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ids := []uint32{}
	for pair := range slices.Chunk(content, 2) {
		ids = append(ids, uint32(binary.LittleEndian.Uint16(pair)))
	}
	return ids
}

// The IDs of single texts come from the library by itself (testdata/tokens/make.py). A text of
// several pieces has the IDs of its lines, one line after the other, because no token spans these lines.
func TestWriteTokens(t *testing.T) {
	python := tokenizersPython(t)
	var want struct{ Texts []string }
	var vocabularies map[string]json.RawMessage
	content, err := os.ReadFile("testdata/tokens/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &vocabularies); err != nil {
		t.Fatal(err)
	}
	if len(want.Texts)%2 == 1 { // a corpus has two texts
		want.Texts = append(want.Texts, want.Texts[0])
	}
	const line = "How many GPUs should this training use?"
	const lines = 60_000 // more than two pieces
	for _, name := range []string{"gpt2.json", "llama3.json"} {
		var expected struct {
			Vocabulary int
			IDs        [][]uint32
		}
		if err := json.Unmarshal(vocabularies[name], &expected); err != nil {
			t.Fatal(err)
		}
		expected.IDs = append(expected.IDs, expected.IDs[0])
		tokenizer := filepath.Join("testdata/tokens", name)
		for i := 0; i+1 < len(want.Texts); i += 2 {
			from, dir := corpus(t, want.Texts[i], want.Texts[i+1]), filepath.Join(t.TempDir(), "tokens")
			files, vocabulary, err := WriteTokens(t.Context(), dir, from, tokenizer, python)
			if err != nil {
				t.Fatalf("%s, text %d: %v", name, i, err)
			}
			if vocabulary != expected.Vocabulary {
				t.Errorf("%s: a vocabulary of %d, want %d", name, vocabulary, expected.Vocabulary)
			}
			for j, f := range files {
				ids := expected.IDs[i+j]
				wantFile := TokenFile{filepath.Join(dir, []string{TrainTokens, TestTokens}[j]), int64(len(ids)), 2 * int64(len(ids)), int64(len(want.Texts[i+j]))}
				if d := cmp.Diff(wantFile, f); d != "" {
					t.Errorf("%s, text %d (-want +got):\n%s", name, i+j, d)
				}
				if got := readIDs(t, f.Path); !slices.Equal(got, ids) {
					t.Errorf("%s: %.80q: IDs %v, want %v", name, want.Texts[i+j], got, ids)
				}
			}
		}
		once := slices.Index(want.Texts, line)
		files, _, err := WriteTokens(t.Context(), t.TempDir(), corpus(t, strings.Repeat(line+"\n", lines), "\n"), tokenizer, python)
		if err != nil {
			t.Fatal(err)
		}
		each := append(slices.Clone(expected.IDs[once]), readIDs(t, files[1].Path)...)
		if got := readIDs(t, files[0].Path); !slices.Equal(got, slices.Repeat(each, lines)) {
			t.Errorf("%s: %d IDs of %d lines differ from those of one line", name, len(got), lines)
		}
	}
}

// A refused input leaves no files, and the error says where the input is wrong.
func TestWriteTokensRefuses(t *testing.T) {
	python := tokenizersPython(t)
	good, err := os.ReadFile("testdata/tokens/gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	dropout := strings.Replace(string(good), `"dropout":null`, `"dropout":0.1`, 1)
	for name, c := range map[string]struct{ tokenizer, text, python, want string }{
		"not UTF-8":      {string(good), "abc\xff", python, "train.txt: byte 3 of the text is not UTF-8"},
		"far not UTF-8":  {string(good), strings.Repeat("a line of text\n", 100_000) + "\xff", python, "train.txt: byte 1500000 of the text is not UTF-8"},
		"no tokenizer":   {`{"version"`, "abc", python, "tokenizer.json: not a tokenizer.json"},
		"random":         {dropout, "abc", python, "model.dropout is 0.1, which encodes a text differently each time"},
		"no package":     {string(good), "abc", "/usr/bin/python3", "/usr/bin/python3: it has no module tokenizers; pip install tokenizers"},
		"no interpreter": {string(good), "abc", "/nowhere/python", "/nowhere/python"},
	} {
		t.Run(name, func(t *testing.T) {
			tokenizer, dir := filepath.Join(t.TempDir(), "tokenizer.json"), t.TempDir()
			if err := os.WriteFile(tokenizer, []byte(c.tokenizer), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := WriteTokens(t.Context(), dir, corpus(t, c.text, "abc"), tokenizer, c.python); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// Truncation and padding, which a tokenizer.json may contain for a model's input, do not apply.
func TestWriteTokensOfWholeText(t *testing.T) {
	good, err := os.ReadFile("testdata/tokens/gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	short := strings.NewReplacer(`"truncation":null`, `"truncation":{"direction":"Right","max_length":3,"strategy":"LongestFirst","stride":0}`,
		`"padding":null`, `"padding":{"strategy":{"Fixed":8},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"<|endoftext|>"}`).Replace(string(good))
	if len(short) < len(good)+100 {
		t.Fatal("the tokenizer has no keys truncation and padding")
	}
	tokenizer := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(tokenizer, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	files, _, err := WriteTokens(t.Context(), t.TempDir(), corpus(t, "ABCDE", "A"), tokenizer, tokenizersPython(t))
	if err != nil {
		t.Fatal(err)
	}
	// No two of these letters are merged in this vocabulary, where A is 33.
	if got, want := readIDs(t, files[0].Path), []uint32{33, 34, 35, 36, 37}; !slices.Equal(got, want) {
		t.Errorf("IDs %v, want %v", got, want)
	}
	if got, want := readIDs(t, files[1].Path), []uint32{33}; !slices.Equal(got, want) {
		t.Errorf("IDs %v, want %v", got, want)
	}
}
