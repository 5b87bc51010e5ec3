package cluster

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/scalebench/scalebench/launcher/python"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
)

//go:embed asks.py
var asks string

// question is the standard input of asks.py.
type question struct {
	Modules []string `json:"modules"`
	Source  string   `json:"source"`  // of the script, decoded here
	Folders []string `json:"folders"` // where a rank also imports from: the script's, PYTHONPATH
}

type answer struct {
	Missing []string `json:"missing"`
	Syntax  string   `json:"syntax"`
}

// interpreter is a Python that a look at a study could ask.
type interpreter struct {
	name  string                             // as given: a name on the PATH or a path
	path  string                             // the program that the name leads to, absolute
	typed bool                               // it is on the command line
	site  *study.Site                        // the site file that names it; nil: the study does
	key   func(message string) study.Problem // a problem with the key that names it
}

// mayStart returns why an interpreter is not started for a look at a study; "" if it is.
//
// The author of a study chooses what it names and where its files lie, and files that
// somebody unpacks belong to that user. So neither where an interpreter lies nor whose it
// is shows that it did not come with the study. Somebody else must have chosen it:
//
//   - the user, by the PATH or on the command line;
//   - root, whose files a study cannot bring;
//   - the user, by a site file given with --site that has its absolute path without
//     variables. Since a site file may have come along, too, the path must also lead away
//     from both files: not below their folders, nor below a folder of this user above
//     these. The home folder and those above it do not count.
//
// In any case nobody but this user and root may have written it (python.Trusted).
func (c *checker) mayStart(i interpreter) string {
	switch {
	case !strings.ContainsRune(i.name, '/'), i.typed, onPath(i.path), trust.System(i.path):
	case i.site == nil:
		return "the study names it"
	case !c.given.Site:
		return "the study names the site file that names it"
	case !bytes.Contains(i.site.Source(), []byte(i.path)):
		return "the site file does not have its absolute path, without variables"
	default:
		for _, file := range []string{c.study.File, i.site.File} {
			if near(i.path, file) {
				return "it may have come with " + file + ", near which it lies"
			}
		}
	}
	var foreign *trust.Error
	switch err := python.Trusted(i.path); {
	case errors.As(err, &foreign):
		return foreign.Path + " " + foreign.Reason
	case err != nil:
		return err.Error()
	}
	return ""
}

// near reports whether a path lies below the folder of a file, or below a folder above
// that which belongs to this user and contains neither the home folder nor this user's
// other things: one that what was unpacked could have made.
func near(path, file string) bool {
	file, err := filepath.Abs(file)
	if err != nil {
		return true
	}
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		paths = append(paths, real)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		paths = append(paths, filepath.Join(dir, filepath.Base(path)))
	}
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	folder := filepath.Dir(file)
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return true
	}
	for _, folder := range []string{folder, real} {
		for first := true; ; first, folder = false, filepath.Dir(folder) {
			info, err := os.Stat(folder)
			mine := err == nil && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
			if !first && (!mine || below(home, folder)) || folder == "/" {
				break
			}
			if slices.ContainsFunc(paths, func(p string) bool { return below(p, folder) }) {
				return true
			}
		}
	}
	return false
}

// below reports whether a path is a folder or lies below it.
func below(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rest)
}

// onPath reports whether a path lies in a folder of the user's PATH.
func onPath(path string) bool {
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		return filepath.IsAbs(dir) && filepath.Clean(dir) == filepath.Dir(path)
	})
}

// ask asks an interpreter what it lacks. One that does not answer lacks nothing that is
// known, and one that is not started is reported as unchecked.
func (c *checker) ask(i interpreter, q question) (a answer) {
	path, err := filepath.Abs(i.path)
	if err != nil || c.silent[path] {
		return a
	}
	i.path = path
	of := fmt.Sprint(i.name, "\x00", i.path, i.typed, i.site != nil)
	why, known := c.refused[of]
	if !known {
		why = c.mayStart(i)
		c.refused[of] = why
	}
	if why != "" {
		c.leaveOut(i.key(fmt.Sprintf("not checked: the packages of %s. It was not started: %s. To have it asked, put its folder on your PATH; `scalebench doctor` starts it", i.path, why)))
		return a
	}
	if q.Modules == nil {
		q.Modules = []string{}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PYTHONPATH")) {
		if !filepath.IsAbs(dir) { // it means the folder that the program will start in
			return a
		}
		q.Folders = append(q.Folders, dir)
	}
	input, err := json.Marshal(q)
	if err != nil {
		return a
	}
	key := i.path + "\x00" + string(input)
	if a, known := c.asked[key]; known {
		return a
	}
	text, err := python.Ask(c.ctx, i.path, python.Question{Program: asks, Input: input})
	if err != nil || json.Unmarshal(text, &a) != nil {
		a = answer{}
	}
	if errors.Is(err, python.ErrLate) { // it would take as long for every script
		c.silent[i.path] = true
	}
	c.asked[key] = a
	return a
}
