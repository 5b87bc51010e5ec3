package extract

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

// A file may be as large as the limit, whether its size is known before or not.
func TestWholeFileLimit(t *testing.T) {
	const most = 3 << 20
	for name, c := range map[string]struct {
		size  int
		known int64
		large bool
	}{
		"at the limit":             {most, most, false},
		"size unknown":             {most, 0, false},
		"larger":                   {most + 1, most + 1, true},
		"larger, size unknown":     {most + 1, 0, true},
		"it grew while being read": {most + 1, most, true},
	} {
		l := &log{o: Options{File: "x.json", Bytes: c.known}}
		data, err := l.upTo(strings.NewReader(strings.Repeat("x", c.size)), most)
		if c.large && (err == nil || err.Error() != "x.json: larger than 3 MiB, the limit for a file of this format") {
			t.Errorf("%s: %v, want the limit", name, err)
		}
		if !c.large && (err != nil || len(data) != c.size) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(data), err, c.size)
		}
	}
	broken := errors.New("broken")
	if _, err := (&log{o: Options{File: "x.json"}}).upTo(iotest.ErrReader(broken), most); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "x.json: ") {
		t.Errorf("a failing read: %v, want its error with the file's name", err)
	}
}
