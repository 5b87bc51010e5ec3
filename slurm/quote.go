package slurm

import (
	"fmt"
	"strings"
	"unicode"
)

// Quote returns a value as one word of bash, for any value including newlines and invalid UTF-8. Only NUL is an
// error: programs cannot receive it. A word that needs no quotes gets none, so that scripts stay readable.
func Quote(value string) (string, error) {
	if i := strings.IndexByte(value, 0); i >= 0 {
		return "", fmt.Errorf("%q contains a NUL byte, which arguments cannot contain", value)
	}
	if plain(value) {
		return value, nil
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", nil
}

// plain reports whether bash reads the word unchanged. An '=' could make it an assignment, unless the word
// starts like an option.
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

// directive returns an #SBATCH line. sbatch splits these lines into words by its own rules. Inside double
// quotes only a backslash is special: it quotes the next character; dollar signs and backquotes are literal.
// (In single quotes a backslash disappears too, and an unquoted '#' ends the line.) Control characters are
// refused: bash would run the text after a line break as a command.
func directive(name, value string) (string, error) {
	if i := strings.IndexFunc(value, unicode.IsControl); i >= 0 {
		return "", fmt.Errorf("--%s=%q contains a control character, which an #SBATCH line cannot contain", name, value)
	}
	if value == "" {
		return "#SBATCH --" + name, nil
	}
	if !plain(value) {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return "#SBATCH --" + name + "=" + value, nil
}
