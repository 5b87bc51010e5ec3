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

	"github.com/scalebench/scalebench/metrics/regular"
)

// keySize is the length of a key in bytes.
const keySize = 32

// maxKeyFile is more than the file of a key ever holds, in bytes.
const maxKeyFile = 4096

// ReadKey reads the key kept in a file that its owner alone can read, and makes
// one where there is no file yet. Of two programs that make it at once both get
// the same.
func ReadKey(path string) (Key, error) {
	text, err := regular.ReadFile(path, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(path); err != nil {
			return nil, fmt.Errorf("cannot make the key for digests of secrets: %w", err)
		}
		text, err = regular.ReadFile(path, maxKeyFile)
	}
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
		return nil, fmt.Errorf("%s, the key for digests of secrets, can be read by others (mode %04o); `chmod 600` it, or remove it to get a new one, with which the runs recorded so far compare as changed", path, info.Mode().Perm())
	case err != nil || len(key) != keySize:
		return nil, fmt.Errorf("%s is not a key for digests of secrets (%d hexadecimal digits); remove it to get a new one", path, 2*keySize)
	}
	return key, nil
}

// makeKey writes a new key under another name and links it to its own, which
// fails where another program was first.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
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
	return os.Rename(f.Name(), path) // no hard links on this file system
}
