package worker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func area(t *testing.T) StagingArea {
	t.Helper()
	a, err := OpenArea(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// dataset creates a folder with a file, a folder and a link to a file.
func dataset(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "one.bin"), "one")
	writeFile(t, filepath.Join(dir, "more", "two.bin"), "two two")
	if err := os.Symlink("more/two.bin", filepath.Join(dir, "link.bin")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, folder string) {
	t.Helper()
	for name, want := range map[string]string{"one.bin": "one", "more/two.bin": "two two", "link.bin": "two two"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
}

var hour = StagedLifetime{Owner: "job 1", Until: time.Now().Add(time.Hour)}

func put(t *testing.T, a StagingArea, kind, source string, life StagedLifetime) StagedItem {
	t.Helper()
	item, err := a.Put(t.Context(), kind, source, life)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func TestDataIsCopiedOnce(t *testing.T) {
	a, source := area(t), dataset(t)
	item := put(t, a, StageData, source, hour)
	holds(t, item.Path)
	if item.Reused || item.Bytes != int64(len("one")+2*len("two two")) || item.Seconds <= 0 {
		t.Errorf("first: %+v", item)
	}
	again := put(t, a, StageData, source, hour)
	if !again.Reused || again.Path != item.Path || again.Bytes != item.Bytes {
		t.Errorf("again: %+v, first %+v", again, item)
	}
	if other := put(t, a, StageData, source, StagedLifetime{Owner: "job 2", Until: hour.Until}); other.Reused || other.Path == item.Path {
		t.Errorf("another owner shares what goes with the first: %+v", other)
	}
}

// Copies that are incomplete, differ from the source, or may be damaged by a crash are staged
// again.
func TestDataIsStagedAgain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, source, staged string){
		"a file is missing":   func(t *testing.T, _, staged string) { remove(t, filepath.Join(staged, "more", "two.bin")) },
		"a file is cut short": func(t *testing.T, _, staged string) { writeFile(t, filepath.Join(staged, "one.bin"), "o") },
		"never completed":     func(t *testing.T, _, staged string) { remove(t, filepath.Join(staged, "..", "complete.json")) },
		"the source is newer": func(t *testing.T, source, _ string) {
			if err := os.Chtimes(filepath.Join(source, "one.bin"), time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		},
		"the node was started anew": func(t *testing.T, _, staged string) {
			record := filepath.Join(staged, "..", "complete.json")
			text, err := os.ReadFile(record)
			if err != nil || !strings.Contains(string(text), boot()) {
				t.Fatalf("%s does not name the boot (%v)", text, err)
			}
			writeFile(t, record, strings.ReplaceAll(string(text), boot(), "another-boot"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, source := area(t), dataset(t)
			life := StagedLifetime{Until: time.Now().Add(time.Hour), Keep: true}
			item := put(t, a, StageData, source, life)
			spoil(t, source, item.Path)
			again := put(t, a, StageData, source, life)
			if again.Reused {
				t.Errorf("was used as it is: %+v", again)
			}
			holds(t, again.Path)
			if !put(t, a, StageData, source, life).Reused {
				t.Error("the next one staged it again all the same")
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// If several ranks need the same data at the same time, only one copies it.
func TestOneRankStagesForTheNode(t *testing.T) {
	a, source := area(t), dataset(t)
	life := StagedLifetime{Until: time.Now().Add(time.Hour), Keep: true}
	var wait sync.WaitGroup
	items := make([]StagedItem, 8)
	for i := range items {
		wait.Go(func() {
			var err error
			if items[i], err = a.Put(t.Context(), StageData, source, life); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	filled := 0
	for _, item := range items {
		if item.Path != items[0].Path {
			t.Errorf("%s and %s", item.Path, items[0].Path)
		}
		if !item.Reused {
			filled++
		}
	}
	if filled != 1 {
		t.Errorf("%d of %d filled it, want 1", filled, len(items))
	}
	holds(t, items[0].Path)
}

// A process that is ended while it waits or copies stops, and leaves no valid item.
func TestInterrupted(t *testing.T) {
	a, source := area(t), dataset(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("signal terminated"))
	if _, err := a.Put(ctx, StageData, source, hour); err == nil || !strings.Contains(err.Error(), "signal terminated") {
		t.Errorf("got %v", err)
	}
	if put(t, a, StageData, source, hour).Reused {
		t.Error("what was interrupted was used")
	}
}

func TestTooLittleSpace(t *testing.T) {
	a, source := area(t), t.TempDir()
	large := filepath.Join(source, "large.bin")
	writeFile(t, large, "")
	if err := os.Truncate(large, 1<<42); err != nil { // sparse: 4 TiB that take no space
		t.Fatal(err)
	}
	_, err := a.Put(t.Context(), StageData, source, hour)
	var space *SpaceError
	if !errors.As(err, &space) || space.Need != 1<<42 || space.Free >= space.Need {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"4 TiB", source, a.root, "stage.dir"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}

// A job's items are removed at its end, or by a later job after their lifetime, but never while
// they are in use.
func TestRemoval(t *testing.T) {
	a, source := area(t), dataset(t)
	over := time.Now().Add(-2 * overdue)
	mine := put(t, a, StageData, source, hour)
	killed := put(t, a, StageData, source, StagedLifetime{Owner: "killed", Until: over})
	used := put(t, a, StageData, source, StagedLifetime{Owner: "late", Until: over})
	hold, err := holdFolder(used.Path)
	if err != nil {
		t.Fatal(err)
	}
	kept := put(t, a, StageData, source, StagedLifetime{Until: over, Keep: true})
	writeFile(t, filepath.Join(a.root, "data-1-2", "lock"), "") // died while it copied
	writeFile(t, filepath.Join(a.root, "data-1-2", "content", "half"), "")

	put(t, a, StageData, dataset(t), StagedLifetime{Owner: "next", Until: hour.Until})
	for path, want := range map[string]bool{mine.Path: true, killed.Path: false, used.Path: true, kept.Path: true, filepath.Join(a.root, "data-1-2"): false} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", path, err == nil, want)
		}
	}
	if err := a.Remove(hour.Owner); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine.Path); err == nil {
		t.Error("Remove left it")
	}
	hold.Release()
	if err := a.Remove("late"); err != nil {
		t.Fatal(err)
	}
	if _, err := holdFolder(used.Path); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("what was removed could be held: %v", err)
	}
}

// A kept item is replaced when its source changes.
func TestKeptIsReplaced(t *testing.T) {
	a, source := area(t), dataset(t)
	old := put(t, a, StageData, source, StagedLifetime{Until: time.Now().Add(-2 * overdue), Keep: true})
	writeFile(t, filepath.Join(source, "three.bin"), "three")
	put(t, a, StageData, source, StagedLifetime{Until: time.Now(), Keep: true})
	put(t, a, StageData, dataset(t), hour)
	if _, err := os.Stat(old.Path); err == nil {
		t.Error("the old state is still there")
	}
}

func TestFolderIsOurs(t *testing.T) {
	t.Setenv("STAGE_HERE", t.TempDir())
	a, err := OpenArea("$STAGE_HERE/")
	if err != nil || filepath.Dir(a.root) != os.Getenv("STAGE_HERE") {
		t.Errorf("%+v, %v", a, err)
	}
	for dir, want := range map[string]string{"$STAGE_NOWHERE/x": "STAGE_NOWHERE is not set", "local": "not an absolute path",
		"/no/such/folder": "no such file"} {
		if _, err := OpenArea(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}

// If another user occupies the folder's name, this user's runs still stage, share what they keep, and find it
// again after the other user's folder is gone.
func TestSquattedFolder(t *testing.T) {
	const stranger = 1<<31 - 7
	own := t.TempDir()
	for name, squat := range map[string]func(path string) error{
		"a stranger's folder": func(path string) error { return errors.Join(os.Mkdir(path, 0o755), os.Lchown(path, stranger, -1)) },
		"a folder for all":    func(path string) error { return errors.Join(os.Mkdir(path, 0o755), os.Chmod(path, 0o777)) },
		"a file":              func(path string) error { return os.WriteFile(path, nil, 0o644) },
		"a FIFO":              func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a link to mine":      func(path string) error { return os.Symlink(own, path) },
		"a dangling link":     func(path string) error { return os.Symlink("/no/where", path) },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 && strings.Contains(name, "stranger") {
				t.Skip("only root can give files away")
			}
			dir, source := t.TempDir(), dataset(t)
			plain := filepath.Join(dir, fmt.Sprintf("scalebench-%d", os.Getuid()))
			early := plain + "-0-early" // sorts before every other
			if err := errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), squat(plain), squat(early)); err != nil {
				t.Fatal(err)
			}
			life := StagedLifetime{Until: time.Now().Add(time.Hour), Keep: true}
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					a, err := OpenArea(dir)
					if err != nil {
						t.Error(err)
						return
					}
					item, err := a.Put(t.Context(), StageData, source, life)
					if err != nil {
						t.Error(err)
					}
					holds(t, item.Path)
				})
			}
			wait.Wait()
			a, err := OpenArea(dir)
			if err != nil || a.root == plain || a.root == early {
				t.Fatalf("%+v, %v", a, err)
			}
			first := put(t, a, StageData, source, life)
			b, err := OpenArea(dir)
			if err != nil || b.root != a.root {
				t.Fatalf("%+v, %v; the first has %s", b, err, a.root)
			}
			if again := put(t, b, StageData, source, life); !again.Reused || again.Path != first.Path {
				t.Errorf("%+v, the first %+v", again, first)
			}
			// A job's items are removed at its end, even if another folder is in use by then.
			mine := put(t, b, StageData, source, hour)
			if err := os.RemoveAll(plain); err != nil {
				t.Fatal(err)
			}
			c, err := OpenArea(dir)
			if err != nil || c.root != plain {
				t.Fatalf("%+v, %v", c, err)
			}
			if err := c.Remove(hour.Owner); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(mine.Path); err == nil {
				t.Error("Remove left it")
			}
			if entries, err := os.ReadDir(own); err != nil || len(entries) > 0 {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}

// archive packs a folder with tar, below a name or without.
func archive(t *testing.T, folder, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "env.tar.gz")
	arguments := []string{"-czf", path, "-C", folder, "."}
	if name != "" {
		arguments = []string{"-czf", path, "-C", filepath.Dir(folder), name}
	}
	if out, err := exec.Command("tar", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func TestBadArchives(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside.tar")
	f, err := os.Create(outside)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(f)
	for _, h := range []*tar.Header{{Name: "up", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "up/evil", Typeflag: tar.TypeReg, Mode: 0o644}} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "data", "file"), "")
	if err := os.Rename(archive(t, filepath.Join(dir, "data"), ""), filepath.Join(dir, "empty.tar.gz")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "broken.tar.gz"), "this is not a gzip at all")
	writeFile(t, filepath.Join(dir, "env.zip"), "zip")
	for name, want := range map[string]string{"outside.tar": "escapes", "empty.tar.gz": "holds 0 environments", "broken.tar.gz": "gzip: ",
		"env.zip": "valid: .tar", "missing.tar": "no such file", "data": "pack the environment first"} {
		if item, err := area(t).Put(t.Context(), StagePython, filepath.Join(dir, name), hour); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (%+v), want %q", name, err, item, want)
		}
	}
}
