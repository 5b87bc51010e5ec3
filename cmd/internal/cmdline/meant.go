package cmdline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

// refusals match errors that quote a wrong word and list the valid ones. The groups are the
// problem, the word, and the list.
var refusals = []*regexp.Regexp{
	regexp.MustCompile(`(?s)^(?P<wrong>.*"(?P<word>[^"\n]+)"[^"\n]*?)[;.] (?:valid:|choose one of|studies with runs:) (?P<list>.+)$`),
	regexp.MustCompile(`(?s)^(?P<wrong>.*(?:no such column:|no run has a parameter) (?P<word>[\w.]+))\n\((?P<list>.+)\)$`),
}

// names matches the words in a list of valid values.
var names = regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_.-]*`)

// Meant inserts a suggestion before the list of valid values, which may be long.
func Meant(message, hint string) (string, string) {
	first, rest, _ := strings.Cut(hint, "\n")
	if !strings.HasPrefix(first, "Did you mean ") {
		first, rest = "", hint
	}
	if strings.Contains(message, ".toml:") { // the study package has suggested it
		return message, hint
	}
	for _, r := range refusals {
		m := r.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		wrong, word, list := m[r.SubexpIndex("wrong")], m[r.SubexpIndex("word")], m[r.SubexpIndex("list")]
		if first == "" {
			valid := slices.Sorted(slices.Values(names.FindAllString(list, -1)))
			first = study.SpellingHint(word, slices.Compact(valid))
		}
		if first == "" {
			return message, hint
		}
		return wrong, strings.TrimSpace(first + "\nValid: " + list + "\n" + rest)
	}
	return message, hint
}
