package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// translated maps phrases that read as a translation to what to write
// instead.
var translated = []struct{ phrase, write string }{
	{`\bstand(s|ing)? (in|on|at|for|below|beside|behind|above|where|before|there|with)\b|\bas (it|they|he) stands?\b|\bstood\b`, "is, are, appears; unchanged"},
	{`\b(to|can|could|may|must|cannot) be had\b`, "is available"},
	{`\b(all|any|none|one|nothing|nobody|identical|equal|needed|alike|off|that) but (for|by)\b|, but (for|by)\b`, "except for"},
	{`\b(is|are|was|were) no (verdict|factor|list|loss|replicates?|error|accuracy|confidence|failure|identity|proof|part of|UTF-8|line)\b`, "is not a"},
	{`\bof before\b`, "earlier"},
	{`\b(for|in) want of\b`, "because there is no"},
	{`\bas many as (still )?pay\b`, "the most that pay off"},
	{`\bone each\b`, "one for each"},
	{`\bmay be given again\b`, "may be repeated"},
	{`\bor the like\b`, "or similar"},
	{`\b(is|are|was|were) held against\b|\bholds? \S+ against\b`, "compared with, checked against"},
	{`\bsays? of (itself|themselves)\b`, "reports"},
	{`\bhanded over\b`, "submitted"},
	{`\bsuffices?\b`, "is enough"},
	{`\bno runs\b`, "without runs"},
}

// rightly are texts in which such a phrase is correct.
var rightly = []string{
	"What a log says of itself", // a heading: the log is the subject
}

// The documents and the help avoid phrases that read as a translation.
func TestWords(t *testing.T) {
	texts := map[string]string{}
	for file, text := range documents(t, "../../README.md", "../../CONTRIBUTING.md", "../../docs/*.md", "../../docs/reference/*.md", "../../examples/*/README.md", "../../launcher/native/train/gpu/ptx/README.md") {
		texts[strings.TrimPrefix(file, "../../")] = text
	}
	helpTexts(newApp(&session{}).Commands, texts)
	for _, banned := range translated {
		re := regexp.MustCompile(banned.phrase)
		for name, text := range texts {
			for n, line := range strings.Split(text, "\n") {
				for _, right := range rightly {
					line = strings.ReplaceAll(line, right, "")
				}
				for _, found := range re.FindAllString(line, -1) {
					t.Errorf("%s:%d: %q; write: %s", name, n+1, found, banned.write)
				}
			}
		}
	}
}

// helpTexts collects the help texts of each command and its options.
func helpTexts(commands []*cli.Command, into map[string]string) {
	for _, c := range commands {
		var b strings.Builder
		b.WriteString(c.Usage + "\n" + c.Description)
		for _, f := range c.Flags {
			b.WriteString("\n" + f.String())
		}
		into["help of "+c.HelpName+" "+c.Name] = b.String()
		helpTexts(c.Subcommands, into)
	}
}

// plural maps totals that can never be one ("2 of 5 runs") to the reason.
var plural = map[string]string{
	"%d of %d steps": "a cut needs ten steps",
	"%d of %d nodes": "a single node has another sentence",
	"%d of %d runs":  "advice states shares of several runs only",
}

// A total that may be one is written by number.Count, not "1 of 1 ranks".
func TestWordsOfTotals(t *testing.T) {
	share := regexp.MustCompile(`%d of (its |the |all )?%d (runs|points|steps|epochs|ranks|workers|nodes|hosts|tasks|jobs|attempts|checks|files|lines|values|samples|CPUs|GPUs)\b`)
	if !share.MatchString("%d of its %d nodes take no jobs") {
		t.Fatal("the pattern does not find what was once wrong")
	}
	read := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		for _, found := range share.FindAllString(string(text), -1) {
			if plural[found] == "" {
				t.Errorf("%s: %q; write %%d of %%s, with number.Count", path, found)
			}
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Fatalf("%d files read: %v", read, err)
	}
}

// Counts in recorded output have the singular after 1. The outputs are those that other tests
// compare with: golden files, scripts, transcripts.
func TestWordsOfCounts(t *testing.T) {
	wrong := regexp.MustCompile(`(^|[^-0-9.,:/=×x\\[])\b1 (more |good |failed |other |measured |planned )?(runs|points|steps|epochs|ranks|workers|nodes|hosts|tasks|jobs|attempts|checks|files|lines|values|samples|CPUs|GPUs|replicas|warnings|series are|studies|requests|counts|rows|tokens|looks|repeats)\b`)
	if !wrong.MatchString("the answer has 1 runs") || wrong.MatchString("4.1 runs a day, 11 runs") {
		t.Fatal("the pattern does not find what was once wrong")
	}
	read := 0
	for _, folder := range []string{"testdata", "../../metrics", "../../launcher", "../../slurm", "../../docs", "../../examples"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".txtar", ".txt", ".golden", ".md", ".json", ".html", ".svg"}, filepath.Ext(path)) || strings.Contains(path, "/extract/testdata/") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for _, found := range wrong.FindAllString(string(text), -1) {
				t.Errorf("%s: %q; format counts by number.Count", path, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Fatalf("%d files read", read)
	}
}
