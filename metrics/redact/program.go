package redact

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// passwordOption is a short option that takes a password in some programs, and means something else
// in others.
type passwordOption struct {
	programs []string // prefixes of their names
	word     string   // an argument that must occur; otherwise the value is not a password
	option   string
	apart    bool // the value may be the next argument
}

var passwordOptions = []passwordOption{
	{programs: []string{"mysql", "mariadb", "mycli"}, option: "-p"},
	{programs: []string{"sshpass", "mongo"}, option: "-p", apart: true},
	{programs: []string{"docker", "podman", "nerdctl", "skopeo", "buildah", "helm", "oras", "crane"}, word: "login", option: "-p", apart: true},
	{programs: []string{"7z"}, option: "-p"},
	{programs: []string{"zip", "unzip", "sqlcmd", "bcp"}, option: "-P", apart: true},
	{programs: []string{"redis-cli"}, option: "-a", apart: true},
	{programs: []string{"ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldapcompare", "ldappasswd"}, option: "-w", apart: true},
}

// siblings matches the rest of a program's name, so that related programs match too: mysqldump,
// mariadb-dump.
const siblings = `[a-z-]*(?:\.exe)?`

var isSibling = regexp.MustCompile(`^` + siblings + `$`)

// optionOf returns the password option of the program that an argument names; nil without one.
func optionOf(argument string) *passwordOption {
	name := path.Base(argument)
	for i, o := range passwordOptions {
		if slices.ContainsFunc(o.programs, func(p string) bool {
			rest, found := strings.CutPrefix(name, p)
			return found && isSibling.MatchString(rest)
		}) {
			return &passwordOptions[i]
		}
	}
	return nil
}

// attached reports whether the text after "-p" in an argument of an unknown program is a password.
// It must have six or more characters that look random, or an upper-case letter and no separator.
// -p8, -p8080:80, -parallel and -pthread are not passwords.
func attached(text string) bool {
	return len(text) >= 6 && !strings.ContainsAny(text, "=:/.") && (random(text) || strings.ToLower(text) != text)
}

// value returns the password in argument i of the program, or "".
func (o *passwordOption) value(arguments []string, i int) string {
	if text, found := strings.CutPrefix(arguments[i], "-p"); found && attached(text) {
		return text
	}
	switch {
	case o == nil, o.word != "" && !slices.Contains(arguments[:i], o.word):
		return ""
	case o.apart && i > 0 && arguments[i-1] == o.option && !strings.HasPrefix(arguments[i], "--"):
		return arguments[i]
	}
	value, found := strings.CutPrefix(arguments[i], o.option)
	if !found {
		return ""
	}
	return value
}

// passwordShape returns the shape of such passwords in a shell command line or a printed list of
// arguments.
func passwordShape() shape {
	var s shape
	var ways []string
	for _, o := range passwordOptions {
		between, apart := `[^\n;|&]*?`, ``
		if o.word != "" {
			between += `\b` + o.word + `\b` + between
		}
		if o.apart {
			apart = `(?:["']?,?\s*["']?)`
		}
		for _, p := range o.programs {
			ways = append(ways, fmt.Sprintf(`%s%s\b["']?,?\s(?:%s["'\s])?["']?%s%s`, p, siblings, between, o.option, apart))
			s.marks = append(s.marks, p)
		}
	}
	s.pattern = regexp.MustCompile(`((?:^|[\s"'\x60(/;|&=])(?:` + strings.Join(ways, "|") + `))([^\s"';|&,-][^\s"';|&,]*)`)
	return s
}
