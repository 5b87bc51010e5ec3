// Package redact keeps secrets out of what others read: records, the database,
// pages, messages. It is the one place that knows what a secret looks like.
//
// A secret is recognised by its name (--api-key X, PASSWORD=X, {"token": "X"})
// or by its shape (a URL's user:password@, a Bearer header, tokens of well-known
// services, private keys, random characters). Anything else stays, except the
// values of a command's environment: they are often secrets, and all are hidden.
//
// In records a keyed digest replaces a secret, so different values stay different
// points, labels and series. In messages the word "withheld" replaces it.
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

// A Key makes digests of secrets. Whoever has it can test guesses; the digest
// alone is not enough. The empty key makes no digests.
type Key []byte

// Withheld replaces a secret in messages, and begins its digest in records.
const Withheld = "withheld"

// former begins the digests of earlier versions, which are otherwise the same.
const former = "sealed-"

const hex16 = `[0-9a-f]{16}`

var (
	isHidden  = regexp.MustCompile(`^(?:` + Withheld + `(?::` + hex16 + `)?|` + former + hex16 + `)$`)
	isFormer  = regexp.MustCompile(former + `(` + hex16 + `)\b`)
	digestive = regexp.MustCompile(`(?:` + Withheld + `:|` + former + `)` + hex16)
)

// Hide returns what replaces a secret: equal for equal secrets under one key, so
// a change shows. An empty text stays, and so does one that is hidden already.
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

// Renamed rewrites the digests of earlier versions in a text, so that they equal
// those of today.
func Renamed(text string) string {
	if !strings.Contains(text, former) {
		return text
	}
	return isFormer.ReplaceAllString(text, Withheld+":$1")
}

// Merged reports whether a text has secrets that an earlier version replaced by
// one word: of two such texts nothing tells whether they were equal.
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

// Matches reports whether a text is what Hide, Text or Arguments made of a plain
// one, whichever parts they took for secrets.
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
		return true // nothing was hidden here
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

// A Hider returns what replaces a secret.
type Hider func(secret string) string

// Value hides a value that goes by a name: all of it if the name makes it a
// secret, else the secrets in its texts. Values are those of parameters: string,
// bool, int64, float64 or a list of these.
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
		if s.marked(lower) { // digests have no mark
			text = s.replace(text, hide)
		}
	}
	return hideKeys(text, hide)
}

// Arguments hides the secrets in a command line, of which each argument may
// name what the next one is.
func (k Key) Arguments(arguments []string) []string { return hideIn(arguments, k.Hide) }

// Secrets are what Arguments hides.
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

// Variables returns the values that are secrets by the names of their variables,
// of an environment as os.Environ has it. Under a weaker name a path is not a
// secret: PWD, SSH_AUTH_SOCK.
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
	var program *passwordOption // the last one that is known
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

// hideInOne hides the secrets in an argument that stands by itself. What
// follows the name of a secret in it is the secret to its end.
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

// hidePassword hides what follows a user's name.
func hidePassword(text string, hide func(string) string) string {
	user, password, found := strings.Cut(text, ":")
	if !found || isHidden.MatchString(text) {
		return text
	}
	return user + ":" + hide(password)
}

// userOptions are options whose value may be USER:PASSWORD, as curl has them.
var userOptions = []string{"-u", "--user", "--proxy-user", "-U"}

// assignment is an argument NAME=VALUE, with or without dashes, or a header
// NAME: VALUE.
var assignment = regexp.MustCompile(`^([-+]{0,2}[A-Za-z_][\w.-]*(?:=|: ))((?s:.+))$`)

// cookie is the name of a header whose whole value is secret.
var cookie = regexp.MustCompile(`^(?i:set-)?(?i:cookie): $`)

var option = regexp.MustCompile(`^--?[A-Za-z][\w.-]*$`)

// Known is Hider.Known without a key, for messages.
func Known(secrets []string) func(string) string { return Hider(Key(nil).Hide).Known(secrets) }

// Known hides secrets that are known, whatever they look like, and those that
// are recognised. Short ones are left: "INFO" or "true", the value of some
// variable, is a part of many texts.
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

// shortest is the length in bytes of the shortest secret that Known looks for.
const shortest = 6
