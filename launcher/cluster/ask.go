package cluster

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

//go:embed asks.py
var asks string

// A question is the standard input of asks.py.
type question struct {
	Modules []string `json:"modules"`
	Source  string   `json:"source"`  // text of the script, decoded here
	Folders []string `json:"folders"` // folders that a rank also imports from: the script's, PYTHONPATH
}

type answer struct {
	Missing []string `json:"missing"`
	Syntax  string   `json:"syntax"`
}

// An interpreter is a Python that a check of a study may start.
type interpreter struct {
	name  string                             // as given: a name on the PATH, or a path
	path  string                             // absolute path of the program
	typed bool                               // given on the command line
	site  *study.Site                        // the site file that names it; nil if the study does
	key   func(message string) study.Problem // returns a problem about the key that names it
}

// mayStart returns why an interpreter must not be started to check a study, or "" if it may.
//
// The author of a study chooses what it names and where its files are, and unpacked files belong to the user
// who unpacks them. So neither the location nor the owner of an interpreter proves that it did not come with
// the study. Someone else must have chosen it:
//
//   - the user, through the PATH or on the command line;
//   - root, since a study cannot contain files of root;
//   - the user, through a site file given with --site that contains the interpreter's absolute
//     path without variables. Since the site file may have come with the study too, the path must
//     also be away from both files: not below their folders, nor below a folder of this user that
//     contains these. The home folder and its parents do not count.
//
// In all cases only this user and root may be able to write the file (python.Trusted).
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
	switch err := trust.Interpreter(i.path); {
	case errors.As(err, &foreign):
		return foreign.Path + " " + foreign.Reason
	case err != nil:
		return err.Error()
	}
	return ""
}

// near reports whether a path is below the folder of a file, or below a parent of that folder which unpacking
// an archive could have created: one that belongs to this user and contains neither the home folder nor other
// things of this user.
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

// below reports whether a path is a folder or is below it.
func below(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rest)
}

// onPath reports whether a path is in a folder of the user's PATH.
func onPath(path string) bool {
	return slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		return filepath.IsAbs(dir) && filepath.Clean(dir) == filepath.Dir(path)
	})
}

// ask asks an interpreter which modules it lacks. If it does not answer, none are reported; if it is not
// started, it is reported as unchecked.
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
		if !filepath.IsAbs(dir) { // relative folders mean the folder that the program will start in
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
	text, err := trust.AskPython(c.ctx, i.path, trust.PythonQuestion{Program: asks, Input: input})
	if err != nil || json.Unmarshal(text, &a) != nil {
		a = answer{}
	}
	if errors.Is(err, trust.ErrPythonLate) { // every further script would time out, too
		c.silent[i.path] = true
	}
	c.asked[key] = a
	return a
}

// maxSource is the maximum size in bytes of a script whose imports are checked; a parser needs hundreds of
// times as much memory.
const maxSource = 1 << 20

// declared matches the declaration of an encoding, as Python parses it (PEP 263).
var declared = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// blank matches a first line after which the second line may declare an encoding.
var blank = regexp.MustCompile(`^[ \t\f]*(#.*)?$`)

// A source is the text of a Python script.
type source struct {
	text   string
	wrong  string // why no interpreter can read it
	unread string // why it was not checked
}

// readSource reads a Python script. It decodes the bytes here, because an interpreter would import a codec
// module that the script's first lines name.
func readSource(script string) source {
	text, err := sharedfs.ReadFile(script, maxSource)
	if err != nil {
		return source{unread: err.Error()}
	}
	text, marked := bytes.CutPrefix(text, []byte("\xef\xbb\xbf"))
	encoding := strings.ReplaceAll(strings.ToLower(encodingOf(text)), "_", "-")
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return encoding == name || strings.HasPrefix(encoding, name+"-") })
	}
	switch {
	case encoding == "", is("utf-8", "utf8"):
		if !utf8.Valid(text) {
			return source{wrong: "it is not valid UTF-8, and its first two lines declare no other encoding"}
		}
		return source{text: string(text)}
	case marked:
		return source{wrong: fmt.Sprintf("it begins with the mark of UTF-8 and declares the encoding %q", encoding)}
	case is("latin-1", "latin1", "iso-8859-1", "iso-latin-1", "ascii", "us-ascii"):
		runes := make([]rune, len(text))
		for i, b := range text {
			runes[i] = rune(b)
		}
		return source{text: string(runes)}
	}
	return source{unread: fmt.Sprintf("it declares the encoding %q; UTF-8, Latin-1 and ASCII are read", encoding)}
}

// encodingOf returns the encoding that a script's first two lines declare, or "".
func encodingOf(source []byte) string {
	lines := regexp.MustCompile(`\r\n|\r|\n`).Split(string(source[:min(len(source), 8<<10)]), 3)
	for _, line := range lines[:min(2, len(lines))] {
		if m := declared.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if !blank.MatchString(line) {
			break
		}
	}
	return ""
}
