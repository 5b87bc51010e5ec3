package notation

import (
	"errors"
	"fmt"
	"strings"
)

// CheckScript parses a batch script as sbatch does and returns an error about options in lines that are not
// among ours, with the line number from 1.
func CheckScript(script string, ours []string) (line int, err error) {
	words, line, err := directives(script, ours)
	if err != nil {
		return line, err
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w.ours {
			continue // every option of ours has its value in the same word
		}
		takes, err := w.check()
		if err == nil && takes {
			if i++; i == len(words) || words[i].ours {
				err = errors.New("needs a value")
			}
		}
		if err != nil {
			name, _, _ := strings.Cut(w.text, "=")
			return w.line, fmt.Errorf("%s %w", name, err)
		}
	}
	return 0, nil
}

// A word is one argument that sbatch finds in a script.
type word struct {
	text string
	line int
	ours bool
}

// check returns an error if an option is not allowed in a script. next reports whether the next word is its
// value.
func (w word) check() (next bool, err error) {
	if long, ok := strings.CutPrefix(w.text, "--"); ok {
		name, _, given := strings.Cut(long, "=")
		o, known, err := find(name)
		switch {
		case err != nil:
			return false, err
		case known && o.Field != "":
			return false, &OwnedError{name, o}
		}
		return known && o.Value == required && !given, nil
	}
	letters, ok := strings.CutPrefix(w.text, "-")
	if !ok || letters == "" {
		return false, errors.New("is not an option; sbatch ends there")
	}
	for i := range len(letters) { // -Hs means -H -s; -JX means -J X
		o, known := shortOption(letters[i])
		switch {
		case !known:
			return false, fmt.Errorf("has a letter that sbatch does not know, %c", letters[i])
		case o.Field != "":
			return false, &OwnedError{letters[i : i+1], o}
		case o.Value != none:
			return o.Value == required && i == len(letters)-1, nil
		}
	}
	return false, nil
}

func shortOption(letter byte) (Option, bool) {
	for _, o := range table {
		if o.Short == letter {
			return o, true
		}
	}
	return Option{}, false
}

// directives returns the words of the #SBATCH lines before the first command. sbatch joins the lines into one
// list of arguments.
func directives(script string, ours []string) (words []word, line int, err error) {
	own := map[string]bool{}
	for _, text := range ours {
		own[text] = true
	}
	for i, text := range strings.Split(script, "\n") {
		text, ours := strings.TrimSuffix(text, "\r"), own[text]
		rest, found := strings.CutPrefix(text, "#SBATCH")
		trimmed := strings.TrimSpace(text)
		switch {
		case found:
		case trimmed != "" && trimmed[0] != '#':
			return words, 0, nil // sbatch stops reading here
		case strings.HasPrefix(text, "#SLURM") || strings.HasPrefix(text, "#PBS") || strings.HasPrefix(text, "#BSUB"):
			return nil, i + 1, fmt.Errorf("sbatch would follow %q; write it as an #SBATCH line", text)
		default:
			continue
		}
		list, err := splitWords(rest)
		if err != nil {
			return nil, i + 1, err
		}
		for j, w := range list {
			if lower := strings.ToLower(w); j == 0 && (lower == "hetjob" || lower == "packjob") {
				return nil, i + 1, errors.New("a heterogeneous job has separate options for each part; scalebench submits only jobs with one part")
			}
			words = append(words, word{w, i + 1, ours})
		}
	}
	return words, 0, nil
}

// splitWords splits a line into words as sbatch does: quotes join text and are removed, a backslash quotes the
// next character, and # outside quotes starts a comment.
func splitWords(line string) ([]string, error) {
	var list []string
	var b strings.Builder
	quote, begun := byte(0), false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && c == '#':
			line = line[:i]
		case quote == 0 && strings.IndexByte(" \t\v\f\r", c) >= 0:
			if begun {
				list = append(list, b.String())
				b.Reset()
				begun = false
			}
		default:
			b.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if begun {
		list = append(list, b.String())
	}
	return list, nil
}
