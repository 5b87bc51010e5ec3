package study

import (
	"fmt"
	"regexp"
	"strings"
)

// Notify is the [notify] table of a study or site file: who is told that a study has ended or that a run has failed.
// It does not affect measurements, so it is not part of a point's identity.
type Notify struct {
	Command []string `toml:"command"` // program and arguments; {subject} becomes the subject, and the text is its standard input
	// Webhook is the path of a file with the URL, or "$NAME", an environment variable with it. The URL itself is a
	// secret, and this file is copied into the runs folder.
	Webhook string `toml:"webhook"`
}

// Set reports whether there is anything to tell.
func (n Notify) Set() bool { return len(n.Command) > 0 || n.Webhook != "" }

// webhookVariable matches a webhook that an environment variable holds.
var webhookVariable = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$`)

// notify checks the table and makes its paths absolute.
func (d *decoder) notify(n Notify) Notify {
	if n.Command != nil {
		if len(n.Command) == 0 || n.Command[0] == "" {
			d.rule("notify.command", "names no program; write one and its arguments, such as [\"mail\", \"-s\", \"{subject}\", \"me@example.org\"]")
		} else {
			n.Command = append([]string{d.interpreter("notify.command", n.Command[0])}, n.Command[1:]...)
		}
		for i, argument := range n.Command {
			d.rule(fmt.Sprintf("notify.command[%d]", i), oneLine(argument))
		}
	}
	switch {
	case strings.Contains(n.Webhook, "://"):
		d.rule("notify.webhook", "is a URL, which is a secret, and this file is copied into the runs folder; write the URL into a file that only you can read, and name that file, or \"$NAME\", an environment variable with the URL")
	case !webhookVariable.MatchString(n.Webhook):
		n.Webhook = d.path("notify.webhook", n.Webhook)
	}
	return n
}
