package cluster

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// maxSource is the maximum size in bytes of a script whose imports are checked; a parser needs hundreds of
// times as much memory.
const maxSource = 1 << 20

// declared matches the declaration of an encoding, as Python parses it (PEP 263).
var declared = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// blank matches a first line after which the second line may declare an encoding.
var blank = regexp.MustCompile(`^[ \t\f]*(#.*)?$`)

// A source is the text of a Python script.
type source struct {
	text   string
	wrong  string // why no interpreter can read it
	unread string // why it was not checked
}

// readSource reads a Python script. It decodes the bytes here, because an interpreter would import a codec
// module that the script's first lines name.
func readSource(script string) source {
	text, err := sharedfs.ReadFile(script, maxSource)
	if err != nil {
		return source{unread: err.Error()}
	}
	text, marked := bytes.CutPrefix(text, []byte("\xef\xbb\xbf"))
	encoding := strings.ReplaceAll(strings.ToLower(encodingOf(text)), "_", "-")
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return encoding == name || strings.HasPrefix(encoding, name+"-") })
	}
	switch {
	case encoding == "", is("utf-8", "utf8"):
		if !utf8.Valid(text) {
			return source{wrong: "it is not valid UTF-8, and its first two lines declare no other encoding"}
		}
		return source{text: string(text)}
	case marked:
		return source{wrong: fmt.Sprintf("it begins with the mark of UTF-8 and declares the encoding %q", encoding)}
	case is("latin-1", "latin1", "iso-8859-1", "iso-latin-1", "ascii", "us-ascii"):
		runes := make([]rune, len(text))
		for i, b := range text {
			runes[i] = rune(b)
		}
		return source{text: string(runes)}
	}
	return source{unread: fmt.Sprintf("it declares the encoding %q; UTF-8, Latin-1 and ASCII are read", encoding)}
}

// encodingOf returns the encoding that a script's first two lines declare, or "".
func encodingOf(source []byte) string {
	lines := regexp.MustCompile(`\r\n|\r|\n`).Split(string(source[:min(len(source), 8<<10)]), 3)
	for _, line := range lines[:min(2, len(lines))] {
		if m := declared.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if !blank.MatchString(line) {
			break
		}
	}
	return ""
}
