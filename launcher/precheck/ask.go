package precheck

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
)

//go:embed asks.py
var asks string

// askTime is how long an interpreter may take to answer; from a slow file system
// its own start takes seconds.
const askTime = 30 * time.Second

type answer struct {
	Missing []string `json:"missing"`
	Syntax  string   `json:"syntax"`
}

// mayStart reports whether an interpreter may be started for a look at a study,
// which may come from anywhere. A name that this user's PATH leads to may be, and
// a path that the study or the site file gives where only this user or root can
// have put something: not where it came with the study.
func (c *checker) mayStart(name, path string, site *study.Site) bool {
	if !strings.ContainsRune(name, '/') {
		return true
	}
	if !filepath.IsAbs(name) || trust.Check(path) != nil {
		return false
	}
	own := []string{path}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		own = append(own, filepath.Join(real, filepath.Base(path)))
	}
	for _, file := range []string{c.study.File, site.File} {
		if file == "" {
			continue
		}
		around, err := cameWith(file)
		if err != nil {
			return false
		}
		for _, p := range own {
			if below, err := filepath.Rel(around, p); err != nil || filepath.IsLocal(below) {
				return false
			}
		}
	}
	return true
}

// cameWith is the folder of all that came to this host together with a file, as
// far as one can tell: the working tree of its repository; outside of one its
// folder and what lies beside that, unless that is the home folder or belongs to
// somebody else, as /tmp does.
func cameWith(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(path)
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			break
		}
	}
	above := filepath.Dir(folder)
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if below, err := filepath.Rel(above, home); err == nil && filepath.IsLocal(below) || above == "/" {
		return folder, nil
	}
	if info, err := os.Stat(above); err != nil || info.Mode()&fs.ModeSticky != 0 || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return folder, nil
	}
	return above, nil
}

// most is how much an interpreter may answer, in bytes.
const most = 1 << 20

// capped takes that much and no more.
type capped []byte

func (c *capped) Write(text []byte) (int, error) {
	if len(*c)+len(text) > most {
		return 0, io.ErrShortWrite
	}
	*c = append(*c, text...)
	return len(text), nil
}

// ask asks an interpreter, by the name that it was given and the path of the
// program, what it lacks; one that does not answer lacks nothing that is known.
// It starts in the root folder: Python imports from the one that it starts in.
func (c *checker) ask(name, interpreter string, modules []string, script string, site *study.Site) (a answer) {
	if !c.mayStart(name, interpreter, site) || c.silent[interpreter] {
		return a
	}
	for _, dir := range filepath.SplitList(os.Getenv("PYTHONPATH")) {
		if !filepath.IsAbs(dir) { // it means the folder that the program will start in
			return a
		}
	}
	if modules == nil {
		modules = []string{}
	}
	names, err := json.Marshal(modules)
	if err != nil {
		return a
	}
	key := interpreter + "\x00" + string(names) + "\x00" + script
	if known, ok := c.asked[key]; ok {
		return known
	}
	ctx, cancel := context.WithTimeout(c.ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, "-B", "-c", asks, string(names), script)
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	var out capped
	cmd.Stdout = &out
	// Pdeathsig is the thread's death, hence the lock: a signal ends this command
	// at once, and it waits for nobody.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if cmd.Run() != nil || json.Unmarshal(out, &a) != nil {
		a = answer{}
	}
	if ctx.Err() != nil { // it would take as long for every script
		c.silent[interpreter] = true
	}
	c.asked[key] = a
	return a
}
