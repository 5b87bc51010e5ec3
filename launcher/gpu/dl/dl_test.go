package dl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// build compiles C to a shared library.
func build(t *testing.T, name, source string) string {
	t.Helper()
	dir := t.TempDir()
	path, file := filepath.Join(dir, name), filepath.Join(dir, "source.c")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return path
}

func TestOpen(t *testing.T) {
	whole := build(t, "libwhole.so", "int one(void) { return 1; } int two(void) { return 2; }")
	part := build(t, "libpart.so", "int one(void) { return 1; }")
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	var one, two, three unsafe.Pointer
	table := []Symbol{{"one", &one, false}, {"two", &two, false}, {"three", &three, true}}

	l, err := Open("the library", []string{"/nowhere/lib.so", part, whole}, table)
	if err != nil {
		t.Fatal(err)
	}
	if l.Path() != whole || one == nil || two == nil || three != nil {
		t.Errorf("%s with %v, %v, %v; want the two of %s", l.Path(), one, two, three, whole)
	}

	// What is missing empties the table, although its first entry was there.
	_, err = Open("the library", []string{part}, table)
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Path != part || len(missing.Symbols) != 1 || missing.Symbols[0] != "two" {
		t.Errorf("%v", err)
	}
	if one != nil || two != nil {
		t.Error("half a table")
	}

	// Every library tried is named, with its reason.
	_, err = Open("the library", []string{"/nowhere/lib.so", text, part, "", "libnosuch.so.7"}, table)
	for _, want := range []string{"the library cannot be loaded", "/nowhere/lib.so", "No such file", text, part + " has no two", `"" is not a library name`, "libnosuch.so.7"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %q", err, want)
		}
	}
	if !errors.As(err, &missing) {
		t.Errorf("%v: the missing symbol is not found among several reasons", err)
	}
	if _, err := Open("the library", nil, table); err == nil {
		t.Error("nothing was opened, and no error")
	}
}

// The linker's own search is used for a bare name, and tells where it ended.
func TestOpenByName(t *testing.T) {
	var cosine unsafe.Pointer
	l, err := Open("the mathematics library", []string{"libm.so.6"}, []Symbol{{"cos", &cosine, false}})
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(l.Path()) || filepath.Base(l.Path()) != "libm.so.6" || cosine == nil {
		t.Errorf("%s, %v", l.Path(), cosine)
	}
}
