package trust

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// DefaultPython is the interpreter if none is named.
const DefaultPython = "python3"

// A Question is a program for an interpreter, with its arguments and input.
type PythonQuestion struct {
	Program   string   // source text
	Arguments []string // sys.argv[1:] of the program
	Input     []byte   // its standard input
	// Imports lets the program import packages from the folders of PYTHONPATH, which often contain the measured
	// program. Leave it unset for a program that must not run code from there.
	Imports bool
	Limit   time.Duration // 0 means 30 s; starting Python from a slow file system takes seconds
	Most    int           // maximum size of the answer in bytes; 0 means 1 MiB
}

// ErrPythonLate is wrapped by errors about an interpreter that was still running at the limit.
var ErrPythonLate = errors.New("gave no answer in time")

//go:embed search.py
var search string

// AskPython runs a program in an interpreter and returns its output. No other function starts an interpreter to ask
// it something.
//
// The interpreter imports nothing from the working directory, from a script's folder, or because of
// environment variables: it starts with -I in the root folder, without PYTHON* variables. If a question needs
// imports, packages come from where a rank would find them: the interpreter's packages, the user's, and those
// folders of PYTHONPATH that no other user can write to.
//
// interpreter is a name on the PATH or a path; ""
// means Default. The error ends with the last line of standard error.
func AskPython(ctx context.Context, interpreter string, q PythonQuestion) ([]byte, error) {
	path, err := find(interpreter)
	if err != nil {
		return nil, err
	}
	if err := Named(path); err != nil {
		return nil, err
	}
	given := map[string]any{"path": []string{}, "user": os.Getenv("PYTHONNOUSERSITE") == "", "base": os.Getenv("PYTHONUSERBASE")}
	if q.Imports {
		given["path"] = searchPath(path)
	}
	settings, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(q.Limit, 30*time.Second)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, path, slices.Concat([]string{"-I", "-B", "-c", search + "\n" + q.Program, string(settings)}, q.Arguments)...)
	out, complaint := &capped{most: cmp.Or(q.Most, 1<<20)}, &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(q.Input), out, complaint
	cmd.Dir, cmd.Env = "/", environment()
	cmd.WaitDelay = time.Second
	// The interpreter may be a wrapper, whose child processes must end with it. Pdeathsig refers to the death
	// of the thread, so lock it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	switch {
	case out.full:
		return nil, fmt.Errorf("%s answered with more than %d bytes", path, out.most)
	case err == nil:
		return out.text, nil
	case limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%s %w: its limit is %v", path, ErrPythonLate, limit)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", path, context.Cause(ctx))
	}
	if said := strings.TrimSpace(string(complaint.text)); said != "" {
		err = errors.New(said[strings.LastIndexByte(said, '\n')+1:])
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// find returns the absolute path of an interpreter; "" means Default. A name is looked up on the PATH, without
// its relative folders.
func find(interpreter string) (string, error) {
	path, err := exec.LookPath(cmp.Or(interpreter, DefaultPython))
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// searchPath returns the folders of PYTHONPATH that an interpreter may import from: those
// with an absolute path that only this user, root or the interpreter's owner can
// write to.
func searchPath(interpreter string) []string {
	owner := -1
	if info, err := os.Stat(interpreter); err == nil {
		owner = int(info.Sys().(*syscall.Stat_t).Uid)
	}
	folders := []string{}
	for _, dir := range filepath.SplitList(os.Getenv("PYTHONPATH")) {
		info, err := os.Stat(dir)
		if err != nil || !filepath.IsAbs(dir) || info.Mode().Perm()&0o002 != 0 {
			continue
		}
		if uid := int(info.Sys().(*syscall.Stat_t).Uid); uid == 0 || uid == os.Geteuid() || uid == owner {
			folders = append(folders, dir)
		}
	}
	return folders
}

// environment returns this process's environment without the variables that Python reads.
func environment() []string {
	list := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PYTHON") || strings.HasPrefix(v, "__PYVENV_LAUNCHER__=") || strings.HasPrefix(v, "PWD=") || strings.HasPrefix(v, "OLDPWD=")
	})
	return append(list, "PWD=/")
}

// capped keeps up to a number of bytes and refuses more.
type capped struct {
	text []byte
	most int
	full bool
}

func (c *capped) Write(text []byte) (int, error) {
	if len(c.text)+len(text) > c.most {
		c.full = true
		return 0, errors.New("too much")
	}
	c.text = append(c.text, text...)
	return len(text), nil
}

// tail keeps the last bytes.
type tail struct{ text []byte }

func (t *tail) Write(text []byte) (int, error) {
	const most = 8 << 10
	t.text = append(t.text, text[max(0, len(text)-most):]...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(text), nil
}
