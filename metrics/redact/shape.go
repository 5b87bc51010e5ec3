package redact

import (
	"regexp"
	"slices"
	"strings"
)

// A shape is a pattern of secrets in text. Its groups are the text before the secret, the secret's
// name within it (if any), and the secret.
type shape struct {
	pattern *regexp.Regexp
	// marks are strings in lower case; every text with this shape contains at least one. Most texts
	// contain none. Checking for them first is cheap, so that a million lines of a log take
	// seconds.
	marks []string
	// is reports whether a match is a secret, by its name and value; nil: always.
	is func(name, secret string) bool
	// prose matches, at the start of a possible secret, text that is not one; nil: no such text.
	prose *regexp.Regexp
}

// shapes are applied in this order.
var shapes = []shape{
	{pattern: regexp.MustCompile(`()(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$))`), marks: []string{"private key"}},
	// The password may contain an @: the last one before the path ends it.
	{pattern: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:)([^\s/?#"'<>]+)@`), marks: []string{"://"}},
	{pattern: regexp.MustCompile(`((?i:https?)://)([^\s/?#:@"'<>]+)@`), marks: []string{"://"}},
	// https://user:x@host, percent-encoded in another URL
	{pattern: regexp.MustCompile(`((?i:%3A%2F%2F)[^\s"'%]*(?i:%3A))([^\s"'%]+(?:%[0-9A-Fa-f]{2}[^\s"'%]+)*?)%40`), marks: []string{"%40"}},
	{pattern: regexp.MustCompile(`(https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks/[0-9]+|[\w-]+\.webhook\.office\.com/webhookb2)/)([\w@/-]+)`), marks: []string{"hooks.slack.com", "/api/webhooks/", "webhook.office.com"}},
	{pattern: regexp.MustCompile(`((?i:\b(?:basic|digest|negotiate))\s+)([A-Za-z0-9._~+/=-]{8,})`), marks: []string{"basic", "digest", "negotiate"}, is: func(_, secret string) bool { return mixed(secret) }},
	{pattern: regexp.MustCompile(`((?i:\bbearer)\s+)([^\s"',;]{8,})`), marks: []string{"bearer"}},
	{pattern: regexp.MustCompile(`((?i:authorization)["']?\s*[:=]\s*["']?(?:(?i:bearer|basic|token|digest|negotiate|apikey)\s+)?)([^\s"',;]+)`), marks: []string{"authorization"}},
	{pattern: regexp.MustCompile(`((?i:cookie)["']?:\s*)([^"'\n]+)`), marks: []string{"cookie"}},
	{pattern: regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)\s+["']?[^\s:"'-][^\s:"']*:)([^\s"']+)`), marks: []string{"-u", "--proxy-user"}},
	// A signed URL gives access to anyone, even if its signature is short.
	{pattern: regexp.MustCompile(`([?&](?i:sig|signature|x-(?:amz|goog)-signature|x-amz-security-token)=)([^\s"'&;,]+)`), marks: []string{"sig", "x-amz-security-token"}},
	// A connection string: Server=x;User=y;Pwd=z
	{pattern: regexp.MustCompile(`(;\s*(?i:pwd)\s*=\s*)([^\s"';/$][^\s"';]*)`), marks: []string{"pwd"}},
	passwordShape(),
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60\[,])-p)([^\s"'\\,;|&\]-][^\s"'\\,;|&\]]*)`), marks: []string{"-p"}, is: func(_, secret string) bool { return attached(secret) }},
	{pattern: regexp.MustCompile(`()\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)`), marks: []string{"eyj"}},
	tokenShape(),
	// Databricks', Pulumi's, Mailgun's
	{pattern: regexp.MustCompile(`()\b((?:dapi|pul-|key-)[0-9a-f]{32,})\b`), marks: []string{"dapi", "pul-", "key-"}},
	// Azure's, Telegram's, Terraform's
	{pattern: regexp.MustCompile(`()([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})`), marks: []string{"q~"}},
	{pattern: regexp.MustCompile(`()\b([0-9]{8,10}:AA[A-Za-z0-9_-]{32,})`), marks: []string{":aa"}},
	{pattern: regexp.MustCompile(`()\b([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9=_-]{32,})`), marks: []string{".atlasv1."}},
	{pattern: regexp.MustCompile(`()\b((?:AKIA|ASIA|AROA|AIDA|ANPA)[A-Z0-9]{12,})`), marks: []string{"akia", "asia", "aroa", "aida", "anpa"}},
	// {"token": "x"}, token='x y'
	{pattern: regexp.MustCompile(`(["']?([A-Za-z_][\w.-]*)["']?\s*[=:]\s*")((?:[^"\\]|\\.)+)`), marks: nameMarks, is: Named},
	{pattern: regexp.MustCompile(`(["']?([A-Za-z_][\w.-]*)["']?\s*[=:]\s*')([^']+)`), marks: nameMarks, is: Named},
	// --password 'a b' within an argument that is a shell command line
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)\s+\\*")((?:[^"\\]|\\[^"])+)`), marks: nameMarks, is: Named},
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)\s+')([^']+)`), marks: nameMarks, is: Named},
	// JSON with numbers, or JSON within a string: {"token": 1234}, {\"token\": \"x\"}; "token" =>
	// "x"
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)\\*["']\s*[=:]>?\s*(?:\[\s*)?\\*["']?)([^\s"'\\,;}\]]+)`), marks: nameMarks, is: Named},
	// <password>x</password>; <add key="Password" value="x"/>, {"name": "DB_PASSWORD", "value": "x"}
	{pattern: regexp.MustCompile(`(<([A-Za-z_][\w:.-]*)(?:\s[^<>]*)?>\s*)([^<>\s](?:[^<>]*[^<>\s])?)\s*</`), marks: nameMarks, is: func(name, secret string) bool { return secretName(name) && Named(name, secret) }},
	{pattern: regexp.MustCompile(`((?i:name|key)\\*["']?\s*[=:]\s*\\*["']?([A-Za-z_][\w.-]*)\\*["']?,?\s*\\*["']?(?i:value)\\*["']?\s*[=:]\s*\\*["']?)([^\s"'\\,;}\]<>]+)`), marks: nameMarks, is: func(name, secret string) bool { return secretName(name) && Named(name, secret) }},
	// token%3Dx, up to the next %26
	{pattern: regexp.MustCompile(`((?:^|%[0-9A-Fa-f]{2}|[^\w.%-])([A-Za-z_][\w.-]*)%(?:25)*3[Dd])((?:[^\s"'&;,%]|%(?:[013-9A-Fa-f][0-9A-Fa-f]|2[0-57-9A-Fa-f]))+)`), marks: nameMarks, is: Named},
	// PASSWORD = x, password := "x", password=\"x\"
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)\s*:?=\s*\\*["']?)([^\s"'\\&;,]+)`), marks: nameMarks, is: Named},
	// --set=password=x: the value of the first name is itself NAME=VALUE
	{pattern: regexp.MustCompile(`(=([A-Za-z_][\w.-]*)=)([^\s"'&;,]+)`), marks: nameMarks, is: Named},
	// PASSWORD=x, --password=x, ?api_key=x&…
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)=)([^\s"'&;,]+)`), marks: nameMarks, is: Named},
	// X-Api-Key: x, password: x
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*):\s*)([^\s"',;]+)`), marks: nameMarks, is: func(name, secret string) bool { return secretName(name) && Named(name, secret) }, prose: sentence},
	// --api-key x
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)(?:["']?,?\s+["']?|\\*["'],\\*["']))([^\s"'\\-][^\s"'\\]*)`), marks: nameMarks, is: Named},
}

// mixed reports whether a text is not an ordinary word: it has a digit, or an upper-case letter
// after the first character.
func mixed(secret string) bool {
	return strings.ContainsAny(secret, "0123456789") || strings.ToLower(secret[1:]) != secret[1:]
}

// sentence matches the start of a message after a name, as in "study.toml: parameters.token: is not
// a placeholder".
var sentence = regexp.MustCompile(`^[a-z]+ [a-z(]`)

// marked reports whether a text in lower case contains a mark of the shape.
func (s shape) marked(lower string) bool {
	return slices.ContainsFunc(s.marks, func(mark string) bool { return strings.Contains(lower, mark) })
}

var digit16 = regexp.MustCompile(`^` + hex16 + `$`)

// replace replaces every secret of the shape by the result of hide. It does not mistake a digest
// for the password of a user called "withheld".
func (s shape) replace(text string, hide func(string) string) string {
	at := 0
	var b strings.Builder
	for _, m := range s.pattern.FindAllStringSubmatchIndex(text, -1) {
		last := len(m) - 2 // index of the secret's group
		name, secret := "", text[m[last]:m[last+1]]
		if last > 4 {
			name = text[m[4]:m[5]]
		}
		if s.is != nil && !s.is(name, secret) || s.prose != nil && s.prose.MatchString(text[m[last]:]) || digit16.MatchString(secret) && strings.HasSuffix(text[:m[last]], Withheld+":") {
			continue
		}
		b.WriteString(text[at:m[last]])
		b.WriteString(hide(secret))
		at = m[last+1]
	}
	return b.String() + text[at:]
}
