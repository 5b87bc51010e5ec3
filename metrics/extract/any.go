package extract

import (
	"bytes"
	"fmt"
	"io"
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
	for _, e := range allFormats {
		if e.Kind != Any.Kind || e.Apart {
			continue
		}
		c, err := e.Extract(bytes.NewReader(data), o)
		if err != nil || !tells(c) {
			continue
		}
		found, names = c, append(names, e.Name)
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

// tells reports whether the content has a rate or an evaluation.
func tells(c Content) bool {
	for e := range c.Events() {
		if e.Evaluation != nil || e.Steps != nil || e.Figure != nil && (e.Figure.Name == metrics.FigureThroughput || e.Figure.Name == "tokens_per_second") {
			return true
		}
	}
	return false
}
