package worker

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
)

// The worker runs the command with its secrets, which point.json does not contain, and refuses files that
// another user may have written.
func TestLoadPoint(t *testing.T) {
	run := rundir.Folder(t.TempDir())
	command := study.Command{Run: []string{"train", "--api-key", "x1y2z3"}, Start: "rank", Environment: study.Variables{"A": "b"}, Uses: []string{"data.path"}, Folder: "/study"}
	own := study.Own{"api_key": {Value: "alpha-1"}, "rate": {Value: 2.0}}
	point := study.Point{ID: "p", Framework: "command", Workers: 2, Command: command.Sealed(nil), Own: own.Sealed(nil)}
	for path, v := range map[string]any{run.Point(): point, run.Command(): command, run.Parameters(): own} {
		text, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := LoadPoint(run)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(command, got.Command); d != "" {
		t.Errorf("the command is another one:\n%s", d)
	}
	if d := cmp.Diff(own, got.Own); d != "" {
		t.Errorf("the parameters are other ones:\n%s", d)
	}
	for _, path := range []string{run.Point(), run.Command(), run.Parameters(), run.Path()} {
		info, err := os.Stat(path)
		if err == nil {
			err = os.Chmod(path, info.Mode()|0o002)
		}
		if err != nil {
			t.Fatal(err)
		}
		var refused *trust.Error
		if _, err := LoadPoint(run); !errors.As(err, &refused) {
			t.Errorf("%s can be written by all: %v", path, err)
		}
		if err := os.Chmod(path, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(run.Command()), os.Remove(run.Parameters())); err != nil {
		t.Fatal(err)
	}
	if got, err = LoadPoint(run); err != nil || !cmp.Equal(got.Command, point.Command) || !cmp.Equal(got.Own, point.Own) {
		t.Errorf("without secrets: %+v, %v", got.Command, err)
	}
}

// A nonce that other users can read is refused, and so is a file that does not hold a nonce.
func TestReadNonce(t *testing.T) {
	run := rundir.Folder(t.TempDir())
	write := func(mode os.FileMode) error {
		return errors.Join(os.WriteFile(run.Nonce(), []byte("0123456789abcdef\n"), 0o600), os.Chmod(run.Nonce(), mode))
	}
	for _, mode := range []os.FileMode{0o600, 0o640} {
		if err := write(mode); err != nil {
			t.Fatal(err)
		}
		if nonce, err := ReadNonce(run); nonce != "0123456789abcdef" || err != nil {
			t.Errorf("%q, %v", nonce, err)
		}
	}
	bad := map[string]func() error{
		"of everybody": func() error { return write(0o644) },
		"of 1 TB":      func() error { return errors.Join(write(0o600), os.Truncate(run.Nonce(), 1<<40)) },
		"a pipe":       func() error { return errors.Join(os.Remove(run.Nonce()), syscall.Mkfifo(run.Nonce(), 0o600)) },
		"a folder":     func() error { return errors.Join(os.Remove(run.Nonce()), os.Mkdir(run.Nonce(), 0o700)) },
		"not there":    func() error { return os.Remove(run.Nonce()) },
	}
	for _, name := range []string{"of everybody", "of 1 TB", "a pipe", "a folder", "not there"} {
		if err := bad[name](); err != nil {
			t.Fatal(err)
		}
		if nonce, err := ReadNonce(run); err == nil || nonce != "" {
			t.Errorf("%s: %q, %v", name, nonce, err)
		}
	}
}
