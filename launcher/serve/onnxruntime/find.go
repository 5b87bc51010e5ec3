package onnxruntime

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/python"
)

// libraryVariable names an environment variable with the library's file, instead of those that
// Find looks for.
const libraryVariable = "SCALEBENCH_ONNXRUNTIME"

// Found is where the library may be.
type Found struct {
	Candidates []string // to be tried in order
	Looked     string   // in words, where was looked for what
}

// where prints the folder of Python's onnxruntime, without importing it.
const where = `import importlib.util
spec = importlib.util.find_spec("onnxruntime")
print(spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else "")`

// Find looks for the library: the file that Variable names, else the one in Python's
// package onnxruntime, if that interpreter has it, else what the dynamic linker finds.
func Find(ctx context.Context, interpreter string, getenv func(string) string) Found {
	if own := getenv(libraryVariable); own != "" {
		return Found{[]string{own}, libraryVariable + " names it"}
	}
	system := []string{"libonnxruntime.so", "libonnxruntime.so.1"}
	text, err := python.Ask(ctx, interpreter, python.Question{Program: where, Imports: true, Limit: time.Minute})
	folder := strings.TrimSpace(string(text))
	advice := fmt.Sprintf("install it with `%s -m pip install --upgrade onnxruntime`, or set %s to its file", interpreter, libraryVariable)
	switch {
	case err != nil:
		return Found{system, fmt.Sprintf("%s does not say where its package onnxruntime is: %v; %s", interpreter, err, advice)}
	case folder == "":
		return Found{system, fmt.Sprintf("%s has no package onnxruntime; %s", interpreter, advice)}
	}
	pattern := filepath.Join(folder, "capi", "libonnxruntime.so*")
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		return Found{system, fmt.Sprintf("%s has the package, but there is no %s; %s", interpreter, pattern, advice)}
	}
	slices.Sort(files)
	return Found{append(files, system...), "as the package of " + interpreter}
}
