package extract

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// Any reads the output of an unnamed training program. It tries every format, and uses the result
// if exactly one of them matches. If no format matches, the content is empty, without an
// error.
var Any = Extractor{Name: "any", Kind: "train", Reads: "the output of a training, in whichever format it is"}

// mostOfAny is the size in bytes of the largest output on which Any tries the formats.
const mostOfAny = 64 << 20

func anyFormat(r io.Reader, o Options) (Content, error) {
	data, err := io.ReadAll(io.LimitReader(r, mostOfAny+1))
	if err != nil {
		return Content{}, err
	}
	if len(data) > mostOfAny {
		return Content{Notes: []string{fmt.Sprintf("the output is larger than %d MiB, so its format was not guessed; name the format in command.extract", mostOfAny>>20)}}, nil
	}
	var found Content
	var names []string
	for e, c := range tried(data, o, func(e Extractor) bool { return e.Kind == Any.Kind && !e.Apart }) {
		if tells(c) {
			found, names = c, append(names, e.Name)
		}
	}
	switch len(names) {
	case 0:
		return Content{}, nil
	case 1:
		found.Notes = append([]string{"read as " + names[0] + ", whose lines the output has; command.extract names another format"}, found.Notes...)
		return found, nil
	}
	return Content{Notes: []string{"nothing was read from the output, which has lines of " + strings.Join(names, " and ") + "; name one in command.extract"}}, nil
}

// tried yields those of the formats in which the data can be read, with what they find.
func tried(data []byte, o Options, which func(Extractor) bool) iter.Seq2[Extractor, Content] {
	return func(yield func(Extractor, Content) bool) {
		for _, e := range allFormats {
			if !which(e) {
				continue
			}
			if c, err := e.Extract(bytes.NewReader(data), o); err == nil && !yield(e, c) {
				return
			}
		}
	}
}

// Guess returns the names of the formats in which at least one figure of a log can be read. It reads at most the
// first 64 MiB.
func Guess(r io.Reader) (names []string) {
	data, err := io.ReadAll(io.LimitReader(r, mostOfAny))
	if err != nil {
		return nil
	}
	for e, c := range tried(data, Options{}, func(Extractor) bool { return true }) {
		if c.Found() > 0 {
			names = append(names, e.Name)
		}
	}
	return names
}

// tells reports whether the content has a rate or an evaluation.
func tells(c Content) bool {
	for e := range c.Events() {
		if e.Evaluation != nil || e.Steps != nil || e.Figure != nil && (e.Figure.Name == metrics.FigureThroughput || e.Figure.Name == "tokens_per_second") {
			return true
		}
	}
	return false
}
