package metrics

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	stopLine  = `{"t":3,"stop":{"status":"done","steps":4,"epochs":1}}` + "\n"
	stepsLine = `{"t":2,"steps":{"first":0,"tick":1e-6,"duration":[5,6],"samples":[1,1]}}` + "\n"
)

// An incomplete last line is not read until it is complete; a second reader continues where the
// first one stopped.
func TestReaderHalfWrittenLastLine(t *testing.T) {
	whole := stepsLine + stopLine
	for cut := range len(whole) {
		first := NewReader(strings.NewReader(whole[:cut]), "f", 0, 0)
		var kinds []string
		for {
			e, err := first.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			kinds = append(kinds, e.Kind())
		}
		if want := int64(strings.LastIndex(whole[:cut], "\n") + 1); first.Offset != want {
			t.Fatalf("cut at %d: offset %d, want %d", cut, first.Offset, want)
		}
		second := NewReader(strings.NewReader(whole[first.Offset:]), "f", first.Offset, first.Line)
		for {
			e, err := second.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("cut at %d, going on: %v", cut, err)
			}
			kinds = append(kinds, e.Kind())
		}
		if diff := cmp.Diff([]string{"steps", "stop"}, kinds); diff != "" {
			t.Errorf("cut at %d: %s", cut, diff)
		}
		if second.Offset != int64(len(whole)) || second.Line != 2 {
			t.Errorf("cut at %d: ends at offset %d, line %d", cut, second.Offset, second.Line)
		}
	}
}

// A bad line is reported with its file and number, and later lines are read.
func TestReaderBadLines(t *testing.T) {
	for _, test := range []struct{ name, line, want string }{
		{"no JSON", `{"t":1,"stop":`, "not a JSON event"},
		{"zeros of a torn write", "\x00\x00\x00", "not a JSON event"},
		{"no payload", `{"t":1}`, "no known payload"},
		{"unknown payload", `{"t":1,"wombat":{}}`, "no known payload"},
		{"two payloads", `{"t":1,"stop":{},"error":{}}`, "2 payloads"},
		{"time before the start", `{"t":-1,"stop":{}}`, "before the writer's start"},
		{"later format", `{"start":{"format":99,"world_size":1}}`, "start.format = 99"},
		{"no world", `{"start":{"format":1}}`, "world_size = 0"},
		{"rank outside", `{"start":{"format":1,"rank":2,"world_size":2}}`, "outside a world of 2"},
		{"ranks outside", `{"start":{"format":1,"rank":1,"ranks":9223372036854775807,"world_size":4}}`, "from rank 1 on is outside a world of 4"},
		{"no steps", `{"t":1,"steps":{"tick":1,"duration":[],"samples":[]}}`, "empty"},
		{"samples missing", `{"t":1,"steps":{"tick":1,"duration":[1,2],"samples":[1]}}`, "samples has 1"},
		{"short column", `{"t":1,"steps":{"tick":1,"duration":[1,2],"samples":[1,1],"communication":[1]}}`, "communication has 1"},
		{"negative", `{"t":1,"steps":{"first":7,"tick":1,"duration":[1,-2],"samples":[1,1]}}`, "step 8 has a negative value"},
		{"no tick", `{"t":1,"steps":{"duration":[1],"samples":[1]}}`, "tick = 0"},
		{"accuracy in percent", `{"t":1,"evaluation":{"accuracy":75}}`, "fraction from 0 to 1"},
		{"too long", strings.Repeat("x", MaxLine+100), "longer than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(stepsLine+"\n"+test.line+"\n"+stopLine), "dir/events.jsonl", 0, 0)
			if e, err := r.Next(); err != nil || e.Steps == nil {
				t.Fatalf("first line: %+v, %v", e, err)
			}
			_, err := r.Next()
			var bad *LineError
			if !errors.As(err, &bad) || bad.Line != 3 || bad.File != "dir/events.jsonl" {
				t.Fatalf("bad line: %v", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "dir/events.jsonl:3: ") || !strings.Contains(text, test.want) {
				t.Errorf("%.200q, want file:line and %q", text, test.want)
			}
			if e, err := r.Next(); err != nil || e.Stop == nil {
				t.Errorf("line after: %+v, %v", e, err)
			}
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("end: %v", err)
			}
		})
	}
}

// A line longer than the read buffer, but shorter than MaxLine, is read completely.
func TestReaderLongLine(t *testing.T) {
	text := strings.Repeat("y", 300_000)
	events := readAll(t, `{"t":1,"error":{"where":"x","message":"`+text+`"}}`+"\n"+stopLine)
	if len(events) != 2 || events[0].Error == nil || events[0].Error.Message != text {
		t.Errorf("%d events", len(events))
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("stale file handle") }

func TestReaderReportsReadErrors(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader(stopLine+"half"), failing{}), "f", 0, 0)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Next()
	var bad *LineError
	if err == nil || errors.As(err, &bad) || !strings.Contains(err.Error(), "stale") {
		t.Errorf("%v, want the read error itself", err)
	}
}

// For any input, reading ends, offsets only increase, and the columns of every accepted event have
// equal lengths.
func FuzzReader(f *testing.F) {
	f.Add([]byte(stepsLine+stopLine), 10)
	f.Add([]byte("{\n}\n\n[1]\n\"x\"\nnull\n"), 3)
	f.Add([]byte(`{"t":1,"steps":{"first":0,"tick":1e-300,"duration":[1],"samples":[9223372036854775807]}}`+"\n"), 0)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		kinds := func(from []byte, offset int64, line int) (list []string, r *Reader) {
			r = NewReader(strings.NewReader(string(from)), "f", offset, line)
			for {
				before := r.Offset
				e, err := r.Next()
				if errors.Is(err, io.EOF) {
					return list, r
				}
				if r.Offset <= before {
					t.Fatalf("offset stays at %d", r.Offset)
				}
				var bad *LineError
				switch {
				case errors.As(err, &bad):
					list = append(list, "bad")
				case err != nil:
					t.Fatal(err)
				default:
					if s := e.Steps; s != nil && (len(s.Duration) == 0 || len(s.Samples) != len(s.Duration)) {
						t.Fatalf("accepted %+v", s)
					}
					list = append(list, e.Kind())
				}
			}
		}
		all, _ := kinds(data, 0, 0)
		// Reading in two parts gives the same events.
		cut = min(max(cut, 0), len(data))
		first, r := kinds(data[:cut], 0, 0)
		rest, end := kinds(data[r.Offset:], r.Offset, r.Line)
		if diff := cmp.Diff(all, append(first, rest...)); diff != "" {
			t.Fatalf("read at once (-) and in two goes (+):\n%s", diff)
		}
		if end.Offset > int64(len(data)) {
			t.Fatalf("offset %d beyond %d bytes", end.Offset, len(data))
		}
	})
}

// zeros is an endless file without newlines.
type zeros struct{ read int64 }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read += int64(len(p))
	return len(p), nil
}

// The reader gives up on a file that is a single endless line, such as a sparse file.
func TestReaderGivesUp(t *testing.T) {
	z := &zeros{}
	var line *LineError
	_, err := NewReader(z, "events/rank-00000-0.jsonl", 0, 7).Next()
	if !errors.Is(err, errNoLines) || errors.As(err, &line) || !strings.HasPrefix(err.Error(), "events/rank-00000-0.jsonl:8: a line of more than 256 MiB") {
		t.Errorf("%v; want that it is no file of events, of the whole file", err)
	}
	if z.read > farTooLong+1<<20 {
		t.Errorf("%d bytes were read", z.read)
	}
}
