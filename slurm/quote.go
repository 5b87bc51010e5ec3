package slurm

import (
	"fmt"
	"strings"
	"unicode"
)

// Quote writes a value as one word of bash, whatever is in it, newlines and
// bytes that are no UTF-8 included. Only a NUL cannot be passed to a program.
// A word that needs no quotes has none, so that scripts stay readable.
func Quote(value string) (string, error) {
	if i := strings.IndexByte(value, 0); i >= 0 {
		return "", fmt.Errorf("%q holds a NUL byte, which no program can be given", value)
	}
	if plain(value) {
		return value, nil
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", nil
}

// plain reports whether bash reads the word as it stands. An '=' could make it
// an assignment, unless the word starts like an option.
func plain(word string) bool {
	for _, c := range []byte(word) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("_-./:,@%+", c) >= 0:
		case c == '=' && word[0] == '-':
		default:
			return false
		}
	}
	return word != ""
}

// directive writes an #SBATCH line. sbatch cuts these lines into words itself:
// inside double quotes it takes everything as it stands, dollar signs and
// backquotes too, but for a backslash, which stands for the character after
// it. (In single quotes a backslash vanishes as well, and an unquoted '#' ends
// the line.) A line break would end the directive, and what follows it would
// be run as a command, so that control characters are refused.
func directive(name, value string) (string, error) {
	if i := strings.IndexFunc(value, unicode.IsControl); i >= 0 {
		return "", fmt.Errorf("--%s=%q holds a control character, which an #SBATCH line cannot", name, value)
	}
	if value == "" {
		return "#SBATCH --" + name, nil
	}
	if !plain(value) {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return "#SBATCH --" + name + "=" + value, nil
}
