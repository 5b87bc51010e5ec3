package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// made separates the part of docs/reference/commands.md that is written by hand from the part
// that is generated from the program's help.
const made = "<!-- From here on made of the program's own help: make golden -->\n"

// docs/reference/commands.md has the usage and the options of every command; -update writes it.
func TestCommandReference(t *testing.T) {
	const path = "../../docs/reference/commands.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hand, got, found := strings.Cut(string(text), made)
	if !found {
		t.Fatalf("%s has no line %q", path, made)
	}
	app := newApp(&session{})
	shared := sharedFlags(app.Commands)
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Exit codes\n\n```\n%s\n```\n\n## Options of every command\n\n%s", strings.TrimPrefix(exitHelp, "Exit codes:\n"), optionList(app.Flags))
	fmt.Fprintf(&b, "\n## Options of several commands\n\n%s", optionList(shared))
	fmt.Fprintf(&b, "\n## Options of one argument\n\nWith `-- COMMAND` ([how](../frameworks.md#without-a-study-file)): %s.\n\nWith `--until-decided` ([how](../decide.md)): %s.\n", optionNames(commandFlags(&workspace.Command{}), nil), optionNames((&untilOptions{}).flags()[1:], nil))
	for _, c := range app.Commands {
		reference(&b, c, shared)
	}
	if *update {
		if err := os.WriteFile(path, []byte(hand+made+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(got, b.String()); diff != "" {
		t.Errorf("%s is out of date; make golden writes it (-there +help):\n%s", path, diff)
	}
}

// sharedFlags returns the options that three commands or more have with the same text.
func sharedFlags(commands []*cli.Command) (list []cli.Flag) {
	count := map[string]int{}
	var visit func([]*cli.Command)
	visit = func(commands []*cli.Command) {
		for _, c := range commands {
			visit(c.Subcommands)
			for _, f := range ownFlags(c) {
				if count[f.String()]++; count[f.String()] == 3 {
					list = append(list, f)
				}
			}
		}
	}
	visit(commands)
	return list
}

// ownFlags returns a command's options without the global options, which have a category.
func ownFlags(c *cli.Command) []cli.Flag {
	return slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool {
		d, ok := f.(cli.CategorizableFlag)
		return ok && d.GetCategory() != ""
	})
}

// reference writes what a command, or each of its subcommands, does, and names its options. The rest
// of the help is left to the help command.
func reference(b *strings.Builder, c *cli.Command, shared []cli.Flag) {
	for _, sub := range c.Subcommands {
		reference(b, sub, shared)
	}
	if len(c.Subcommands) > 0 {
		return
	}
	usage := strings.TrimPrefix(c.UsageText, appName+" ")
	fmt.Fprintf(b, "\n## %s\n\n%s.\n", strings.TrimSuffix(usage, " [OPTIONS]"), upperFirst(c.Usage))
	if own := ownFlags(c); len(own) > 0 {
		fmt.Fprintf(b, "\n%s\n", optionNames(own, shared))
	}
}

// optionNames returns the names of options, separated by commas. The values of the shared options
// are left out, because the page explains those options once.
func optionNames(flags, shared []cli.Flag) string {
	var names []string
	for _, f := range flags {
		name, _ := optionRow(f)
		if slices.ContainsFunc(shared, func(s cli.Flag) bool { return s.String() == f.String() }) {
			name = "`--" + f.Names()[0] + "`"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// optionList returns a list of options. Options with the same text share an item.
func optionList(flags []cli.Flag) string {
	var b strings.Builder
	for i := 0; i < len(flags); {
		names, text := optionRow(flags[i])
		for i++; i < len(flags); i++ {
			more, same := optionRow(flags[i])
			if same != text {
				break
			}
			names += ", " + more
		}
		fmt.Fprintf(&b, "- %s: %s\n", names, text)
	}
	return b.String()
}

// optionRow returns an option's names and its text.
func optionRow(f cli.Flag) (names, text string) {
	names, text, _ = strings.Cut(strings.TrimPrefix(f.String(), "\t"), "\t")
	names, _, _ = strings.Cut(names, " [ ") // the repetition of an option that may be repeated
	return "`" + names + "`", strings.NewReplacer("<", `\<`, "\n", " ", "*", `\*`).Replace(strings.TrimSpace(text))
}

// docs/reference/json.md names every key of what scaling, advise and predict print.
func TestJSONReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sections, _ := strings.Cut(string(text), "\n## ")
	scaled, advised, found := strings.Cut(sections, "\n## ")
	if !found {
		t.Fatal("docs/reference/json.md has fewer than two sections")
	}
	advised, predicted, found := strings.Cut(advised, "\n## ")
	if !found {
		t.Fatal("docs/reference/json.md has fewer than three sections")
	}
	for _, c := range []struct {
		section string
		of      []reflect.Type
	}{
		{scaled, []reflect.Type{reflect.TypeFor[scaling.Row](), reflect.TypeFor[scaling.RowSeconds](), reflect.TypeFor[scaling.RowBase]()}},
		{predicted, []reflect.Type{reflect.TypeFor[predict.Answer](), reflect.TypeFor[predict.Estimate](), reflect.TypeFor[predict.Row]()}},
		{advised, []reflect.Type{reflect.TypeFor[advice.Advice](), reflect.TypeFor[advice.Candidate](), reflect.TypeFor[advice.Estimate](), reflect.TypeFor[advice.Next](), reflect.TypeFor[advice.Limits]()}},
	} {
		for _, of := range c.of {
			for f := range of.Fields() {
				key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if key != "" && key != "-" && !strings.Contains(c.section, "`"+key+"`") {
					t.Errorf("docs/reference/json.md does not explain %q of %v", key, of)
				}
			}
		}
	}
}

// TestLinks checks that every relative link in the documents leads to a file, and to a heading
// of it if the link names one.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s:]*)(?:#([^)\s]*))?\)`)
	for file, text := range documents(t, "../../*.md", "../../docs/*.md", "../../docs/*/*.md", "../../examples/*/*.md", "../../launcher/native/train/gpu/ptx/*.md") {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, heading := file, m[2]
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, target)
				continue
			}
			if heading == "" {
				continue
			}
			page, err := os.ReadFile(target)
			if err != nil {
				t.Error(err)
			} else if !slices.Contains(anchors(string(page)), heading) {
				t.Errorf("%s links to %s#%s, and that file has no such heading", file, target, heading)
			}
		}
	}
}

// TestNamesOfTests checks that the documents name tests that exist, and that the benchmarks of
// docs/benchmarks.md, such as `Ingest/64 ./metrics/store`, are in the packages that it names. A name
// may be the start of several.
func TestNamesOfTests(t *testing.T) {
	exists := slices.Collect(maps.Keys(testNames(t)))
	named := regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`)
	for file, text := range documents(t, "../../*.md", "../../docs/*.md", "../../docs/*/*.md") {
		for _, name := range named.FindAllString(text, -1) {
			if !slices.ContainsFunc(exists, func(known string) bool { return strings.HasPrefix(known, name) }) {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
	}
	benchmarks := documents(t, "../../docs/benchmarks.md")["../../docs/benchmarks.md"]
	for _, m := range regexp.MustCompile("`([A-Z]\\w+)(?:/\\w+)? \\./([\\w/-]+)`").FindAllStringSubmatch(benchmarks, -1) {
		if !strings.Contains(strings.Join(slices.Collect(maps.Values(documents(t, "../../"+m[2]+"/*_test.go"))), ""), "func Benchmark"+m[1]) {
			t.Errorf("docs/benchmarks.md names the benchmark %s in %s, which has none", m[1], m[2])
		}
	}
}

// anchors returns the anchors that GitHub gives the headings of a Markdown text.
func anchors(text string) (list []string) {
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if title := strings.TrimLeft(line, "#"); !code && title != line && strings.HasPrefix(title, " ") {
			title = dropped.ReplaceAllString(link.ReplaceAllString(strings.TrimSpace(title), "$1"), "")
			list = append(list, strings.ReplaceAll(strings.ToLower(title), " ", "-"))
		}
	}
	return list
}

func TestAnchors(t *testing.T) {
	text := "# How a run ends\n```\n# a comment\n```\n## `runs --where`\n### [workload]: `kind = \"serve\"`\n#no heading\n## See [the law](predict.md)\n"
	want := []string{"how-a-run-ends", "runs---where", "workload-kind--serve", "see-the-law"}
	if got := anchors(text); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTables checks that each table has a header: a blank line inside a table splits it, and
// the second half is then shown as text.
func TestTables(t *testing.T) {
	rule := regexp.MustCompile(`^\|[-| ]+\|$`)
	for file, text := range documents(t, "../../*.md", "../../docs/*.md", "../../docs/*/*.md", "../../examples/*/*.md") {
		lines, code := strings.Split(text, "\n"), false
		for i, line := range lines {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			starts := !code && strings.HasPrefix(line, "|") && (i == 0 || !strings.HasPrefix(lines[i-1], "|"))
			if starts && (i+1 == len(lines) || !rule.MatchString(lines[i+1])) {
				t.Errorf("%s:%d: a table without a header: %s", file, i+1, line)
			}
		}
	}
}

// commandLine finds a use of scalebench: a line of a block of code, or a quotation.
var commandLine = regexp.MustCompile("(?m)(?:^\\s*(?:\\$ )?|`)(?:\\./|bin/)*scalebench ([^\n`]*)")

// Each command line in the documents is one that the program's own parser takes. Those that commands print are
// also tried in every script; see invokeAndCheck.
func TestCommandLines(t *testing.T) {
	read := 0
	for file, text := range documents(t, "../../README.md", "../../docs/*.md", "../../docs/*/*.md", "../../examples/*/*.md") {
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			words, ok := shellWords(m[1])
			if !ok || len(words) == 0 {
				continue
			}
			read++
			if _, err := parses(words); err != nil {
				t.Errorf("%s: scalebench %s: %v", file, m[1], err)
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d command lines were found", read)
	}
}

// shellWords splits a command line up to a comment, pipe, redirection or next command. ok is false
// if a part is left out ("…") or a quotation does not end on the line.
func shellWords(text string) (words []string, ok bool) {
	word, quote, open := "", rune(0), false
	end := func() {
		if open {
			words = append(words, word)
		}
		word, open = "", false
	}
	for _, r := range text + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			end()
		case quote == 0 && (r == '#' && !open || strings.ContainsRune("|>;&", r)):
			end()
			return words, true
		case r == '…' || r == '[' && quote == 0 && !open:
			return nil, false
		default:
			word, open = word+string(r), true
		}
	}
	return words, quote == 0
}

// documents returns the texts of the files that match the patterns; each pattern must match.
func documents(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	return texts
}

// docs/reference/site.md names every key of a site file and no other.
func TestSiteReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/site.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	table := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) < 3 {
			continue
		}
		if m := regexp.MustCompile(`\*\*\[+(\w+)\]+\*\*`).FindStringSubmatch(cells[1]); m != nil {
			table = m[1] + "."
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
			named[table+m[1]] = true
		}
	}
	want := map[string]bool{}
	siteKeys(reflect.TypeFor[study.Site](), "", want)
	for key := range want {
		if !named[key] {
			t.Errorf("docs/reference/site.md does not explain %s", key)
		}
	}
	for key := range named {
		if !want[key] {
			t.Errorf("docs/reference/site.md explains %s, and no site file may have it", key)
		}
	}
}

// siteKeys collects the TOML paths of a table, by its fields' tags.
func siteKeys(of reflect.Type, at string, into map[string]bool) {
	for f := range of.Fields() {
		key := f.Tag.Get("toml")
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case key == "":
		case inner.Kind() == reflect.Struct && at == "" && slices.ContainsFunc(reflect.VisibleFields(inner), func(f reflect.StructField) bool { return f.Tag.Get("toml") != "" }):
			siteKeys(inner, key+".", into)
		default:
			into[at+key] = true
		}
	}
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
