package redact

import (
	"regexp"
	"slices"
	"strings"
)

// A shape is a form in which secrets appear in a text. Its groups are the text
// before the secret, in it the secret's name, if it has one, and the secret.
type shape struct {
	pattern *regexp.Regexp
	// marks are parts of which every text with this shape has one, in lower case.
	// Most texts have none: to look for them first costs little, and a million
	// lines of a log are read in seconds.
	marks []string
	// is looks at the name and the secret; nil: always one.
	is func(name, secret string) bool
	// prose matches what is not a secret, from where the secret would begin; nil: none.
	prose *regexp.Regexp
}

// shapes are looked for one after the other.
var shapes = []shape{
	{pattern: regexp.MustCompile(`()(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$))`), marks: []string{"private key"}},
	// The password may hold an @: the last one before the path counts.
	{pattern: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:)([^\s/?#"'<>]+)@`), marks: []string{"://"}},
	{pattern: regexp.MustCompile(`((?i:https?)://)([^\s/?#:@"'<>]+)@`), marks: []string{"://"}},
	// https://user:x@host as a part of another address
	{pattern: regexp.MustCompile(`((?i:%3A%2F%2F)[^\s"'%]*(?i:%3A))([^\s"'%]+(?:%[0-9A-Fa-f]{2}[^\s"'%]+)*?)%40`), marks: []string{"%40"}},
	{pattern: regexp.MustCompile(`(https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks/[0-9]+|[\w-]+\.webhook\.office\.com/webhookb2)/)([\w@/-]+)`), marks: []string{"hooks.slack.com", "/api/webhooks/", "webhook.office.com"}},
	{pattern: regexp.MustCompile(`((?i:\b(?:basic|digest|negotiate))\s+)([A-Za-z0-9._~+/=-]{8,})`), marks: []string{"basic", "digest", "negotiate"}, is: func(_, secret string) bool { return mixed(secret) }},
	{pattern: regexp.MustCompile(`((?i:\bbearer)\s+)([^\s"',;]{8,})`), marks: []string{"bearer"}},
	{pattern: regexp.MustCompile(`((?i:authorization)["']?\s*[:=]\s*["']?(?:(?i:bearer|basic|token|digest|negotiate|apikey)\s+)?)([^\s"',;]+)`), marks: []string{"authorization"}},
	{pattern: regexp.MustCompile(`((?i:cookie)["']?:\s*)([^"'\n]+)`), marks: []string{"cookie"}},
	{pattern: regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)\s+["']?[^\s:"'-][^\s:"']*:)([^\s"']+)`), marks: []string{"-u", "--proxy-user"}},
	// A signed address: whoever has it may use it, however short the signature.
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
	// --password 'a b', where a shell's line is one argument
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)\s+\\*")((?:[^"\\]|\\[^"])+)`), marks: nameMarks, is: Named},
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)\s+')([^']+)`), marks: nameMarks, is: Named},
	// JSON with numbers, or within a text: {"token": 1234}, {\"token\": \"x\"}; "token" => "x"
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)\\*["']\s*[=:]>?\s*(?:\[\s*)?\\*["']?)([^\s"'\\,;}\]]+)`), marks: nameMarks, is: Named},
	// <password>x</password>; <add key="Password" value="x"/>, {"name": "DB_PASSWORD", "value": "x"}
	{pattern: regexp.MustCompile(`(<([A-Za-z_][\w:.-]*)(?:\s[^<>]*)?>\s*)([^<>\s](?:[^<>]*[^<>\s])?)\s*</`), marks: nameMarks, is: func(name, secret string) bool { return secretName(name) && Named(name, secret) }},
	{pattern: regexp.MustCompile(`((?i:name|key)\\*["']?\s*[=:]\s*\\*["']?([A-Za-z_][\w.-]*)\\*["']?,?\s*\\*["']?(?i:value)\\*["']?\s*[=:]\s*\\*["']?)([^\s"'\\,;}\]<>]+)`), marks: nameMarks, is: func(name, secret string) bool { return secretName(name) && Named(name, secret) }},
	// token%3Dx, to the next %26
	{pattern: regexp.MustCompile(`((?:^|%[0-9A-Fa-f]{2}|[^\w.%-])([A-Za-z_][\w.-]*)%(?:25)*3[Dd])((?:[^\s"'&;,%]|%(?:[013-9A-Fa-f][0-9A-Fa-f]|2[0-57-9A-Fa-f]))+)`), marks: nameMarks, is: Named},
	// PASSWORD = x, password := "x", password=\"x\"
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)\s*:?=\s*\\*["']?)([^\s"'\\&;,]+)`), marks: nameMarks, is: Named},
	// --set=password=x: the value of one name is another one's name
	{pattern: regexp.MustCompile(`(=([A-Za-z_][\w.-]*)=)([^\s"'&;,]+)`), marks: nameMarks, is: Named},
	// PASSWORD=x, --password=x, ?api_key=x&…
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)=)([^\s"'&;,]+)`), marks: nameMarks, is: Named},
	// X-Api-Key: x, password: x
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*):\s*)([^\s"',;]+)`), marks: nameMarks, is: func(name, secret string) bool { return secretName(name) && Named(name, secret) }, prose: sentence},
	// --api-key x
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)(?:["']?,?\s+["']?|\\*["'],\\*["']))([^\s"'\\-][^\s"'\\]*)`), marks: nameMarks, is: Named},
}

// mixed reports whether a text is no word of a language: it has a digit, or
// upper case behind its first letter.
func mixed(secret string) bool {
	return strings.ContainsAny(secret, "0123456789") || strings.ToLower(secret[1:]) != secret[1:]
}

// sentence is how the rest of a message begins: "study.toml: parameters.token: is
// not a placeholder".
var sentence = regexp.MustCompile(`^[a-z]+ [a-z(]`)

// marked reports whether a text in lower case may have the shape.
func (s shape) marked(lower string) bool {
	return slices.ContainsFunc(s.marks, func(mark string) bool { return strings.Contains(lower, mark) })
}

var digit16 = regexp.MustCompile(`^` + hex16 + `$`)

// replace replaces every secret of the shape by hide's answer. A digest is not
// taken for the password of a user called "withheld".
func (s shape) replace(text string, hide func(string) string) string {
	at := 0
	var b strings.Builder
	for _, m := range s.pattern.FindAllStringSubmatchIndex(text, -1) {
		last := len(m) - 2 // of the secret
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
