package study

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Function is a user's Python function, written "my_model.py:build": the file, relative to
// the study file, and the function's name.
type Function struct{ File, Name string }

var functionForm = regexp.MustCompile(`^(.+\.py):([A-Za-z_][A-Za-z0-9_]*)$`)

// ParseFunction parses "FILE.py:NAME"; ok is false for any other text, such as the name of
// a built-in model.
func ParseFunction(text string) (f Function, ok bool) {
	m := functionForm.FindStringSubmatch(text)
	if m == nil {
		return Function{}, false
	}
	return Function{File: m[1], Name: m[2]}, true
}

// dataKind checks data.kind.
func dataKind(v any) string {
	if _, own := ParseFunction(v.(string)); own {
		return ""
	}
	if wrong := among("cifar10", "synthetic", "text", "tokens")(v); wrong != "" {
		return wrong + ", or a function of your own, like \"my_data.py:load\""
	}
	return ""
}

// takes reports whether the point uses a Python function of the user for its model or
// data, which receives the study's own parameters.
func (s *Study) takes(p *Point) bool {
	_, model := ParseFunction(p.Workload.Train.Model)
	_, data := ParseFunction(p.Data.Kind)
	return model || data
}

// ownFiles returns the user's files that a point needs: a map from their names in the run
// folder to their absolute paths. wrong has a message for each file that is not available,
// by TOML path.
func (s *Study) ownFiles(p *Point) (files, wrong map[string]string) {
	wrong = map[string]string{}
	for _, key := range []struct{ path, value string }{{"workload.model", p.Workload.Train.Model}, {"data.kind", p.Data.Kind}} {
		f, own := ParseFunction(key.value)
		if !own {
			continue
		}
		path := f.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Command.Folder, path)
		}
		name := filepath.Base(path)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			wrong[key.path] = fmt.Sprintf("%s cannot be read (%v); relative paths start from the study file's folder", f.File, err)
		case !info.Mode().IsRegular():
			wrong[key.path] = f.File + " is not a file"
		case files[name] != "" && files[name] != path:
			wrong[key.path] = fmt.Sprintf("%s and %s have the same file name and go into the same run folder; rename one", files[name], path)
		}
		if files == nil {
			files = map[string]string{}
		}
		files[name] = path
	}
	return files, wrong
}
