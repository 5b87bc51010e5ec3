package framework

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/trust"
)

//go:embed programs/found.py
var found string

// An Installation describes the parts of a framework that an interpreter has.
type Installation struct {
	Versions map[string]string `json:"versions"` // by library
	Devices  []string          `json:"devices"`  // descriptions for users
}

// importTime limits an import, which can take a minute from a slow file system.
const importTime = 2 * time.Minute

// Look asks an interpreter on this host ("" means python3) for the framework, which must have Imports. The
// error ends with the interpreter's last line.
func (f Framework) Look(ctx context.Context, interpreter string) (Installation, error) {
	var i Installation
	text, err := trust.AskPython(ctx, interpreter, trust.PythonQuestion{Program: found, Arguments: []string{strings.Join(f.Imports, " ")}, Imports: true, Limit: importTime})
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(text, &i); err != nil {
		return i, fmt.Errorf("%s answered %.200q: %w", cmp.Or(interpreter, trust.DefaultPython), text, err)
	}
	return i, nil
}

// String describes the installation.
func (i Installation) String() string {
	var words []string
	for _, library := range slices.Sorted(maps.Keys(i.Versions)) {
		words = append(words, library+" "+i.Versions[library])
	}
	return strings.Join(words, ", ") + "; devices: " + strings.Join(i.Devices, ", ")
}

// Install returns the command that installs what the framework needs on Debian 12 or similar, or "" if it needs
// nothing. Families other than Debian's PyTorch have a lock file, and the command prints the interpreter to
// name in the site file.
func (f Framework) Install() string {
	switch {
	case f.Imports == nil:
		return ""
	case f.Language:
		return "pip install " + f.versions[0]
	case f.Family == "":
		return "apt-get install python3-torch python3-numpy"
	}
	return "launcher/framework/locks/environment.sh " + f.Family + " in scalebench's source"
}
