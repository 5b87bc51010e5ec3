package launcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// This file finds out the git commit that a folder is at.
//
// A repository's configuration can name programs that git runs, for a question
// as harmless as `git status`: core.fsmonitor, filters, hooks, diff drivers,
// aliases, pagers, whatever it includes, and that of each submodule. A study may
// come from anywhere, so git never sees that configuration: it is shown a
// folder of ours, whose links lead to the repository's objects, references and
// index, with a configuration of our own. Neither the user's and the system's
// configuration nor git's environment variables have a say.

// patience is how long git may take: a repository of many files, on a slow file
// system, is not worth more.
const patience = 5 * time.Second

// Revision is the commit that a folder is at, with "-dirty" where tracked files
// differ from it; "" when the folder is in no repository, there is no git, or
// it cannot tell. A file that a filter would rewrite (git-lfs) and that was
// touched since it was checked out counts as different. It makes a folder for
// temporary files and removes it, also when the context ends.
func Revision(ctx context.Context, dir string) string {
	r, err := find(dir)
	if err != nil {
		return ""
	}
	git, err := exec.LookPath("git") // never one of the working folder
	if err != nil {
		return ""
	}
	shown, err := os.MkdirTemp("", "scalebench-git-")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(shown)
	if err := r.show(shown); err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ask := func(arguments ...string) (string, error) {
		cmd := exec.CommandContext(ctx, git, append([]string{"--git-dir=" + shown, "--work-tree=" + r.tree}, arguments...)...)
		cmd.Dir, cmd.Env = shown, environment(shown)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := ask("rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return ""
	}
	changes, err := ask("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
	if err != nil {
		return ""
	}
	if changes != "" {
		return commit + "-dirty"
	}
	return commit
}

// environment is this process's without git's variables, and with none of the
// user's or the system's configuration.
func environment(home string) []string {
	var list []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "XDG_CONFIG_HOME=") {
			list = append(list, v)
		}
	}
	return append(list, "HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
}

// repository is where the parts of one are.
type repository struct {
	tree   string // the working tree
	git    string // its git folder
	common string // what it shares with other working trees; git itself, of the first
}

var errNone = errors.New("in no repository")

// find goes up from a folder to the first one that is a working tree.
func find(dir string) (repository, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return repository{}, err
	}
	for ; ; dir = filepath.Dir(dir) {
		r := repository{tree: dir, git: filepath.Join(dir, ".git")}
		info, err := os.Stat(r.git)
		switch {
		case err == nil && info.IsDir():
			return r, r.follow()
		case err == nil: // of a submodule, or one of several working trees
			text, err := small(r.git)
			to, ok := strings.CutPrefix(text, "gitdir:")
			if err != nil || !ok {
				return r, errNone
			}
			r.git = from(dir, to)
			return r, r.follow()
		case dir == "/":
			return r, errNone
		}
	}
}

// follow finds what the repository shares with its other working trees.
func (r *repository) follow() error {
	r.common = r.git
	text, err := small(filepath.Join(r.git, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r.common = from(r.git, text)
	return err
}

func from(dir, path string) string {
	if path = strings.TrimSpace(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// show makes a folder that git takes for the repository's.
func (r repository) show(folder string) error {
	head, err := small(filepath.Join(r.git, "HEAD"))
	if err != nil {
		return err
	}
	config, err := r.config()
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(filepath.Join(folder, "HEAD"), []byte(head), 0o600), os.WriteFile(filepath.Join(folder, "config"), []byte(config), 0o600))
	for _, name := range []string{"objects", "refs", "packed-refs", "reftable", "shallow"} {
		err = errors.Join(err, link(filepath.Join(r.common, name), filepath.Join(folder, name)))
	}
	entries, readErr := os.ReadDir(r.git)
	for _, e := range entries {
		if e.Name() == "index" || strings.HasPrefix(e.Name(), "sharedindex.") {
			err = errors.Join(err, link(filepath.Join(r.git, e.Name()), filepath.Join(folder, e.Name())))
		}
	}
	return errors.Join(err, readErr)
}

// link makes a symbolic link to what is there, a regular file or a folder: git
// would wait for the writer of a pipe.
func link(to, at string) error {
	info, err := os.Stat(to)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	return os.Symlink(to, at)
}

// Settings that say how the repository is stored and compared, all of them one
// word; no other is taken from its configuration, and no file that it includes.
var (
	section    = regexp.MustCompile(`(?i)^\s*\[\s*(core|extensions)\s*\]\s*(?:[#;].*)?$`)
	gitSetting = regexp.MustCompile(`(?i)^\s*(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|trustctime|checkstat|objectformat|refstorage|compatobjectformat)\s*=\s*([a-z0-9]+)\s*(?:[#;].*)?$`)
)

// config is the configuration that git is shown.
func (r repository) config() (string, error) {
	text, err := small(filepath.Join(r.common, "config"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var b strings.Builder
	in := ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if m := section.FindStringSubmatch(line); m != nil {
			in = m[1]
		} else if strings.HasPrefix(strings.TrimSpace(line), "[") {
			in = ""
		} else if m := gitSetting.FindStringSubmatch(line); m != nil && in != "" {
			fmt.Fprintf(&b, "[%s]\n%s = %s\n", in, m[1], m[2])
		}
	}
	return b.String() + "[core]\nfsmonitor = false\nuntrackedCache = false\nhooksPath = /dev/null\nattributesFile = /dev/null\n", nil
}

// maxSmall is the size in bytes of the largest file that small reads.
const maxSmall = 1 << 20

// small reads a regular file of git's that is a few lines long.
func small(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSmall))
	return string(text), err
}
