// Package redact keeps secrets out of what others read: records, the database,
// pages, messages. It is the one place that knows what a secret looks like.
//
// A secret is recognised by the name it goes by (--api-key X, PASSWORD=X,
// {"token": "X"}) and by its own shape (a URL's user:password@, a Bearer
// header, the tokens of well-known services, a private key). What cannot be
// recognised is not hidden, so that values which are secrets more often than
// not (the environment of a command) are hidden all, without a look.
//
// What is put in its place is a Key's digest of it, or the word "withheld".
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Key is what digests of secrets are made with. Who has the key can try
// guesses; who has the digest alone cannot. The empty key makes no digests.
type Key []byte

// Withheld takes the place of a secret where there is no key.
const Withheld = "withheld"

const sealed = "sealed-"

var isHidden = regexp.MustCompile(`^(?:` + Withheld + `|` + sealed + `[0-9a-f]{16})$`)

// Hide is what stands in a secret's place: equal for equal secrets under one
// key, so that a change shows. What is hidden already, or empty, stays.
func (k Key) Hide(secret string) string {
	switch {
	case secret == "" || isHidden.MatchString(secret):
		return secret
	case len(k) == 0:
		return Withheld
	}
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(secret))
	return sealed + hex.EncodeToString(mac.Sum(nil)[:8])
}

// Text hides the secrets in a text, without a key.
func Text(text string) string { return Key(nil).Text(text) }

// Text hides the secrets in a text; what surrounds them stays.
func (k Key) Text(text string) string { return hideText(text, k.Hide) }

func hideText(text string, hide func(string) string) string {
	lower := strings.ToLower(text)
	for _, s := range shapes {
		if s.marked(lower) { // what was put in a secret's place has no mark
			text = s.replace(text, hide)
		}
	}
	return text
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

// Variables are the values that are secrets by the names of their variables, of
// an environment as os.Environ has it. A path is none unless its name is plain:
// PWD, SSH_AUTH_SOCK.
func Variables(environment []string) []string {
	var found []string
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && named(name, value) && (strong(name) || !strings.HasPrefix(value, "/")) {
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
		case i > 0 && names(arguments[i-1]) && !option.MatchString(arguments[i]):
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
		return hideText(argument, hide)
	}
	name, value := parts[1], parts[2]
	switch {
	case Name(name):
		return name + hide(value)
	case slices.Contains(userOptions, strings.TrimSuffix(name, "=")):
		return name + hidePassword(value, hide)
	case assignment.MatchString(value): // --env=PASSWORD=x
		return name + hideInOne(value, hide)
	}
	return hideText(argument, hide)
}

// hidePassword hides what follows a user's name.
func hidePassword(text string, hide func(string) string) string {
	user, password, found := strings.Cut(text, ":")
	if !found {
		return text
	}
	return user + ":" + hide(password)
}

// userOptions are options whose value may be USER:PASSWORD, as curl has them.
var userOptions = []string{"-u", "--user", "--proxy-user", "-U"}

// assignment is an argument NAME=VALUE, with or without dashes, or a header
// NAME: VALUE.
var assignment = regexp.MustCompile(`^([-+]{0,2}[A-Za-z_][\w.-]*(?:=|: ))((?s:.+))$`)

var option = regexp.MustCompile(`^--?[A-Za-z][\w.-]*$`)

// names reports whether an argument is an option that says that a secret
// follows.
func names(argument string) bool { return option.MatchString(argument) && Name(argument) }

// Known hides secrets that are known, whatever they look like, and those that
// are recognised. Short ones are left: "INFO" or "true", the value of some
// variable, is a part of many a text.
func Known(secrets []string) func(string) string {
	var pairs []string
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) >= shortest && !isHidden.MatchString(s) {
			pairs = append(pairs, s, Withheld)
		}
	}
	r := strings.NewReplacer(pairs...)
	return func(text string) string { return Text(r.Replace(text)) }
}

// shortest is the length in bytes of the shortest secret that Known looks for.
const shortest = 6
