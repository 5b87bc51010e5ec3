package preprocess

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that was just written is in memory. After eviction it is not, unless its file system is
// in memory. After reading it again, it is.
func TestEvict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 3<<20+5), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []File{{Path: path, Size: 3<<20 + 5}}
	resident := func() (share float64) {
		t.Helper()
		n, total, err := Resident(files)
		if err != nil {
			t.Fatal(err)
		}
		if page := int64(os.Getpagesize()); total != (3<<20+5+page-1)/page*page {
			t.Fatalf("%d bytes in whole pages", total)
		}
		return float64(n) / float64(total)
	}
	kind, err := FileSystem(path)
	if err != nil {
		t.Fatal(err)
	}
	if share := resident(); share != 1 {
		t.Errorf("%v of a new file is in memory", share)
	}
	if err := Evict(files); err != nil {
		t.Fatal(err)
	}
	if share, want := resident(), map[bool]float64{true: 1}[InMemory(kind)]; share != want {
		t.Errorf("%v of an evicted file on %s is in memory, want %v", share, kind, want)
	}
	if _, err := ReadAlone(t.Context(), Folder(""), files, 2); err != nil {
		t.Fatal(err)
	}
	if share := resident(); share != 1 {
		t.Errorf("%v of a file that was read is in memory", share)
	}
}
