package redact

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// keySize is the length of a key in bytes.
const keySize = 32

// maxKeyFile is larger than any valid key file, in bytes.
const maxKeyFile = 4096

// KeyFile returns the path of the key next to a database.
func KeyFile(database string) string { return database + ".key" }

// NewKey returns a random key.
func NewKey() Key {
	key := make(Key, keySize)
	if _, err := rand.Read(key); err != nil {
		panic(err) // crypto/rand does not fail on Linux
	}
	return key
}

// ReadKey reads the key in a file that only its owner can read. If the file does not exist, it
// creates a key; two programs that do so at the same time get the same key.
func ReadKey(path string) (Key, error) {
	key, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	return SaveKey(path, NewKey())
}

// LoadKey reads the key in a file; the error is fs.ErrNotExist if the file does not exist.
func LoadKey(path string) (Key, error) {
	text, err := sharedfs.ReadFile(path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("the key for digests of secrets: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	switch {
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s, the key for digests of secrets, can be read by others (mode %04o); `chmod 600` it, or remove it to get a new one, with which runs with secrets count as new", path, info.Mode().Perm())
	case err != nil || len(key) != keySize:
		return nil, fmt.Errorf("%s is not a key for digests of secrets (%d hexadecimal digits); remove it to get a new one", path, 2*keySize)
	}
	return key, nil
}

// SaveKey writes a key to a file unless the file exists, and returns the key that is then in the
// file.
func SaveKey(path string, key Key) (Key, error) {
	if err := saveKey(path, key); err != nil {
		return nil, fmt.Errorf("cannot keep the key for digests of secrets: %w", err)
	}
	return LoadKey(path)
}

// saveKey writes the key to a temporary file and links it to path. That fails if another program
// was faster.
func saveKey(path string, key Key) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, missing := os.Lstat(path); missing == nil {
		return err
	}
	return os.Rename(f.Name(), path) // this file system has no hard links
}
