package bpe

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Expected ids come from Hugging Face's library (testdata/make.py).
func TestAsTokenizersDoes(t *testing.T) {
	var want struct {
		Texts        []string
		GPT2, Llama3 encoded `json:"-"`
	}
	text, err := os.ReadFile("testdata/expected.json")
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	var files map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &files)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpt2.json", "llama3.json"} {
		var expected encoded
		if err := json.Unmarshal(files[name], &expected); err != nil {
			t.Fatal(err)
		}
		tokenizer, err := readTokenizer(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if tokenizer.Vocabulary != expected.Vocabulary {
			t.Errorf("%s: a vocabulary of %d, want %d", name, tokenizer.Vocabulary, expected.Vocabulary)
		}
		for i, text := range want.Texts {
			ids, err := tokenizer.Encode(text)
			if err != nil {
				t.Errorf("%s: %q: %v", name, text, err)
			}
			if d := cmp.Diff(expected.IDs[i], ids); d != "" && len(ids)+len(expected.IDs[i]) > 0 {
				t.Errorf("%s: %.80q (-tokenizers +here):\n%s", name, text, d)
			}
		}
	}
}

type encoded struct {
	Vocabulary int
	IDs        [][]uint32
}

// Encoding a long text in pieces gives the same ids as encoding it at once. Bytes that are not
// UTF-8 are an error with their position.
func TestEncodeAll(t *testing.T) {
	whole, err := os.ReadFile("testdata/make.py")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat(string(whole)+"\n\n  \n", 1+piece/len(whole)) + strings.Repeat("f(x)\n\n\nclass A:\n  x\n\n", piece/10)
	for _, name := range []string{"gpt2.json", "llama3.json"} {
		tokenizer, err := readTokenizer(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := tokenizer.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint32
		pieces := 0
		err = tokenizer.EncodeAll(strings.NewReader(text), func(ids []uint32) error {
			pieces++
			got = append(got, ids...)
			return nil
		})
		if err != nil || pieces < 2 || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %d pieces, %d ids, want %d", name, err, pieces, len(got), len(want))
		}
		err = tokenizer.EncodeAll(strings.NewReader(text+"a\xffb"), func([]uint32) error { return nil })
		if wrong, ok := errors.AsType[*Error](err); !ok || wrong.At != len(text)+1 {
			t.Errorf("%s: %v, want byte %d", name, err, len(text)+1)
		}
	}
}

func TestRefused(t *testing.T) {
	good, err := os.ReadFile("testdata/gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	for change, says := range map[[2]string]string{
		{`"type":"BPE"`, `"type":"Unigram"`}:                             `model.type is "Unigram"`,
		{`"dropout":null`, `"dropout":0.1`}:                              "model.dropout is 0.1",
		{`"normalizer":null`, `"normalizer":{"type":"NFC"}`}:             `normalizer "NFC" is not supported`,
		{`"add_prefix_space":false`, `"add_prefix_space":true`}:          "add_prefix_space",
		{`"type":"ByteLevel"`, `"type":"Whitespace"`}:                    `"Whitespace" in place 1 of 1`,
		{`"end_of_word_suffix":null`, `"end_of_word_suffix":"</w>"`}:     "end_of_word_suffix",
		{`"rstrip":false`, `"rstrip":true`}:                              "rstrip",
		{`"A":33`, `"A":-33`}:                                            `the id of "A" is -33`,
		{`"A":33`, `"A":33000000000`}:                                    "want 0 to",
		{`"A":33,`, ``}:                                                  "no token for the byte 0x41",
		{`["Ġ","t"]`, `["Ġ","tttt"]`}:                                    "merge 1, of \"Ġ\" and \"tttt\"",
		{`["Ġ","t"]`, `["Ġ","t","t"]`}:                                   "no merge of two tokens",
		{`["Ġ","t"]`, `"Ġt"`}:                                            "no merge of two tokens",
		{`{"version"`, `["version"`}:                                     "not a tokenizer.json",
		{`"pre_tokenizer":{`, `"pre_tokenizer":null,"post_processor":{`}: "pre_tokenizer is missing",
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s is not in the file", change[0])
		}
		if _, err := parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", change[1], err, says)
		}
	}
	old := strings.Replace(string(good), `["Ġ","t"]`, `"Ġ t"`, 1) // as until 2024
	if _, err := parse([]byte(old)); err != nil {
		t.Error(err)
	}
}

// Whatever a file says, it is read or refused; what is read encodes to ids of its
// vocabulary.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"gpt2.json", "llama3.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 1))
		for range 20 {
			damaged := slices.Clone(text)
			at := random.IntN(len(damaged))
			damaged[at] = byte(random.IntN(256))
			f.Add(damaged)
			f.Add(text[:at])
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tokenizer, err := parse(text)
		if err != nil {
			return
		}
		ids, err := tokenizer.Encode("It's 2026, and\n\n training <|start|> tokens.")
		if err == nil && len(ids) == 0 {
			t.Error("no ids")
		}
		for _, id := range ids {
			if int(id) >= tokenizer.Vocabulary {
				t.Errorf("id %d of a vocabulary of %d", id, tokenizer.Vocabulary)
			}
		}
	})
}
