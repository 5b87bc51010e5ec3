package extract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Any reads the output of a known program in that program's format, or not at all. It ignores
// output of programs that do not train.
func TestAny(t *testing.T) {
	read, of := 0, 0
	for _, s := range samples {
		path := filepath.Join("testdata", s.file)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		o := s.options
		o.File, o.At = s.file, nil
		c, err := Any.Extract(f, o)
		_ = f.Close()
		if err != nil {
			t.Errorf("%s: %v", s.file, err)
			continue
		}
		format, err := Find(s.format)
		if err != nil {
			t.Fatal(err)
		}
		own := format.Kind == "train" && !format.Apart
		if own {
			of++
		}
		switch {
		case c.Found() == 0:
		case !own || !strings.HasPrefix(c.Notes[0], "read as "+s.format+","):
			t.Errorf("%s, of %s: %q", s.file, s.format, c.Notes)
		default:
			read++
		}
	}
	if read*10 < of*7 {
		t.Errorf("%d of %d samples of trainings are recognised", read, of)
	}
	t.Logf("%d of %d samples of trainings are recognised", read, of)
}
