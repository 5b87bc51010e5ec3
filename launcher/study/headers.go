package study

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/scalebench/scalebench/metrics/redact"
)

// Headers are the request headers of a service, as one string: "X-Tenant=a|…", or "" for none. In a
// study file they are a table: { X-Tenant = "a", X-API-Key = "env:API_KEY" }. A value that begins with
// env: or file: names where the load generator reads the secret; the secret itself is never stored.
type Headers string

// Of returns the values by the header's name.
func (h Headers) Of() map[string]string { return entries(string(h)) }

// entries returns the values of "name=value|…" by name.
func entries(list string) map[string]string {
	m := map[string]string{}
	for entry := range strings.SplitSeq(list, "|") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			m[name] = value
		}
	}
	return m
}

// Prefixes of values that name the place of a secret.
const (
	FromVariable = "env:"
	FromFile     = "file:"
)

// refers reports whether a value names the place of a secret.
func refers(value string) bool {
	name, variable := strings.CutPrefix(value, FromVariable)
	path, file := strings.CutPrefix(value, FromFile)
	return variable && name != "" || file && filepath.IsAbs(path)
}

// exposes reports whether a header's value looks like a secret.
func exposes(name, value string) bool {
	if refers(value) {
		return false
	}
	secret := slices.Contains([]string{"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"}, strings.ToLower(name))
	redact.Hider(func(s string) string { secret = true; return s }).Value(name, value)
	return secret
}

// headerName matches a token of RFC 9110, section 5.6.2. It may not contain "|", which separates headers.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`~0-9A-Za-z-]+$")

// ownHeaders are set by the load generator, from other keys.
var ownHeaders = map[string]string{"content-type": "set workload.content_type", "content-length": "the payload decides it", "host": "workload.url decides it", "connection": "the load generator decides it", "transfer-encoding": "the payload decides it"}

// UnmarshalTOML reads the table.
func (h *Headers) UnmarshalTOML(v any) error {
	t, ok := v.(map[string]any)
	if !ok || len(t) == 0 {
		return fmt.Errorf("want a table of request headers, like { X-Tenant = \"a\" }, got %.60s", fmt.Sprint(v))
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		value, ok := t[name].(string)
		switch own := ownHeaders[strings.ToLower(name)]; {
		case !headerName.MatchString(name):
			return fmt.Errorf("%q cannot name a header", name)
		case own != "":
			return fmt.Errorf("%s: %s; leave it out", name, own)
		case !ok || strings.ContainsFunc(value, unicode.IsControl) || strings.Contains(value, "|"):
			return fmt.Errorf("%s: want one line of text without \"|\"", name)
		case strings.HasPrefix(value, FromFile) && !refers(value):
			return fmt.Errorf("%s: want an absolute path after file:, like \"file:/home/me/key\"", name)
		case exposes(name, value):
			return fmt.Errorf("%s looks like a secret, and it would be stored; write \"env:NAME\" for an environment variable or \"file:/PATH\" for a file", name)
		}
		entries = append(entries, name+"="+value)
	}
	*h = Headers(strings.Join(entries, "|"))
	return nil
}

var _ toml.Unmarshaler = (*Headers)(nil)

// reference checks a key that names the place of a secret.
func reference(v any) string {
	if text := v.(string); text != "" && (!refers(text) || strings.ContainsFunc(text, unicode.IsControl)) {
		return "want \"env:NAME\" for an environment variable or \"file:/PATH\" for a file; the key itself would be stored"
	}
	return ""
}
