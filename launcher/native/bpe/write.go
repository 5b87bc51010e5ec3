package bpe

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/native/dataset"
)

// Names of the files that Write creates. nanoGPT's trainers read the first two.
const (
	TrainTokens = "train.bin"
	TestTokens  = "val.bin"
	About       = "tokens.json"
)

// about is the content of tokens.json, which describes the two files with token IDs. Each ID
// has Bytes bytes, little-endian.
type about struct {
	Format     int    `json:"format"` // 1
	Vocabulary int    `json:"vocabulary"`
	Bytes      int    `json:"bytes"`     // 2, or 4 if the vocabulary has more than 65,536 tokens
	Tokenizer  string `json:"tokenizer"` // SHA-256 of the tokenizer's file
}

// File describes a file that was written.
type File struct {
	Path          string
	Tokens, Bytes int64
	Text          int64 // size of the text in bytes
}

// Write encodes train.txt and test.txt in the folder from, using a tokenizer.json. It
// creates the folder dir and writes train.bin and val.bin there. It returns an error if
// these files exist.
func Write(dir, from, tokenizer string) ([]File, *Tokenizer, error) {
	t, err := readTokenizer(tokenizer)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.New()
	if err := copyFile(sum, tokenizer); err != nil {
		return nil, nil, err
	}
	a := about{1, t.Vocabulary, 2, hex.EncodeToString(sum.Sum(nil))}
	if t.Vocabulary > 1<<16 {
		a.Bytes = 4
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, nil, err
	}
	for _, name := range []string{TrainTokens, TestTokens, About} {
		if path := filepath.Join(dir, name); exists(path) {
			return nil, nil, fmt.Errorf("%s is already there; give another folder or remove the tokens first", path)
		}
	}
	var files []File
	for _, name := range [][2]string{{dataset.TrainText, TrainTokens}, {dataset.TestText, TestTokens}} {
		f, err := t.write(filepath.Join(dir, name[1]), filepath.Join(from, name[0]), a.Bytes)
		if err != nil {
			for _, f := range files {
				os.Remove(f.Path)
			}
			return nil, nil, err
		}
		files = append(files, f)
	}
	text, err := json.Marshal(a)
	if err == nil {
		err = dataset.Create(filepath.Join(dir, About), func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	return files, t, err
}

// write encodes one text and writes its token IDs with width bytes each.
func (t *Tokenizer) write(path, text string, width int) (File, error) {
	f := File{Path: path}
	in, err := os.Open(text)
	if err != nil {
		return f, err
	}
	defer in.Close()
	err = dataset.Create(path, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<16)
		id := make([]byte, 4)
		err := t.EncodeAll(in, func(ids []uint32) error {
			f.Tokens += int64(len(ids))
			for _, v := range ids {
				binary.LittleEndian.PutUint32(id, v)
				if _, err := out.Write(id[:width]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return out.Flush()
	})
	if err != nil {
		return f, err
	}
	f.Bytes = f.Tokens * int64(width)
	f.Text, err = in.Seek(0, io.SeekCurrent)
	return f, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
