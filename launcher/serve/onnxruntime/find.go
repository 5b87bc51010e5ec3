package onnxruntime

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/trust"
)

// libraryVariable names the environment variable with the path of the library. It replaces the search.
const libraryVariable = "SCALEBENCH_ONNXRUNTIME"

// Found is the result of a search for the library.
type Found struct {
	Candidates []string // paths to try in order
	Looked     string   // how they were found, for error messages
}

// where prints the folder of Python's package onnxruntime, without importing it.
const where = `import importlib.util
spec = importlib.util.find_spec("onnxruntime")
print(spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else "")`

// Find returns where the library may be: the file named by libraryVariable, or else the one in the
// interpreter's package onnxruntime, followed by the names that the dynamic linker searches for.
func Find(ctx context.Context, interpreter string, getenv func(string) string) Found {
	if own := getenv(libraryVariable); own != "" {
		return Found{[]string{own}, libraryVariable + " names it"}
	}
	system := []string{"libonnxruntime.so", "libonnxruntime.so.1"}
	text, err := trust.AskPython(ctx, interpreter, trust.PythonQuestion{Program: where, Imports: true, Limit: time.Minute})
	folder := strings.TrimSpace(string(text))
	advice := fmt.Sprintf("install it with `%s -m pip install --upgrade onnxruntime`, or set %s to its file", interpreter, libraryVariable)
	switch {
	case err != nil:
		return Found{system, fmt.Sprintf("%s cannot locate its package onnxruntime: %v; %s", interpreter, err, advice)}
	case folder == "":
		return Found{system, fmt.Sprintf("%s has no package onnxruntime; %s", interpreter, advice)}
	}
	pattern := filepath.Join(folder, "capi", "libonnxruntime.so*")
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		return Found{system, fmt.Sprintf("%s has the package onnxruntime, but %s does not exist; %s", interpreter, pattern, advice)}
	}
	slices.Sort(files)
	return Found{append(files, system...), "as the package of " + interpreter}
}
