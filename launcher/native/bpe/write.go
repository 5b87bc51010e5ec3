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

// Names of the files of tokens, as nanoGPT's trainers read the two first.
const (
	TrainTokens = "train.bin"
	TestTokens  = "val.bin"
	About       = "tokens.json"
)

// about is the content of tokens.json, which describes the two files: ids of Bytes bytes each,
// little endian.
type about struct {
	Format     int    `json:"format"` // 1
	Vocabulary int    `json:"vocabulary"`
	Bytes      int    `json:"bytes"`     // 2, or 4 where the vocabulary has more than 65,536
	Tokenizer  string `json:"tokenizer"` // the SHA-256 of its file
}

// File is one that was written.
type File struct {
	Path          string
	Tokens, Bytes int64
	Text          int64 // bytes of the text
}

// Write encodes train.txt and test.txt of the folder from as train.bin and val.bin of
// the folder dir, which it makes, by a tokenizer.json. It refuses to write over files
// that are there.
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

// write encodes one file, in ids of so many bytes.
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
