// Package redact removes secrets from everything that others may read: records, the database, pages
// and messages. All rules about what a secret looks like are here.
//
// A secret is recognised by its name (--api-key X, PASSWORD=X, {"token": "X"}) or by its shape (a
// URL's user:password@, a Bearer header, tokens of well-known services, private keys, random
// characters). Other text is unchanged. The values of a command's environment variables are often
// secrets, so all of them are hidden.
//
// In records, a secret is replaced by a keyed digest, so that points, labels and series with
// different values remain distinct. In messages, it is replaced by the word "withheld".
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Key computes digests of secrets. Guessing a secret from its digest requires the key. The empty
// key computes no digests.
type Key []byte

// Withheld replaces a secret in messages, and is the prefix of its digest in records.
const Withheld = "withheld"

// former is the prefix of the digests in earlier versions, which are otherwise equal.
const former = "sealed-"

const hex16 = `[0-9a-f]{16}`

var (
	isHidden  = regexp.MustCompile(`^(?:` + Withheld + `(?::` + hex16 + `)?|` + former + hex16 + `)$`)
	isFormer  = regexp.MustCompile(former + `(` + hex16 + `)\b`)
	digestive = regexp.MustCompile(`(?:` + Withheld + `:|` + former + `)` + hex16)
)

// Hide returns the replacement of a secret. With the same key, equal secrets have equal
// replacements. An empty text is unchanged, and so is one that is already hidden.
func (k Key) Hide(secret string) string {
	switch {
	case secret == "":
		return secret
	case isHidden.MatchString(secret):
		return Renamed(secret)
	case len(k) == 0:
		return Withheld
	}
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(secret))
	return Withheld + ":" + hex.EncodeToString(mac.Sum(nil)[:8])
}

// Renamed converts the digests of earlier versions in a text to the present form.
func Renamed(text string) string {
	if !strings.Contains(text, former) {
		return text
	}
	return isFormer.ReplaceAllString(text, Withheld+":$1")
}

// Merged reports whether a text has secrets that an earlier version replaced by the same word. Two
// such texts may look equal although their secrets differed.
func Merged(text string) bool {
	for {
		i := strings.Index(text, Withheld)
		if i < 0 {
			return false
		}
		if text = text[i+len(Withheld):]; !strings.HasPrefix(text, ":") {
			return true
		}
	}
}

// Matches reports whether hidden can be the result of Hide, Text or Arguments for plain.
func (k Key) Matches(hidden, plain string) bool {
	at := digestive.FindStringIndex(hidden)
	if at == nil || len(k) == 0 {
		return hidden == plain
	}
	plain, found := strings.CutPrefix(plain, hidden[:at[0]])
	if !found {
		return false
	}
	digest, rest := Renamed(hidden[at[0]:at[1]]), hidden[at[1]:]
	if strings.HasPrefix(plain, hidden[at[0]:at[1]]) && k.Matches(rest, plain[at[1]-at[0]:]) {
		return true // nothing is hidden
	}
	literal := rest
	if next := digestive.FindStringIndex(rest); next != nil {
		literal = rest[:next[0]]
	}
	for end := len(plain); end > 0; end-- {
		if rest == "" && end < len(plain) {
			return false
		}
		if strings.HasPrefix(plain[end:], literal) && k.Hide(plain[:end]) == digest && k.Matches(rest, plain[end:]) {
			return true
		}
	}
	return false
}

// A Hider returns the replacement of a secret.
type Hider func(secret string) string

// Value hides the value of a parameter: all of it if the name is a secret's, otherwise the
// secrets in its text. Types are string, bool, int64, float64 or a list of these.
func (hide Hider) Value(name string, v any) any {
	switch v := v.(type) {
	case string:
		if Named(name, v) {
			return hide(v)
		}
		return hide.Text(v)
	case int64, float64:
		if text := fmt.Sprint(v); Named(name, text) {
			return hide(text)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = hide.Value(name, v[i])
		}
		return list
	}
	return v
}

// Remembering returns a function like Value that remembers its results, because the rows of a table have many equal
// values. Without a name, it hides the secrets in a text. It is not safe for concurrent use.
func (hide Hider) Remembering() func(name string, v any) any {
	type parameter struct {
		name  string
		value any
	}
	const most = 1000
	results := map[parameter]any{}
	return func(name string, v any) any {
		switch v.(type) {
		case string, int64, float64:
		default: // a list cannot be a key
			return hide.Value(name, v)
		}
		p := parameter{name, v}
		result, known := results[p]
		if !known {
			if len(results) == most {
				clear(results)
			}
			result = hide.Value(name, v)
			results[p] = result
		}
		return result
	}
}

// Value is Hider.Value with the key's digests.
func (k Key) Value(name string, v any) any { return Hider(k.Hide).Value(name, v) }

// Text hides the secrets in a text, without a key.
func Text(text string) string { return Key(nil).Text(text) }

// Text hides the secrets in a text; what surrounds them stays.
func (k Key) Text(text string) string { return Hider(k.Hide).Text(text) }

// Text hides the secrets in a text; what surrounds them stays.
func (hide Hider) Text(text string) string {
	text = Renamed(text)
	lower := strings.ToLower(text)
	for _, s := range shapes {
		if s.marked(lower) { // digests contain no mark
			text = s.replace(text, hide)
		}
	}
	return hideKeys(text, hide)
}

// Arguments hides the secrets in a command line. An argument may be the name of the next one.
func (k Key) Arguments(arguments []string) []string { return hideIn(arguments, k.Hide) }

// Secrets returns the secrets that Arguments hides.
func Secrets(arguments []string) []string {
	var found []string
	hideIn(arguments, func(secret string) string {
		if secret != "" && !isHidden.MatchString(secret) {
			found = append(found, secret)
		}
		return Key(nil).Hide(secret)
	})
	return found
}

// Variables returns the secret values in an environment in the form of os.Environ, judging by the
// variables' names. If a name is also common elsewhere, as in PWD or SSH_AUTH_SOCK, a path is not a
// secret.
func Variables(environment []string) []string {
	var found []string
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && Named(name, value) && (secretName(name) || !strings.HasPrefix(value, "/")) {
			found = append(found, value)
		}
	}
	return found
}

func hideIn(arguments []string, hide func(string) string) []string {
	list := slices.Clone(arguments)
	var program *passwordOption // the last known program
	for i := range list {
		if p := optionOf(arguments[i]); p != nil {
			program = p
		}
		switch value := program.value(arguments, i); {
		case value != "":
			list[i] = strings.TrimSuffix(arguments[i], value) + hide(value)
		case i > 0 && option.MatchString(arguments[i-1]) && !option.MatchString(arguments[i]) && Named(arguments[i-1], arguments[i]):
			list[i] = hide(arguments[i])
		case i > 0 && slices.Contains(userOptions, arguments[i-1]):
			list[i] = hidePassword(arguments[i], hide)
		default:
			list[i] = hideInOne(arguments[i], hide)
		}
	}
	return list
}

// hideInOne hides the secrets in a single argument. If it contains the name of a secret, the secret
// is everything after the name.
func hideInOne(argument string, hide func(string) string) string {
	parts := assignment.FindStringSubmatch(argument)
	if parts == nil {
		return Hider(hide).Text(argument)
	}
	name, value := parts[1], parts[2]
	switch {
	case Named(name, value), cookie.MatchString(name):
		return name + hide(value)
	case slices.Contains(userOptions, strings.TrimSuffix(name, "=")):
		return name + hidePassword(value, hide)
	case assignment.MatchString(value): // --env=PASSWORD=x
		return name + hideInOne(value, hide)
	}
	return Hider(hide).Text(argument)
}

// hidePassword hides the password in USER:PASSWORD.
func hidePassword(text string, hide func(string) string) string {
	user, password, found := strings.Cut(text, ":")
	if !found || isHidden.MatchString(text) {
		return text
	}
	return user + ":" + hide(password)
}

// userOptions are options whose value may be USER:PASSWORD, as in curl.
var userOptions = []string{"-u", "--user", "--proxy-user", "-U"}

// assignment matches an argument NAME=VALUE, with or without dashes, or a header NAME: VALUE.
var assignment = regexp.MustCompile(`^([-+]{0,2}[A-Za-z_][\w.-]*(?:=|: ))((?s:.+))$`)

// cookie matches headers whose whole value is secret.
var cookie = regexp.MustCompile(`^(?i:set-)?(?i:cookie): $`)

var option = regexp.MustCompile(`^--?[A-Za-z][\w.-]*$`)

// Known is Hider.Known without a key, for messages.
func Known(secrets []string) func(string) string { return Hider(Key(nil).Hide).Known(secrets) }

// Known hides the given secrets and those that are recognised. It does not hide short given ones,
// because a value such as "INFO" or "true" is part of many texts.
func (hide Hider) Known(secrets []string) func(string) string {
	var pairs []string
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= shortest && !isHidden.MatchString(s) {
			pairs = append(pairs, s, hide(s))
		}
	}
	if len(pairs) == 0 {
		return hide.Text
	}
	r := strings.NewReplacer(pairs...)
	return func(text string) string { return hide.Text(r.Replace(text)) }
}

// shortest is the minimum length, in bytes, of the given secrets that Known hides.
const shortest = 6
