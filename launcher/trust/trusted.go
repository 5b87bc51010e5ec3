package trust

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Interpreter returns an error unless only this user or root can have written an interpreter, the files that it
// starts with, and the folders on the way: all links to it, the program on its #! line, and for a virtual
// environment its pyvenv.cfg, the Python named there, and the package folders.
//
// The location of a path proves nothing, since the author of a study chooses it.
func Interpreter(path string) error {
	if err := checkProgram(path); err != nil {
		return err
	}
	for hop, links := path, 0; links < maxLinks; links++ {
		if err := environmentOf(hop); err != nil {
			return err
		}
		target, err := os.Readlink(hop)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Dir(hop) + "/" + target
		}
		dir, name := filepath.Split(target)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return err
		}
		hop = filepath.Join(dir, name)
	}
	return script(path, 4)
}

// checkHome judges the interpreter of this name that a virtual environment's configuration names.
func checkHome(config, text, name string) error {
	for line := range strings.Lines(text) {
		key, home, ok := strings.Cut(line, "=")
		if home = strings.TrimSpace(home); !ok || !strings.EqualFold(strings.TrimSpace(key), "home") {
			continue
		}
		if !filepath.IsAbs(home) {
			return &Error{Path: config, Reason: "names its Python by a relative path", Remedy: "Make the virtual environment anew"}
		}
		if err := checkProgram(filepath.Join(home, name)); err != nil {
			return err
		}
	}
	return nil
}

// environmentOf judges the virtual environment of an interpreter, if it has one.
func environmentOf(path string) error {
	for _, top := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		config := filepath.Join(top, "pyvenv.cfg")
		text, err := sharedfs.ReadFile(config, 1<<16)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := checkProgram(config); err != nil {
			return err
		}
		if err := checkHome(config, string(text), filepath.Base(path)); err != nil {
			return err
		}
		for _, pattern := range []string{"lib*/python*", "lib*/python*/site-packages", "lib*/python*/site-packages/*.pth", "lib*/python*/site-packages/*customize*"} {
			found, err := filepath.Glob(filepath.Join(top, pattern))
			if err != nil {
				return err
			}
			if err := checkProgram(found...); err != nil {
				return err
			}
		}
	}
	return nil
}

// script judges the program that runs a script.
func script(path string, depth int) error {
	f, err := sharedfs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	first := make([]byte, 256)
	n, err := io.ReadFull(f, first)
	if err != nil && n == 0 && err != io.EOF {
		return err
	}
	if !bytes.HasPrefix(first, []byte("#!")) {
		return nil
	}
	line, _, _ := bytes.Cut(first[2:n], []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 || depth == 0 {
		return &Error{Path: path, Reason: "names no program in its first line", Remedy: "Name the interpreter itself"}
	}
	program := words[0]
	if !filepath.IsAbs(program) { // the kernel takes it from the working folder
		return &Error{Path: path, Reason: "names its own interpreter by a relative path", Remedy: "Name the interpreter itself"}
	}
	if err := checkProgram(program); err != nil {
		return err
	}
	if filepath.Base(program) == "env" {
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
				continue
			}
			if program, err = exec.LookPath(word); err != nil {
				return err
			}
			if err := checkProgram(program); err != nil {
				return err
			}
			break
		}
	}
	return script(program, depth-1)
}
