package slurm

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// maxScript bounds a rendered script. Most have 9 KiB; sbatch accepts up to 4 MiB.
	maxScript = 1 << 20
	// maxTurns bounds loop iterations and template calls together.
	maxTurns = 100_000
	// maxVerbs bounds the verbs of one printf. Package fmt pads each to at most a million characters.
	maxVerbs = 32
)

// A limitError reports that a site's template exceeds a limit on text or loops.
type limitError string

func (e limitError) Error() string { return string(e) }

func limitf(format string, args ...any) error { return limitError(fmt.Sprintf(format, args...)) }

// A boundedWriter collects a rendered script. Exceeding the limit is an error, which stops the template.
type boundedWriter struct{ bytes.Buffer }

func (w *boundedWriter) Write(p []byte) (int, error) {
	if w.Len()+len(p) > maxScript {
		return 0, limitf("the script has over %d KiB, the most that is rendered", maxScript>>10)
	}
	return w.Buffer.Write(p)
}

// turn is the template function that stops rendering after maxTurns calls. bound inserts a call to it
// into every loop and template.
const turn = "scalebench_turn"

// turns counts the loop iterations and template calls of one rendering.
type turns int

func (n *turns) next() (string, error) {
	if *n++; *n > maxTurns {
		return "", limitf("loops and templates take over %d turns, the most that are rendered", maxTurns)
	}
	return "", nil
}

// boundedFuncs returns the function turn, and limited versions of text/template's functions that
// produce text: a result longer than maxScript is an error.
func boundedFuncs() template.FuncMap {
	bounded := func(f func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			size := 0
			for _, a := range args {
				if s, ok := a.(string); ok {
					size += len(s)
				}
			}
			if size > maxScript {
				return "", tooMuchText()
			}
			text := f(args...)
			if len(text) > maxScript {
				return "", tooMuchText()
			}
			return text, nil
		}
	}
	printf := bounded(func(args ...any) string { return fmt.Sprintf(args[0].(string), args[1:]...) })
	return template.FuncMap{
		turn:    new(turns).next,
		"print": bounded(fmt.Sprint), "println": bounded(fmt.Sprintln),
		"html": bounded(template.HTMLEscaper), "js": bounded(template.JSEscaper), "urlquery": bounded(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			if strings.Count(format, "%") > maxVerbs {
				return "", limitf("a printf with over %d verbs", maxVerbs)
			}
			return printf(append([]any{format}, args...)...)
		},
	}
}

func tooMuchText() error {
	return limitf("a text of over %d KiB, the most that a script may have", maxScript>>10)
}

// bound makes every loop and every template of t count its turns, so that even loops without output end.
func bound(t *template.Template) error {
	counter, err := template.New("").Funcs(template.FuncMap{turn: new(turns).next}).Parse("{{" + turn + "}}")
	if err != nil {
		return err
	}
	count := counter.Root.Nodes[0]
	for _, one := range t.Templates() {
		if one.Tree != nil && one.Root != nil {
			one.Tree = one.Copy() // the built-in trees are shared between clones
			boundList(one.Root, count, true)
		}
	}
	return nil
}

// boundList adds count to a list that is repeated, and to the loops within it.
func boundList(list *parse.ListNode, count parse.Node, repeated bool) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.RangeNode:
			boundList(n.List, count, true)
			boundList(n.ElseList, count, false)
		case *parse.IfNode:
			boundList(n.List, count, false)
			boundList(n.ElseList, count, false)
		case *parse.WithNode:
			boundList(n.List, count, false)
			boundList(n.ElseList, count, false)
		}
	}
	if repeated {
		list.Nodes = append([]parse.Node{count}, list.Nodes...)
	}
}
