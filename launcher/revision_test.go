package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// git runs git as a user would, and returns its output.
func git(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, arguments...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string, perm os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
}

// repo creates a repository with one commit and returns both.
func repo(t *testing.T, options ...string) (dir, commit string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo")
	write(t, filepath.Join(dir, "sub/study.toml"), "name\n", 0o644)
	write(t, filepath.Join(dir, "data.bin"), "data\n", 0o644)
	git(t, dir, append([]string{"init", "-q"}, options...)...)
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "first")
	return dir, git(t, dir, "rev-parse", "HEAD")
}

var testTime = time.Unix(1_700_000_000, 0)

func TestOf(t *testing.T) {
	dir, commit := repo(t)
	sub := filepath.Join(dir, "sub")
	check := func(what, dir, want string) {
		t.Helper()
		if got := Revision(t.Context(), dir); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("clean", sub, commit)
	write(t, filepath.Join(sub, "new"), "untracked", 0o644)
	check("an untracked file", sub, commit)
	if err := os.Chtimes(filepath.Join(dir, "data.bin"), testTime, testTime); err != nil {
		t.Fatal(err)
	}
	check("touched", sub, commit)
	write(t, filepath.Join(dir, "data.bin"), "changed\n", 0o644)
	check("changed", sub, commit+"-dirty")
	git(t, dir, "add", "data.bin")
	check("staged", sub, commit+"-dirty")
	git(t, dir, "commit", "-qm", "second")
	second := git(t, dir, "rev-parse", "HEAD")
	check("committed", sub, second)

	git(t, dir, "pack-refs", "--all")
	git(t, dir, "gc", "-q")
	check("packed", sub, second)
	git(t, dir, "update-index", "--split-index")
	check("split index", sub, second)
	git(t, dir, "update-index", "--no-split-index")
	tree := filepath.Join(t.TempDir(), "tree")
	git(t, dir, "worktree", "add", "-q", "--detach", tree, commit)
	check("a second working tree", filepath.Join(tree, "sub"), commit)
	git(t, dir, "checkout", "-q", "--detach", commit)
	check("detached", sub, commit)
	parent, _ := repo(t)
	git(t, parent, "submodule", "--quiet", "add", dir, "module")
	check("a submodule", filepath.Join(parent, "module/sub"), commit)

	sha256, long := repo(t, "--object-format=sha256")
	check("SHA-256", sha256, long)
	check("no repository", t.TempDir(), "")
	empty := t.TempDir()
	git(t, empty, "init", "-q")
	check("no commit", empty, "")
	t.Setenv("GIT_DIR", filepath.Join(empty, ".git"))
	check("with GIT_DIR", sub, commit)
	t.Setenv("PATH", "")
	check("no git", sub, "")
}

// Nothing in a repository makes git run a program. Each known way would create a file in this
// folder; a plain git call is tricked by some of them.
func TestHostileRepository(t *testing.T) {
	dir, _ := repo(t)
	marks := t.TempDir()
	evil := func(name string) string {
		path := filepath.Join(t.TempDir(), name+".sh")
		write(t, path, fmt.Sprintf("#!/bin/sh\ntouch '%s/%s'\ncat\n", marks, name), 0o755)
		return path
	}
	included := filepath.Join(dir, ".git/included")
	write(t, included, fmt.Sprintf("[core]\n\tfsmonitor = %s\n", evil("include")), 0o644)
	set := map[string]string{
		"core.fsmonitor": evil("fsmonitor"), "core.hooksPath": filepath.Dir(evil("post-index-change")), "core.pager": evil("pager"), "core.editor": evil("editor"),
		"core.sshCommand": evil("ssh"), "core.gitProxy": evil("proxy"), "core.askPass": evil("askpass"), "core.alternateRefsCommand": evil("alternates"),
		"filter.evil.clean": evil("clean"), "filter.evil.smudge": evil("smudge"), "filter.evil.process": evil("process"), "filter.evil.required": "true",
		"diff.external": evil("external"), "diff.evil.command": evil("diff"), "diff.evil.textconv": evil("textconv"), "merge.evil.driver": evil("merge"),
		"alias.status": "!" + evil("alias"), "alias.rev-parse": "!" + evil("alias2"), "pager.status": evil("pagerstatus"), "credential.helper": "!" + evil("credential"),
		"gpg.program": evil("gpg"), "uploadpack.packObjectsHook": evil("pack"), "include.path": included, "includeIf.gitdir:/**.path": included,
		"extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": "ext::" + evil("promisor"), "protocol.ext.allow": "always",
		"submodule.module.update": "!" + evil("update"), "trace2.eventTarget": filepath.Join(marks, "trace2"), "status.submoduleSummary": "true",
	}
	write(t, filepath.Join(dir, ".gitattributes"), "*.bin filter=evil diff=evil merge=evil\n", 0o644)
	write(t, filepath.Join(dir, ".git/info/attributes"), "* filter=evil diff=evil\n", 0o644)
	for _, hook := range []string{"post-index-change", "pre-auto-gc", "reference-transaction", "post-checkout", "fsmonitor-watchman"} {
		write(t, filepath.Join(dir, ".git/hooks", hook), fmt.Sprintf("#!/bin/sh\ntouch '%s/hook-%s'\n", marks, hook), 0o755)
	}
	inner, _ := repo(t)
	git(t, dir, "submodule", "--quiet", "add", inner, "module")
	git(t, dir, "add", ".gitmodules")
	git(t, dir, "commit", "-qm", "with a module")
	commit := git(t, dir, "rev-parse", "HEAD")
	git(t, filepath.Join(dir, "module"), "config", "core.fsmonitor", evil("submodule"))
	for name, value := range set {
		git(t, dir, "-c", "core.fsmonitor=false", "config", name, value)
	}
	write(t, filepath.Join(dir, "data.bin"), "changed\n", 0o644) // so that filters and drivers would run
	// A fake git next to the repository.
	bin := t.TempDir()
	write(t, filepath.Join(dir, "git"), fmt.Sprintf("#!/bin/sh\ntouch '%s/cwd'\n", marks), 0o755)
	write(t, filepath.Join(bin, ".gitconfig"), fmt.Sprintf("[core]\n\tfsmonitor = %s\n", evil("home")), 0o644)
	t.Setenv("HOME", bin)
	t.Setenv("XDG_CONFIG_HOME", bin)
	write(t, filepath.Join(bin, "git/config"), fmt.Sprintf("[core]\n\tfsmonitor = %s\n", evil("xdg")), 0o644)
	for name, value := range map[string]string{"GIT_EXTERNAL_DIFF": evil("envdiff"), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": evil("envconfig"),
		"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='" + evil("parameters") + "'", "GIT_EXEC_PATH": bin, "GIT_TRACE2": filepath.Join(marks, "envtrace"), "GIT_PAGER": evil("envpager")} {
		t.Setenv(name, value)
	}
	t.Chdir(dir)
	t.Setenv("PATH", "."+string(filepath.ListSeparator)+os.Getenv("PATH"))
	seen := func() (names []string) {
		entries, err := os.ReadDir(marks)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
			if err := os.Remove(filepath.Join(marks, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		return names
	}
	seen() // left by setting it up

	before := os.Getenv("PATH")
	if got := Revision(t.Context(), filepath.Join(dir, "sub")); got != "" { // "." is first on the PATH and must be ignored
		t.Errorf("%q with a git of the working folder", got)
	}
	if names := seen(); len(names) > 0 {
		t.Errorf("these ran: %v", names)
	}
	t.Setenv("PATH", strings.TrimPrefix(before, "."+string(filepath.ListSeparator)))
	if got := Revision(t.Context(), filepath.Join(dir, "sub")); got != commit+"-dirty" {
		t.Errorf("%q, want %s-dirty", got, commit)
	}
	if names := seen(); len(names) > 0 {
		t.Errorf("these ran: %v", names)
	}
	// The traps work.
	plain := exec.Command("git", "-C", dir, "status", "--porcelain")
	plain.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + bin}
	_ = plain.Run() // only the files that it creates matter
	if names := seen(); len(names) == 0 {
		t.Error("git status ran nothing of the repository's; the test shows nothing")
	} else {
		t.Logf("plain git status ran %v", names)
	}
}

// Files that would block git end the query.
func TestPipes(t *testing.T) {
	for _, name := range []string{".git", ".git/HEAD", ".git/config", ".git/index", ".git/packed-refs"} {
		dir, _ := repo(t)
		path := filepath.Join(dir, name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
			t.Fatalf("mkfifo: %v\n%s", err, out)
		}
		Revision(t.Context(), dir) // hangs, or not
	}
}
