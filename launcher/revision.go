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

// This file finds the git commit of a folder.
//
// A repository's configuration can name programs that git runs even for `git status`: core.fsmonitor, filters,
// hooks, diff drivers, aliases, pagers, included files, and the same for each submodule. A study may come from
// anyone, so git must not see that configuration. Git runs in a folder that scalebench creates, with links to
// the repository's objects, references and index, and a safe configuration. The user's and the system's
// configuration and git's environment variables are ignored.

// patience is the timeout of git. The answer is not worth a longer wait for a large repository on a slow file
// system.
const patience = 5 * time.Second

// Revision returns the commit of a folder, with "-dirty" if tracked files differ from it; "" if the folder is
// not in a repository or git fails. A file that a filter would rewrite (git-lfs) counts as different if it was
// touched since the checkout. Revision creates a temporary folder and removes it, even if the context ends.
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

// environment returns this process's environment without git's variables, and without the user's or the
// system's configuration.
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

// A repository has the paths of the parts of a git repository.
type repository struct {
	tree   string // the working tree
	git    string // the repository's git folder
	common string // shared with other working trees; equal to git in the main one
}

var errNone = errors.New("in no repository")

// find returns the repository of the nearest working tree at or above a folder.
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
		case err == nil: // .git is a file in a submodule or an additional working tree
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

// show creates a folder that git accepts as a repository, with links to the parts of r.
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

// link creates a symbolic link if the target is a regular file or a folder: git would wait for the writer of a
// pipe.
func link(to, at string) error {
	info, err := os.Stat(to)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	return os.Symlink(to, at)
}

// Settings that say how the repository is stored and compared, with values of one word. No other setting and no
// included file is used.
var (
	section    = regexp.MustCompile(`(?i)^\s*\[\s*(core|extensions)\s*\]\s*(?:[#;].*)?$`)
	gitSetting = regexp.MustCompile(`(?i)^\s*(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|trustctime|checkstat|objectformat|refstorage|compatobjectformat)\s*=\s*([a-z0-9]+)\s*(?:[#;].*)?$`)
)

// config returns the configuration for git.
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
