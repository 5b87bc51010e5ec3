package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/internal/cmdline"
)

// A recorder is a small command line with all kinds of flags and operands that ours has. Running
// it records what it was asked to do.
type recorder struct {
	session  session
	command  string
	output   string
	lists    []string
	base     int
	operands []string
}

func (r *recorder) app() *cli.App {
	r.session.stdout, r.session.stderr = io.Discard, io.Discard
	var where cli.StringSlice
	record := func(c *cli.Context) error {
		r.command = strings.TrimPrefix(c.Command.HelpName, appName+" ")
		r.operands = c.Args().Slice()
		r.lists = where.Value()
		return nil
	}
	app := newApp(&r.session)
	app.Commands = []*cli.Command{
		{Name: "plot", ArgsUsage: "KIND STUDY [MORE...]", Action: record, Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &r.output},
			&cli.IntFlag{Name: "base", Destination: &r.base},
			&cli.StringSliceFlag{Name: "where", Destination: &where},
		}},
		{Name: "runs", ArgsUsage: "[STUDY]", Action: record},
		{Name: "render", ArgsUsage: "STUDY", Action: record, Flags: []cli.Flag{
			&cli.StringFlag{Name: "folder", Aliases: []string{"o"}, Destination: &r.output},
		}},
		{Name: "data", Subcommands: []*cli.Command{{Name: "synth", ArgsUsage: "DIR", Action: record}}},
	}
	for _, c := range app.Commands {
		prepare(&r.session, c, appName)
	}
	return app
}

// carryOut runs the recorder's command line.
func (r *recorder) carryOut(words []string) error {
	app := r.app()
	line, err := cmdline.Parse(app, words)
	if err != nil {
		return err
	}
	if err := line.Check(app); err != nil {
		return err
	}
	return app.RunContext(context.Background(), append([]string{appName}, line.Words()...))
}

func TestArgumentsInAnyOrder(t *testing.T) {
	type want struct {
		command, output, db, format string
		base                        int
		verbose                     bool
		where, operands             []string
	}
	speedup := want{command: "plot", output: "f.png", format: "table", operands: []string{"speedup", "s"}}
	with := func(change func(*want)) want {
		w := speedup
		change(&w)
		return w
	}
	for _, test := range []struct {
		line string // words separated by single spaces
		want want
	}{
		{"plot -o f.png speedup s", speedup},
		{"plot speedup s -o f.png", speedup},
		{"plot speedup -o f.png s", speedup},
		{"-o f.png plot speedup s", speedup},
		{"plot speedup s -of.png", speedup},
		{"plot speedup s -o=f.png", speedup},
		{"plot speedup s --output=f.png", speedup},
		{"plot speedup s --output f.png", speedup},
		{"plot -o g.png speedup s --output f.png", speedup},
		{"plot -o f.png -- speedup s", speedup},
		{"-o f.png -- plot speedup s", speedup},
		{"--db d plot speedup s -o f.png", with(func(w *want) { w.db = "d" })},
		{"plot speedup s -o f.png --db=d", with(func(w *want) { w.db = "d" })},
		{"--db a plot speedup --db b s -o f.png --db d", with(func(w *want) { w.db = "d" })},
		{"plot speedup s -vof.png", with(func(w *want) { w.verbose = true })},
		{"plot speedup s -vo f.png", with(func(w *want) { w.verbose = true })},
		{"plot speedup s -o f.png -v=false", speedup},
		{"plot speedup s -o f.png --verbose=true", with(func(w *want) { w.verbose = true })},
		{"plot speedup s -o f.png --base -2", with(func(w *want) { w.base = -2 })},
		{"plot speedup s -o f.png --where a,b --where c=d", with(func(w *want) { w.where = []string{"a,b", "c=d"} })},
		{"plot speedup -- -o -o f", with(func(w *want) { w.operands = nil; w.output = "" })}, // refused below
		{"plot -o - speedup -", with(func(w *want) { w.output = "-"; w.operands = []string{"speedup", "-"} })},
		{"plot -o f.png speedup s -- --base -- x", with(func(w *want) { w.operands = []string{"speedup", "s", "--base", "--", "x"} })},
		{"plot -o=--base speedup s", with(func(w *want) { w.output = "--base" })},
		{"plot -o f.png speedup help", with(func(w *want) { w.operands = []string{"speedup", "help"} })},
		{"plot -o f.png base db", with(func(w *want) { w.operands = []string{"base", "db"} })},
		{"-o d render s", want{command: "render", output: "d", format: "table", operands: []string{"s"}}},
		{"render s -od", want{command: "render", output: "d", format: "table", operands: []string{"s"}}},
		{"runs --format json", want{command: "runs", format: "json"}},
		{"--format csv runs s", want{command: "runs", format: "csv", operands: []string{"s"}}},
		{"data -v synth d", want{command: "data synth", format: "table", verbose: true, operands: []string{"d"}}},
	} {
		t.Run(test.line, func(t *testing.T) {
			var r recorder
			err := r.carryOut(strings.Split(test.line, " "))
			if test.want.command == "plot" && test.want.operands == nil {
				var usage *cmdline.Error
				if !errors.As(err, &usage) {
					t.Fatalf("a plot without -o is not refused: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			db := r.session.db
			if strings.HasSuffix(db, "scalebench.db") {
				db = "" // the default
			}
			got := want{command: r.command, output: r.output, db: db, format: r.session.format, base: r.base,
				verbose: r.session.verbose, where: r.lists, operands: r.operands}
			if len(got.operands) == 0 {
				got.operands = nil
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The parser separates values from operands before it knows the command, so a flag name must mean
// the same in every command.
func TestFlagNamesAgree(t *testing.T) {
	app := newApp(&session{stdout: io.Discard, stderr: io.Discard})
	takes := map[string]bool{}
	var walk func(string, []cli.Flag, []*cli.Command)
	walk = func(command string, flags []cli.Flag, level []*cli.Command) {
		for name, f := range cmdline.ByName(flags) {
			if before, ok := takes[name]; ok && before != cmdline.TakesValue(f) {
				t.Errorf("%s takes a value in one command and none in %s", cmdline.Dashed(name), command)
			}
			takes[name] = cmdline.TakesValue(f)
		}
		for _, c := range level {
			walk(command+" "+c.Name, c.Flags, c.Subcommands)
		}
	}
	walk(appName, app.Flags, app.Commands)
	if len(takes) < 5 {
		t.Fatalf("only %d flags were found", len(takes))
	}
}

// FuzzParse checks for any words that parse does not panic, and that parsing its canonical order
// again gives the same result.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"plot speedup s -o f", "-vq", "plot -- -o", "--db=x runs", "-", "--", "-é", "data synth --format", "plot -o\xff -\xff"} {
		f.Add(strings.ReplaceAll(s, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, joined string) {
		var r recorder
		app := r.app()
		line, err := cmdline.Parse(app, strings.Split(joined, "\x00"))
		if err != nil {
			return
		}
		again, err := cmdline.Parse(app, line.Words())
		if err != nil {
			t.Fatalf("%q was read as %q, which is refused: %v", joined, line.Words(), err)
		}
		if diff := cmp.Diff(line.Words(), again.Words()); diff != "" {
			t.Errorf("%q (-first +second):\n%s", joined, diff)
		}
	})
}

// FuzzPermute writes a known command line in a random order and spelling; the command must
// get the intended values.
func FuzzPermute(f *testing.F) {
	f.Add([]byte{0}, "speedup", "study", "f.png", "where a,b")
	f.Add([]byte{7, 1, 2, 200, 3}, "-x", "--", "--base", "")
	f.Add([]byte{255, 254, 3, 9, 1, 77}, "", "help", "-", "=")
	f.Fuzz(func(t *testing.T, choice []byte, kind, study, output, where string) {
		next := func(n int) int { // the fuzzer's next decision, below n
			if len(choice) == 0 {
				return 0
			}
			c := int(choice[0]) % n
			choice = choice[1:]
			return c
		}
		for _, s := range []string{kind, study, output, where} {
			if strings.ContainsRune(s, 0) {
				return // no argument of a process can hold it
			}
		}
		// Flags as whole units, operands as single words.
		spell := func(long, short, value string) []string {
			switch next(4) {
			case 1:
				return []string{"--" + long + "=" + value}
			case 2:
				if short != "" {
					return []string{"-" + short + "=" + value}
				}
			case 3:
				if short != "" && value != "" && value[0] != '=' {
					return []string{"-" + short + value}
				}
			}
			if strings.HasPrefix(value, "-") { // without =, it could be a flag
				return []string{"--" + long + "=" + value}
			}
			return []string{"--" + long, value}
		}
		flags := [][]string{spell("output", "o", output), spell("where", "", where), spell("db", "", "d")}
		for i := range flags {
			j := i + next(len(flags)-i)
			flags[i], flags[j] = flags[j], flags[i]
		}
		operands := []string{"plot", kind, study}
		var words []string
		ended := false
		for len(operands) > 0 || len(flags) > 0 {
			if len(flags) > 0 && !ended && (len(operands) == 0 || next(2) == 1) {
				words, flags = append(words, flags[0]...), flags[1:]
				continue
			}
			if len(flags) > 0 && strings.HasPrefix(operands[0], "-") && len(operands[0]) > 1 {
				words, flags = append(words, flags[0]...), flags[1:]
				continue
			}
			if !ended && (strings.HasPrefix(operands[0], "-") && len(operands[0]) > 1 || len(flags) == 0 && next(3) == 1) {
				words, ended = append(words, "--"), true
			}
			words, operands = append(words, operands[0]), operands[1:]
		}
		var r recorder
		err := r.carryOut(words)
		if kind == "" || study == "" || strings.TrimSpace(output) == "" || strings.TrimSpace(where) == "" {
			if err == nil || !strings.Contains(err.Error(), "is empty") {
				t.Fatalf("%q: %v, and something is empty", words, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		got := []any{r.command, r.operands, r.output, r.lists, r.session.db}
		// The library trims the values of list flags; ours hold names only.
		want := []any{"plot", []string{kind, study}, output, []string{strings.TrimSpace(where)}, "d"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", words, diff)
		}
	})
}
