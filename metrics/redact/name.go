package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Name reports whether what goes by this name (an environment variable, an
// option, a key) is likely to be a secret. Upper and lower case are the same.
func Name(name string) bool {
	return strong(name) || !about(name) && slices.ContainsFunc(words(name), func(word string) bool {
		return slices.Contains(weakWords, word) || strings.HasSuffix(word, "key") || strings.HasPrefix(word, "cred")
	})
}

// about reports whether a name is of something about a secret, or a number of
// them: token_count, KeyError.
func about(name string) bool {
	list := words(name)
	return len(list) > 1 && slices.Contains(aboutWords, list[len(list)-1])
}

var aboutWords = []string{"count", "counts", "length", "len", "size", "sizes", "limit", "budget", "type", "mode", "version", "depth", "error", "dim", "index", "mask", "memory"}

// weakWords mean a secret in a name, and many other things in prose.
var weakWords = []string{"key", "keys", "apikeys", "auth", "oauth", "private", "pass", "pw", "pwd", "pin", "jwt", "cookie", "bearer", "authorization", "authentication", "signature", "sig", "dsn"}

// strongPart means a secret wherever it stands in a name. A number of tokens
// and a tokenizer are a model's.
var strongPart = regexp.MustCompile(`(?i)passw|passphrase|passcode|secret|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|oauth|token(?:[^si]|$)`)

// nameMarks are in lower case what every name of a secret has a part of.
var nameMarks = []string{"key", "auth", "priv", "pass", "pw", "pin", "jwt", "cookie", "bearer", "sig", "dsn", "secret", "cred", "token"}

// strong reports whether a name means a secret in prose, too.
func strong(name string) bool { return strongPart.MatchString(name) && !about(name) }

// words are the words of a name in lower case: "vaultToken", "VAULT_TOKEN" and
// "--vault-token" have the same two.
func words(name string) []string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1]) {
			b.WriteByte(' ')
		}
		if !unicode.IsLetter(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
