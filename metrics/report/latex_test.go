//go:build latex

package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A proposal compiles in pdflatex, whatever is in a record. With the build tag, a missing pdflatex fails.
func TestProposalCompiles(t *testing.T) {
	hostile := strings.Join([]string{hostile, `\input{/etc/passwd} \write18{touch pwned} $x^2_1$ %off & # ~ ^^41 {unbalanced [`, "--two ''quotes'' ,,low`tick` Müller 中文 µ × ≥ \u202e αβγδεζηθικλμνξοπρστυφχψως ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ ά Обучение щёлочь Київ Łódź Škoda ằ", "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ абвгдеёжзийклмнопрстуфхцчшщъыьэюя", latexT1, strings.Repeat("0123456789abcdef", 8)}, " ")
	curves, err := scaling.Analyse(observations("x"), scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := figure.Draw("speedup", figure.Data{Curves: curves, Observations: observations("x")}, figure.Options{Width: printWidth, NoCaption: true})
	if err != nil {
		t.Fatal(err)
	}
	facts := []Fact{{hostile, []string{hostile, hostile}}}
	p := &Proposal{Title: hostile, About: []string{hostile}, Method: facts, Machine: facts, Made: hostile, Parts: []ProposalPart{{
		Title: hostile, About: hostile, Lead: hostile, NotDrawn: facts, Figures: []Drawing{{ID: "strong-speedup", Title: hostile, Whole: f}},
		Tables: []ProposalTable{{Caption: hostile, Heads: []string{"nodes", "GPUs", "rate (samples/s)"}, Notes: []string{hostile},
			Rows: [][]proposalCell{{{value: "1 to 2"}, {"4", "[1, 2]"}, {"12345", "[12000, 13000]"}}, {{value: "–"}, {"*", "–"}, {"0.5", "[0.4, 0.6]"}}}}}}}}
	dir := t.TempDir()
	if _, err := p.Save(dir, put); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "proposal.tex")
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, bad := range []string{"Missing character", "Undefined", "Overfull \\hbox"} {
		if i := strings.Index(string(out), bad); i >= 0 {
			t.Errorf("pdflatex says: %.300s", out[i:])
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a command ran")
	}
	if keep := os.Getenv("SCALEBENCH_PROPOSAL"); keep != "" {
		if err := os.CopyFS(keep, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	}
}
