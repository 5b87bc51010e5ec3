package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/cmd/internal/cmdline"
)

// refusedVariable names the file to which a command of a script adds the command lines that it printed and that
// are refused.
const refusedVariable = "SCALEBENCH_TEST_REFUSED"

// invokeAndCheck is invoke, and tries each command line that the command prints: commands that only read are
// run, submit and run are planned, and for the others the study must exist.
func invokeAndCheck(args []string) int {
	to := os.Getenv(refusedVariable)
	if to == "" {
		return invoke(args, os.Stdin, os.Stdout, os.Stderr)
	}
	var printed bytes.Buffer
	code := invoke(args, os.Stdin, io.MultiWriter(os.Stdout, &printed), io.MultiWriter(os.Stderr, &printed))
	tried := map[string]bool{}
	for _, m := range printedLine.FindAllStringSubmatch(printed.String(), -1) {
		line := m[1] + m[2]
		if tried[line] || strings.Contains(line, `\`) { // quoted in JSON
			continue
		}
		tried[line] = true
		if err := accepted(line, code != exitUsage); err != nil {
			f, openErr := os.OpenFile(to, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if openErr != nil {
				panic(openErr)
			}
			fmt.Fprintf(f, "%s\n\tprinted by %s: %v\n", line, strings.Join(args, " "), err)
			f.Close()
		}
	}
	return code
}

// printedLine finds a command line in a command's output: in backquotes, or after "4 more:" and the like.
var printedLine = regexp.MustCompile("(?m)`scalebench ([^`\n]+)`|(?:more|before|next): scalebench ([^`\n]+)$")

// standIn matches a word for which the user is to put something else, such as STUDY or KEY=VALUE.
var standIn = regexp.MustCompile(`^[A-Z]+(\.\.\.)?$|=[A-Z]+$`)

// accepted returns an error if a printed command line is refused. What a refused command prints about a study that
// may not exist is only parsed.
func accepted(text string, exists bool) error {
	words, ok := shellWords(text)
	if !ok || len(words) == 0 {
		return nil
	}
	line, err := parses(words)
	if err != nil || !exists || len(words) == 1 || slices.ContainsFunc(words, standIn.MatchString) {
		return err
	}
	try := words
	switch words[0] {
	case "help", "import", "extract", "serve", "init", "doctor", "tag", "note", "label":
		return nil
	case "run", "submit":
		try = []string{"check"}
		for _, f := range line.Flags {
			if slices.Contains([]string{"site", "runs", "db"}, strings.TrimLeft(f.Name, "-")) {
				try = append(try, f.Name, f.Value)
			}
		}
		try = append(try, line.Operands...)
	case "collect", "cancel", "retry", "forget", "watch", "notify", "status", "logs":
		if len(line.Operands) == 0 {
			return nil
		}
		study, _, _ := strings.Cut(line.Operands[0], "/")
		if strings.HasSuffix(line.Operands[0], ".toml") {
			study = line.Operands[0]
		}
		try = []string{"status", study}
		for _, f := range line.Flags {
			if slices.Contains([]string{"runs", "db"}, strings.TrimLeft(f.Name, "-")) {
				try = append(try, f.Name, f.Value)
			}
		}
	}
	s := &session{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}
	if err := run(context.Background(), s, append([]string{"scalebench"}, try...)); exitCode(err) == exitUsage {
		return fmt.Errorf("tried as %q: %w", try, err)
	}
	return nil
}

// parses returns an error unless the program's own parser takes the words of a command line.
func parses(words []string) (cmdline.Line, error) {
	app := newApp(&session{})
	line, err := cmdline.Parse(app, words)
	if err == nil && len(words) > 1 { // a command's name alone is a mention
		err = line.Check(app)
	}
	return line, err
}
