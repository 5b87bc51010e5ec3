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

// TextOptions describe a synthetic text. Equal options make equal bytes.
//
// The text consists of sentences such as "the quiet ada meets boris and ada is quiet. ", whose four
// variable words are drawn uniformly. A model must learn letters, words and grammar, and must look
// back for the end of each sentence. A sentence has 8·8·6·8 possibilities, or 8.03 nats, and 45.58
// bytes on average. So the loss cannot stay below Entropy.
type TextOptions struct {
	TrainBytes int // number of bytes to predict; the file has one more at the start. 0: DefaultTrainBytes
	TestBytes  int // 0: DefaultTestBytes
	Seed       int64
}

// Defaults: 512 and 64 sequences of 128 bytes.
const (
	DefaultTrainBytes = 1 << 16
	DefaultTestBytes  = 1 << 13
	maxTextBytes      = 1 << 30 // protects from typing errors
)

// Entropy is the entropy of the text, in nats per byte.
const Entropy = 0.1762

// Names of the two files that the trainers of language models read.
const (
	TrainText = "train.txt"
	TestText  = "test.txt"
)

var (
	kinds = []string{"quiet", "loud", "green", "early", "late", "brave", "small", "odd"}
	names = []string{"ada", "boris", "chen", "dana", "emre", "fatou", "goran", "hana"}
	verbs = []string{"meets", "follows", "forgets", "paints", "hears", "finds"}
)

// WriteText creates the folder dir and writes both files. It returns an error if one of them
// exists.
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
		err := create(filepath.Join(dir, f.name), func(w io.Writer) error { return writeText(w, random, f.bytes+1) })
		if err != nil {
			return err
		}
	}
	return nil
}

// writeText writes this number of bytes of sentences; the last sentence may be incomplete.
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
