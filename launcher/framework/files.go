package framework

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// programLimit is the maximum size of a program file in bytes; larger files count as data. A served model may
// be larger.
const (
	programLimit = 4 << 20
	modelLimit   = 2 << 30
)

// NamedFiles returns the user's files, by name, that a run uses in place: those in or below the
// study's folder that a command's arguments name, a service's model, and its request files.
func NamedFiles(f Framework, s Rank) map[string]string {
	paths := s.Point.RequestFiles()
	if model := s.Point.ModelFile(); model != "" {
		paths[filepath.Base(model)] = model
	}
	if !f.UserProgram {
		return paths
	}
	s.Point.Resources.Launch = "" // the command itself, not who starts it
	for _, argument := range f.Command(s) {
		path := argument
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.Directory(s), path)
		}
		if name, err := filepath.Rel(s.Point.Command.Folder, path); err == nil && filepath.IsLocal(name) {
			paths[name] = path
		}
	}
	return paths
}

// Digest returns the SHA-256 of a program or model file in hexadecimal; "" if it is neither or
// cannot be read.
func Digest(path string) string {
	limit := int64(programLimit)
	if isONNX(path) || slices.Contains([]string{".safetensors", ".npy", ".gguf"}, filepath.Ext(path)) {
		limit = modelLimit
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return ""
	}
	file, err := sharedfs.Open(path)
	if err != nil {
		return "" // the program will report it if it needs the file
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
