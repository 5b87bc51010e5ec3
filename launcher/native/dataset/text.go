package dataset

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// TextOptions says which text to make. Equal options make equal bytes.
//
// The text is sentences of one form, "the quiet ada meets boris and ada is quiet. ",
// whose four free words are drawn alike: a model has to learn letters, words and
// grammar, and to look back for the end of each sentence. What is left to chance is
// ln(8·8·6·8) = 8.03 nats for a sentence of 45.58 bytes on average, so that no loss
// in the long run is below Entropy.
type TextOptions struct {
	TrainBytes int // that are labels; the file has one more in front. 0: DefaultTrainBytes
	TestBytes  int // 0: DefaultTestBytes
	Seed       int64
}

// Defaults: 512 and 64 sequences of 128 bytes.
const (
	DefaultTrainBytes = 1 << 16
	DefaultTestBytes  = 1 << 13
	maxTextBytes      = 1 << 30 // a slip of the keyboard fills no disk
)

// Entropy of the text, in nats a byte.
const Entropy = 0.1762

// Names of the two files, as the trainers of language models read them.
const (
	TrainText = "train.txt"
	TestText  = "test.txt"
)

var (
	kinds = []string{"quiet", "loud", "green", "early", "late", "brave", "small", "odd"}
	names = []string{"ada", "boris", "chen", "dana", "emre", "fatou", "goran", "hana"}
	verbs = []string{"meets", "follows", "forgets", "paints", "hears", "finds"}
)

// WriteText writes both files to the folder dir, which it makes. It refuses to write
// over one that is already there.
func WriteText(dir string, o TextOptions) error {
	files := []struct {
		name   string
		bytes  int
		usual  int
		stream uint64
	}{{TrainText, o.TrainBytes, DefaultTrainBytes, trainStream}, {TestText, o.TestBytes, DefaultTestBytes, testStream}}
	for _, f := range files {
		if f.bytes < 0 || f.bytes > maxTextBytes {
			return fmt.Errorf("a %s of %d bytes; want 1 to %d, or 0 for %d", f.name, f.bytes, maxTextBytes, f.usual)
		}
		if path := filepath.Join(dir, f.name); exists(path) {
			return fmt.Errorf("%s is already there; give another folder or remove the text first", path)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, f := range files {
		if f.bytes == 0 {
			f.bytes = f.usual
		}
		random := rand.New(rand.NewPCG(uint64(o.Seed), f.stream))
		err := Create(filepath.Join(dir, f.name), func(w io.Writer) error { return writeText(w, random, f.bytes+1) })
		if err != nil {
			return err
		}
	}
	return nil
}

// writeText writes so many bytes of sentences; the last is cut off.
func writeText(w io.Writer, random *rand.Rand, bytes int) error {
	buffered := bufio.NewWriter(w)
	word := func(list []string) string { return list[random.IntN(len(list))] }
	for bytes > 0 {
		kind, name, verb, other := word(kinds), word(names), word(verbs), word(names)
		sentence := strings.Join([]string{"the", kind, name, verb, other, "and", name, "is", kind + ". "}, " ")
		n, err := buffered.WriteString(sentence[:min(len(sentence), bytes)])
		if err != nil {
			return err
		}
		bytes -= n
	}
	return buffered.Flush()
}
