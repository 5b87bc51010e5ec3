package dataset

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/scalebench/scalebench/launcher/trust"
)

// Names of the files that WriteTokens creates. nanoGPT's trainers read the first two.
const (
	TrainTokens = "train.bin"
	TestTokens  = "val.bin"
	AboutTokens = "tokens.json"
)

// about is the content of tokens.json, which describes the two files with token IDs. Each ID
// has Bytes bytes, little-endian.
type about struct {
	Format     int    `json:"format"` // 1
	Vocabulary int    `json:"vocabulary"`
	Bytes      int    `json:"bytes"`     // 2, or 4 if the vocabulary has more than 65,536 tokens
	Tokenizer  string `json:"tokenizer"` // SHA-256 of the tokenizer's file
}

// A TokenFile describes a file that was written.
type TokenFile struct {
	Path   string `json:"-"`
	Tokens int64  `json:"tokens"`
	Bytes  int64  `json:"-"`
	Text   int64  `json:"text"` // size of the text in bytes
}

//go:embed tokens.py
var encoder string

// encodeLimit bounds the encoding of both texts.
const encodeLimit = 24 * time.Hour

// WriteTokens encodes train.txt and test.txt in the folder from with a tokenizer.json, by the
// package tokenizers of a Python interpreter; "" means trust.DefaultPython. It creates the folder dir
// with train.bin, val.bin and tokens.json, and returns the first two and the size of the vocabulary.
// It returns an error if one of the three exists.
func WriteTokens(ctx context.Context, dir, from, tokenizer, python string) ([]TokenFile, int, error) {
	for _, name := range []string{TrainTokens, TestTokens, AboutTokens} {
		if path := filepath.Join(dir, name); exists(path) {
			return nil, 0, fmt.Errorf("%s is already there; give another folder or remove the tokens first", path)
		}
	}
	sum, err := hashFile(tokenizer)
	if err != nil {
		return nil, 0, err
	}
	names := [][2]string{{TrainText, TrainTokens}, {TestText, TestTokens}}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(from, name[0])); err != nil {
			return nil, 0, err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, 0, err
	}
	scratch, err := os.MkdirTemp(dir, ".tokens-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(scratch)
	arguments := []string{tokenizer}
	for _, name := range names {
		arguments = append(arguments, filepath.Join(from, name[0]), filepath.Join(scratch, name[1]))
	}
	// The interpreter starts in the root folder.
	for i, path := range arguments {
		if arguments[i], err = filepath.Abs(path); err != nil {
			return nil, 0, err
		}
	}
	answer, err := trust.AskPython(ctx, python, trust.PythonQuestion{Program: encoder, Arguments: arguments, Imports: true, Limit: encodeLimit})
	if err != nil {
		return nil, 0, err
	}
	var said struct {
		Vocabulary int         `json:"vocabulary"`
		Bytes      int         `json:"bytes"`
		Files      []TokenFile `json:"files"`
	}
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Files) != len(names) {
		return nil, 0, fmt.Errorf("the encoder answered %.200q", answer)
	}
	for i, name := range names {
		f := &said.Files[i]
		f.Path, f.Bytes = filepath.Join(dir, name[1]), f.Tokens*int64(said.Bytes)
		if err := os.Rename(filepath.Join(scratch, name[1]), f.Path); err != nil {
			return nil, 0, err
		}
	}
	text, err := json.Marshal(about{1, said.Vocabulary, said.Bytes, sum})
	if err == nil {
		err = create(filepath.Join(dir, AboutTokens), func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	return said.Files, said.Vocabulary, err
}

// hashFile returns a file's SHA-256 in hexadecimal.
func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
