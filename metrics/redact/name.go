package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// secretName reports whether a name (of a variable, option or key) names a secret, regardless
// of the value. It compares whole words and ignores case: HF_TOKEN, --api-key and clientSecret are
// names of secrets; kv_token, attn.key, cache-key and tokenizer are not.
func secretName(name string) bool {
	list := words(name)
	if len(list) == 0 || len(list) > 1 && slices.Contains(aboutWords, list[len(list)-1]) {
		return false
	}
	for i, word := range list {
		switch {
		case secretWord.MatchString(word):
			return true
		case i > 0 && (word == "key" || word == "keys") && slices.Contains(keyOwners, list[i-1]):
			return true
		}
	}
	last := list[len(list)-1]
	return last == "token" && !slices.ContainsFunc(list[:len(list)-1], func(word string) bool { return slices.Contains(modelWords, word) })
}

// Named reports whether the value with this name is a secret. The name alone may decide; a name
// that is also common elsewhere counts only if the value looks random.
func Named(name, value string) bool {
	if secretName(name) {
		return !slices.Contains(plainValues, strings.ToLower(value))
	}
	return slices.ContainsFunc(words(name), weak) && random(value)
}

// secretWord matches words in the names of secrets. They are often part of a longer word:
// PGPASSWORD, sshkey.
var secretWord = regexp.MustCompile(`(?:password|passwd|passphrase|passcode)s?$|secrets?$|^(?:credentials?|creds?|oauth|jwt)$|(?:api|access|private|secret|ssh)keys?$|(?:api|access|auth)token$`)

// keyOwners are words before "key" in the names of secrets.
var keyOwners = []string{"api", "access", "private", "secret", "ssh", "account", "signing", "signature", "encryption", "master", "auth", "storage", "shared", "subscription", "deploy", "service", "app", "admin"}

// modelWords are words before "token" in names that are not those of secrets, but of a text's
// tokens: pad_token, kv_token.
var modelWords = []string{"kv", "pad", "padding", "eos", "bos", "sos", "eot", "cls", "sep", "mask", "unk", "unknown", "image", "audio", "video", "speech", "text", "special", "extra", "added",
	"start", "end", "stop", "begin", "first", "last", "next", "prev", "new", "per", "num", "n", "max", "min", "total", "prompt", "draft", "prefix", "suffix", "sink", "register", "think", "patch", "visual", "cache", "by", "each", "every", "drop", "route", "top"}

// aboutWords are last words of names that describe a property instead of the secret: token_count,
// KeyError.
var aboutWords = []string{"count", "counts", "length", "len", "size", "sizes", "limit", "budget", "type", "mode", "version", "depth", "error", "dim", "index", "mask", "memory"}

// plainValues are values that are never secrets, as in use_auth_token = true.
var plainValues = []string{"", "true", "false", "none", "null", "yes", "no", "on", "off", "auto"}

// weakWords are common both in names of secrets and in other names.
var weakWords = []string{"key", "keys", "auth", "private", "pass", "pw", "pwd", "pin", "cookie", "bearer", "authorization", "authentication", "signature", "sig", "sas", "dsn", "token", "tokens"}

func weak(word string) bool {
	return slices.Contains(weakWords, word) || strings.HasSuffix(word, "key")
}

// nameMarks are parts of names, in lower case. A text without any of them contains no name of a
// secret.
var nameMarks = []string{"key", "auth", "priv", "pass", "pw", "pin", "jwt", "cookie", "bearer", "sig", "sas", "dsn", "secret", "cred", "token"}

// words splits a name into words in lower case: "vaultToken", "VAULT_TOKEN" and
// "--vault-token" have the same two.
func words(name string) []string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte(' ')
		}
		if !unicode.IsLetter(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
