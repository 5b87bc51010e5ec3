package redact

import (
	"regexp"
	"slices"
	"strings"
)

// shape is a way in which a secret stands in a text. Its groups are what is
// before the secret, and the secret.
type shape struct {
	pattern *regexp.Regexp
	// marks are parts of which every text with this shape has one, in lower case.
	// Most texts have none: to look for them first costs little, and a million
	// lines of a log are read in seconds.
	marks []string
	// is looks at what the groups before the secret say; nil: always one.
	is func(before, secret string) bool
}

// shapes are looked for one after the other. Each has two groups, "" or what
// stands before the secret, and the secret itself.
var shapes = []shape{
	{pattern: regexp.MustCompile(`()(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$))`), marks: []string{"private key"}},
	// The password may hold an @: the last one before the path counts.
	{pattern: regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:@"'<>]*:)([^\s/?#"'<>]+)@`), marks: []string{"://"}},
	{pattern: regexp.MustCompile(`((?i:https?)://)([^\s/?#:@"'<>]+)@`), marks: []string{"://"}},
	{pattern: regexp.MustCompile(`(https://hooks\.slack\.com/(?:services|workflows)/)([\w/-]+)`), marks: []string{"hooks.slack.com"}},
	{pattern: regexp.MustCompile(`((?i:\b(?:basic|digest|negotiate))\s+)([A-Za-z0-9._~+/=-]{8,})`), marks: []string{"basic", "digest", "negotiate"}, is: func(_, secret string) bool { return mixed(secret) }},
	{pattern: regexp.MustCompile(`((?i:\bbearer)\s+)([^\s"',;]{8,})`), marks: []string{"bearer"}},
	{pattern: regexp.MustCompile(`((?i:authorization)["']?\s*[:=]\s*["']?(?:(?i:bearer|basic|token|digest|negotiate|apikey)\s+)?)([^\s"',;]+)`), marks: []string{"authorization"}},
	{pattern: regexp.MustCompile(`((?i:cookie)["']?:\s*)([^"'\n]+)`), marks: []string{"cookie"}},
	{pattern: regexp.MustCompile(`((?:^|\s)(?:-u|--user|--proxy-user)\s+["']?[^\s:"'-][^\s:"']*:)([^\s"']+)`), marks: []string{"-u", "--proxy-user"}},
	{pattern: regexp.MustCompile(`()\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*)`), marks: []string{"eyj"}},
	{pattern: regexp.MustCompile(`()\b((?:hf_|gh[pousr]_|github_pat_|glpat-|gldt-|dckr_pat_|npm_|pypi-|nvapi-|hvs\.|hvb\.|xox[a-z]-|xapp-|sk-|sk_live_|sk_test_|rk_live_|r8_|gsk_|AIza|ya29\.|SG\.|AGE-SECRET-KEY-|dop_v1_|lin_api_|shpat_|tskey-|whsec_|pat-|wandb_v1_)[A-Za-z0-9_.-]{10,})`), marks: []string{"hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "dckr_pat_", "npm_", "pypi-", "nvapi-", "hvs.", "hvb.", "xox", "xapp-", "sk-", "sk_live_", "sk_test_", "rk_live_", "r8_", "gsk_", "aiza", "ya29.", "sg.", "age-secret-key-", "dop_v1_", "lin_api_", "shpat_", "tskey-", "whsec_", "pat-", "wandb_v1_"}, is: func(_, secret string) bool { return mixed(secret) }},
	{pattern: regexp.MustCompile(`()\b((?:AKIA|ASIA|AROA|AIDA|ANPA)[A-Z0-9]{12,})`), marks: []string{"akia", "asia", "aroa", "aida", "anpa"}},
	// {"token": "x"}, token='x y'
	{pattern: regexp.MustCompile(`(["']?([A-Za-z_][\w.-]*)["']?\s*[=:]\s*")((?:[^"\\]|\\.)+)`), marks: nameMarks, is: named},
	{pattern: regexp.MustCompile(`(["']?([A-Za-z_][\w.-]*)["']?\s*[=:]\s*')([^']+)`), marks: nameMarks, is: named},
	// --password 'a b', where a shell's line is one argument
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)\s+\\*")((?:[^"\\]|\\[^"])+)`), marks: nameMarks, is: named},
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)\s+')([^']+)`), marks: nameMarks, is: named},
	// JSON with numbers, or within a text: {"token": 1234}, {\"token\": \"x\"}; "token" => "x"
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)\\*["']\s*[=:]>?\s*(?:\[\s*)?\\*["']?)([^\s"'\\,;}\]]+)`), marks: nameMarks, is: named},
	// PASSWORD = x, password := "x", password=\"x\"
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)\s*:?=\s*\\*["']?)([^\s"'\\&;,]+)`), marks: nameMarks, is: named},
	// --set=password=x: the value of one name is another one's name
	{pattern: regexp.MustCompile(`(=([A-Za-z_][\w.-]*)=)([^\s"'&;,]+)`), marks: nameMarks, is: named},
	// PASSWORD=x, --password=x, ?api_key=x&…
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*)=)([^\s"'&;,]+)`), marks: nameMarks, is: named},
	// X-Api-Key: x, password: x
	{pattern: regexp.MustCompile(`(([A-Za-z_][\w.-]*):\s*)([^\s"',;]+)`), marks: nameMarks, is: func(before, _ string) bool { return strong(before) }},
	// --api-key x
	{pattern: regexp.MustCompile(`((?:^|[\s"'\x60(\[,])(--?[A-Za-z][\w.-]*)(?:["']?,?\s+["']?|\\*["'],\\*["']))([^\s"'\\-][^\s"'\\]*)`), marks: nameMarks, is: named},
}

// named reports whether what stands before a secret names one. Names that mean
// other things in prose ("key=value") need a value that is no word.
func named(before, secret string) bool { return strong(before) || Name(before) && mixed(secret) }

// mixed reports whether a text is no word of a language: it has a digit, or
// upper case behind its first letter.
func mixed(secret string) bool {
	return strings.ContainsAny(secret, "0123456789") || strings.ToLower(secret[1:]) != secret[1:]
}

// marked reports whether a text in lower case may have the shape.
func (s shape) marked(lower string) bool {
	return slices.ContainsFunc(s.marks, func(mark string) bool { return strings.Contains(lower, mark) })
}

// replace puts hide's word in the place of every secret of the shape.
func (s shape) replace(text string, hide func(string) string) string {
	at := 0
	var b strings.Builder
	for _, m := range s.pattern.FindAllStringSubmatchIndex(text, -1) {
		last := len(m) - 2 // of the secret
		before, secret := text[m[2]:m[3]], text[m[last]:m[last+1]]
		if s.is != nil && !s.is(before, secret) {
			continue
		}
		b.WriteString(text[at:m[last]])
		b.WriteString(hide(secret))
		at = m[last+1]
	}
	return b.String() + text[at:]
}
