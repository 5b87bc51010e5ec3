// Package bpe converts text to token IDs with the tokenizers of language models such as GPT-2 and
// Llama 3. These use byte-level byte-pair encoding. The package reads them from a tokenizer.json of
// Hugging Face's tokenizers. The method is Sennrich, Haddow & Birch, "Neural Machine Translation of
// Rare Words with Subword Units", ACL 2016, over bytes as in Radford et al., "Language Models are
// Unsupervised Multitask Learners", 2019.
package bpe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

const (
	largestFile = 256 << 20 // bytes; Llama 3's has 17 MB
	largestID   = 1<<24 - 1
	// slowest is the time limit for finding the next word. It is needed because the patterns of a
	// file are matched by backtracking.
	slowest = time.Minute
)

// gpt2 is the pattern with which a ByteLevel step splits a text into words. Tokens are only merged
// within a word.
const gpt2 = `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// Tokenizer holds a vocabulary, and the rules that split a text into its tokens.
type Tokenizer struct {
	// Vocabulary is the largest token ID plus 1.
	Vocabulary int

	bytes  [256]uint32
	merges map[pair]merge
	whole  map[string]uint32 // tokens that are whole words and need no merges; nil: none
	words  []*regexp2.Regexp // patterns that split a text into words; each is applied to the parts that the previous pattern left
	added  []additions       // special tokens that a text may contain by name
	known  map[string][]uint32
}

type pair struct{ left, right uint32 }

type merge struct{ rank, id uint32 }

// additions are special tokens that are searched for before a text is split into words.
type additions struct {
	names *regexp.Regexp
	ids   map[string]uint32
}

// file holds the parts of a tokenizer.json that encoding needs.
type file struct {
	Added []struct {
		ID         *int64 `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		Left       bool   `json:"lstrip"`
		Right      bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer   *step `json:"normalizer"`
	PreTokenizer *step `json:"pre_tokenizer"`
	Model        struct {
		Type         string           `json:"type"`
		Dropout      *float64         `json:"dropout"`
		Prefix       string           `json:"continuing_subword_prefix"`
		Suffix       string           `json:"end_of_word_suffix"`
		IgnoreMerges bool             `json:"ignore_merges"`
		Vocabulary   map[string]int64 `json:"vocab"`
		Merges       []two            `json:"merges"`
	} `json:"model"`
}

// step is one step of splitting a text into words.
type step struct {
	Type        string `json:"type"`
	PrefixSpace *bool  `json:"add_prefix_space"`
	UseRegex    *bool  `json:"use_regex"`
	Steps       []step `json:"pretokenizers"`
	Behavior    string `json:"behavior"`
	Invert      bool   `json:"invert"`
	Pattern     struct {
		Regex *string `json:"Regex"`
	} `json:"pattern"`
}

// two is the pair of tokens of a merge. It is written "a b" in files until 2024, and ["a", "b"]
// since then.
type two [2]string

func (t *two) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		var list []string
		if err := json.Unmarshal(text, &list); err != nil || len(list) != 2 {
			return fmt.Errorf("%.60s is no merge of two tokens", text)
		}
		*t = two(list)
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	left, right, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("%.60q is no merge of two tokens", s)
	}
	*t = two{left, right}
	return nil
}

// readTokenizer reads a tokenizer.json. An error names the file, and which feature in it is not
// supported.
func readTokenizer(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > largestFile {
		return nil, fmt.Errorf("%s has more than %d MiB; a tokenizer.json has some", path, largestFile>>20)
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// parse reads the text of a tokenizer.json.
func parse(text []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	m := f.Model
	switch {
	case m.Type != "BPE":
		return nil, fmt.Errorf("model.type is %q; only \"BPE\" is read", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, fmt.Errorf("model.dropout is %g, which encodes a text differently each time; set it to null", *m.Dropout)
	case m.Prefix != "" || m.Suffix != "":
		return nil, fmt.Errorf("continuing_subword_prefix and end_of_word_suffix are not supported: the merges have to be of bytes, as GPT-2's and Llama 3's are")
	case f.Normalizer != nil:
		return nil, fmt.Errorf("normalizer %q is not supported; the text has to be encoded as it is", f.Normalizer.Type)
	}
	t := &Tokenizer{merges: make(map[pair]merge, len(m.Merges)), known: map[string][]uint32{}}
	if err := t.cut(f.PreTokenizer); err != nil {
		return nil, err
	}
	for name, id := range m.Vocabulary {
		if err := t.count(name, id); err != nil {
			return nil, err
		}
	}
	ids := func(name string) (uint32, bool) {
		id, ok := m.Vocabulary[name]
		return uint32(id), ok
	}
	letters := letters()
	for b, letter := range letters {
		id, ok := ids(string(letter))
		if !ok {
			return nil, fmt.Errorf("the vocabulary has no token for the byte 0x%02x (%q); a byte-level one has all 256", b, letter)
		}
		t.bytes[b] = id
	}
	for i, two := range m.Merges {
		left, ok1 := ids(two[0])
		right, ok2 := ids(two[1])
		id, ok3 := ids(two[0] + two[1])
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("merge %d, of %.40q and %.40q: the vocabulary lacks one of them or what they make", i+1, two[0], two[1])
		}
		t.merges[pair{left, right}] = merge{uint32(i), id}
	}
	if m.IgnoreMerges {
		t.whole = wholeWords(m.Vocabulary, letters)
	}
	return t, t.add(f)
}

// wholeWords returns the tokens by their bytes. It leaves out names with letters that represent
// no byte.
func wholeWords(vocabulary map[string]int64, letters [256]rune) map[string]uint32 {
	of := map[rune]byte{}
	for b, letter := range letters {
		of[letter] = byte(b)
	}
	whole := make(map[string]uint32, len(vocabulary))
names:
	for name, id := range vocabulary {
		word := make([]byte, 0, len(name))
		for _, letter := range name {
			b, ok := of[letter]
			if !ok {
				continue names
			}
			word = append(word, b)
		}
		whole[string(word)] = uint32(id)
	}
	return whole
}

// count adds a token ID to the vocabulary.
func (t *Tokenizer) count(name string, id int64) error {
	if id < 0 || id > largestID {
		return fmt.Errorf("the id of %.40q is %d; want 0 to %d", name, id, largestID)
	}
	t.Vocabulary = max(t.Vocabulary, int(id)+1)
	return nil
}

// add collects the special tokens that a text may contain by name, in the order in which they are
// searched for.
func (t *Tokenizer) add(f file) error {
	for _, normalized := range []bool{false, true} {
		of := additions{ids: map[string]uint32{}}
		var names []string
		for i, a := range f.Added {
			switch {
			case a.Normalized != normalized:
				continue
			case a.Content == "" || a.ID == nil:
				return fmt.Errorf("added_tokens, number %d, has no content or no id", i+1)
			case a.SingleWord || a.Left || a.Right:
				return fmt.Errorf("the added token %.40q has single_word, lstrip or rstrip, which are not supported", a.Content)
			}
			if err := t.count(a.Content, *a.ID); err != nil {
				return err
			}
			of.ids[a.Content] = uint32(*a.ID)
			names = append(names, regexp.QuoteMeta(a.Content))
		}
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		var err error
		if of.names, err = regexp.Compile(strings.Join(names, "|")); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
		of.names.Longest()
		t.added = append(t.added, of)
	}
	return nil
}

// cut reads the steps that split a text into words. The last step converts words to bytes.
func (t *Tokenizer) cut(s *step) error {
	if s == nil {
		return fmt.Errorf("pre_tokenizer is missing; a byte-level tokenizer has ByteLevel")
	}
	steps := []step{*s}
	if s.Type == "Sequence" {
		steps = s.Steps
	}
	pattern := func(p string) error {
		r, err := regexp2.Compile(p, regexp2.None)
		if err != nil {
			return fmt.Errorf("pre_tokenizer: the pattern %.80q: %w", p, err)
		}
		r.MatchTimeout = slowest
		t.words = append(t.words, r)
		return nil
	}
	for i, s := range steps {
		last := i == len(steps)-1
		switch {
		case s.Type == "ByteLevel" && last:
			if s.PrefixSpace == nil || *s.PrefixSpace { // the default is true
				return fmt.Errorf("pre_tokenizer: add_prefix_space puts a space in front of the text, which is not supported; set it to false")
			}
			if s.UseRegex == nil || *s.UseRegex {
				return pattern(gpt2)
			}
			return nil
		case s.Type == "Split" && !last:
			if s.Behavior != "Isolated" || s.Invert || s.Pattern.Regex == nil {
				return fmt.Errorf("pre_tokenizer: a Split has to have a Regex, behavior \"Isolated\" and no invert, as Llama 3's")
			}
			if err := pattern(*s.Pattern.Regex); err != nil {
				return err
			}
		default:
			return fmt.Errorf("pre_tokenizer: %q in place %d of %d is not supported; it takes Splits, if any, and ByteLevel as the last", s.Type, i+1, len(steps))
		}
	}
	return fmt.Errorf("pre_tokenizer: a Sequence of nothing")
}

// letters returns the character with which byte-level vocabularies represent each byte. A visible
// Latin-1 character represents itself; the other bytes are represented by the characters from
// U+0100 on.
func letters() (list [256]rune) {
	next := rune(256)
	for b := range list {
		r := rune(b)
		if seen := r > ' ' && r < 0x7f || r > 0xa0 && r != 0xad; !seen {
			r = next
			next++
		}
		list[b] = r
	}
	return list
}

// valid returns an error with the position of the first byte that is not UTF-8.
func valid(text string) error {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return &Error{i}
			}
		}
	}
	return nil
}
