package framework

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
)

//go:embed programs/found.py
var found string

// Installation is what an interpreter has of a framework.
type Installation struct {
	Versions map[string]string `json:"versions"` // by library
	Devices  []string          `json:"devices"`  // in words
}

// importTime is how long an import may take: from a slow file system it is a
// minute.
const importTime = 2 * time.Minute

// Look asks an interpreter ("": python3) on this host for the framework, which
// must have Imports. The error is the last that the interpreter said.
func (f Framework) Look(ctx context.Context, interpreter string) (Installation, error) {
	var i Installation
	ctx, cancel := context.WithTimeout(ctx, importTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, Rank{Python: interpreter}.interpreter(), "-B", "-c", found, strings.Join(f.Imports, " "))
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, time.Second
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return i, fmt.Errorf("%s did not import %s within %v", cmd.Path, strings.Join(f.Imports, " and "), importTime)
	case err != nil:
		said := strings.TrimSpace(complaint.String())
		if said == "" {
			return i, err
		}
		return i, errors.New(said[strings.LastIndexByte(said, '\n')+1:])
	}
	if err := json.Unmarshal(out.Bytes(), &i); err != nil {
		return i, fmt.Errorf("%s answered %.200q: %w", cmd.Path, out.String(), err)
	}
	return i, nil
}

// String is the installation in words.
func (i Installation) String() string {
	var words []string
	for _, library := range slices.Sorted(maps.Keys(i.Versions)) {
		words = append(words, library+" "+i.Versions[library])
	}
	return strings.Join(words, ", ") + "; devices: " + strings.Join(i.Devices, ", ")
}

// Install is the command that would install what the framework needs on
// Debian 12 or its like; "" where it needs nothing. Other families than
// Debian's own PyTorch have a lock file, and the command prints the interpreter
// to name in the site file.
func (f Framework) Install() string {
	switch {
	case f.Imports == nil:
		return ""
	case f.Family == "":
		return "apt-get install python3-torch python3-numpy"
	}
	return "launcher/framework/locks/environment.sh " + f.Family + " in scalebench's source"
}
