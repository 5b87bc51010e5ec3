package report

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
)

// latexDocument is the document around the sections, so that a proposal compiles as it is. The packages are in every
// TeX distribution; without lmodern, letters are bitmaps.
const latexDocument = `%% Compile with: pdflatex proposal.tex
%% For a document of your own, copy the packages below and \input{scaling}.
\documentclass[11pt,a4paper]{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage{textcomp}
\usepackage[margin=22mm]{geometry}
\usepackage{booktabs}
\usepackage{siunitx}
\usepackage{graphicx}
\begin{document}
\begin{center}\Large\bfseries %s\end{center}
\input{scaling}
\end{document}
`

// latexSections returns the sections of a proposal as LaTeX, with its tables and figures.
func (p *Proposal) latexSections() string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("%% Needs \\usepackage{booktabs,siunitx,graphicx,textcomp} and \\usepackage[T1]{fontenc}.")
	line("\\begingroup\\sloppy")
	paragraph := func(text string) {
		if text != "" {
			line("\\noindent %s\\par\\smallskip", latexText(text))
		}
	}
	facts := func(list []Fact, between string) {
		for _, f := range list {
			line("\\noindent\\textbf{%s.} %s\\par\\smallskip", latexText(f.Name), latexText(strings.Join(f.Values, between)))
		}
	}
	paragraph(strings.Join(p.About, " "))
	for _, part := range p.Parts {
		line("\\subsection*{%s}", latexText(part.Title))
		paragraph(part.About)
		paragraph(part.Lead)
		for i := range part.Tables {
			b.WriteString(part.Tables[i].latex())
		}
		for _, f := range part.Figures {
			line("\\begin{figure}[!htbp]\n  \\centering\n  \\includegraphics[width=\\linewidth]{%s}\n  \\caption{%s}\n\\end{figure}",
				strings.TrimSuffix(f.printFile(), ".pdf"), latexText(f.Title+". "+f.Whole.Caption()))
		}
		facts(part.NotDrawn, "; ")
	}
	line("\\clearpage\n\\subsection*{Method}")
	facts(p.Method, " ")
	line("\\subsection*{Hardware and software}")
	facts(p.Machine, "; ")
	line("\\noindent\\footnotesize %s\\par\n\\endgroup", latexText(p.Made))
	return b.String()
}

// latex returns the table: a row of values per point, with a row of intervals below it.
func (t *ProposalTable) latex() string {
	var b strings.Builder
	columns := make([]string, len(t.Heads))
	heads := make([]string, len(t.Heads))
	for i, head := range t.Heads {
		columns[i] = t.alignment(i)
		name, unit, _ := strings.Cut(head, " (")
		heads[i] = "{" + latexText(name) + "}"
		if unit != "" {
			heads[i] = "{\\shortstack[r]{" + latexText(name) + "\\\\(" + latexText(unit) + "}}"
		}
	}
	fmt.Fprintf(&b, "\\begin{table}[!htbp]\n  \\centering\\small\n  \\caption{%s}\\smallskip\n  \\setlength{\\tabcolsep}{4pt}\n  \\begin{tabular}{%s}\n    \\toprule\n    %s \\\\\n    \\midrule\n",
		latexText(t.Caption), strings.Join(columns, ""), strings.Join(heads, " & "))
	for n, row := range t.Rows {
		values, intervals, spread := make([]string, len(row)), make([]string, len(row)), false
		for i, c := range row {
			values[i] = c.value
			if !plainNumber(c.value) {
				values[i] = "{" + latexText(c.value) + "}"
			}
			if c.interval != "" {
				intervals[i], spread = "{\\scriptsize "+latexText(c.interval)+"}", true
			}
		}
		if n > 0 {
			b.WriteString("    \\addlinespace\n")
		}
		fmt.Fprintf(&b, "    %s \\\\\n", strings.Join(values, " & "))
		if spread {
			fmt.Fprintf(&b, "    %s \\\\\n", strings.Join(intervals, " & "))
		}
	}
	notes := make([]string, len(t.Notes))
	for i, note := range t.Notes {
		notes[i] = latexText(note)
	}
	fmt.Fprintf(&b, "    \\bottomrule\n  \\end{tabular}\n  \\par\\medskip\\begin{minipage}{\\linewidth}\\footnotesize %s\\end{minipage}\n\\end{table}\n", strings.Join(notes, " "))
	return b.String()
}

// alignment returns the column type of siunitx that aligns the column's numbers at the decimal point.
func (t *ProposalTable) alignment(column int) string {
	whole, decimals := 1, 0
	for _, row := range t.Rows {
		value := row[column].value
		if plainNumber(value) {
			before, after, _ := strings.Cut(value, ".")
			whole, decimals = max(whole, len(before)), max(decimals, len(after))
		}
	}
	return fmt.Sprintf("S[table-format=%d.%d]", whole, decimals)
}

// plainNumber reports whether a cell is a number of digits and a decimal point, which siunitx can align.
func plainNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789.") == "" && s != "." }

// latexText returns text as LaTeX, so that no character of it is a command. Characters that pdflatex lacks and that
// latexLetter does not replace become [U+4E2D]. Long words may break anywhere.
func latexText(s string) string {
	var b strings.Builder
	var before rune
	word := 0
	for _, r := range clean.Line(s) {
		if word++; r == ' ' {
			word = 0
		}
		if word > longWord {
			b.WriteString(`\allowbreak{}`)
		}
		if r == before && strings.ContainsRune("-,'", r) { // a ligature
			b.WriteString("{}")
		}
		before = r
		escaped, special := latexRunes[r]
		if !special && r > '~' {
			escaped = latexLetter(r)
		}
		switch {
		case escaped != "":
			b.WriteString(escaped)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "[U+%04X]", r)
		}
	}
	return b.String()
}

// longWord is the number of characters after which a word may break, such as a digest or a path.
const longWord = 20

var latexRunes = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
	'^': `\textasciicircum{}`, '~': `\textasciitilde{}`, '<': `\textless{}`, '>': `\textgreater{}`, '|': `\textbar{}`,
	'"': `\textquotedbl{}`, '`': `\textasciigrave{}`, '[': `{[}`, ']': `{]}`,
	[]rune(number.Absent)[0]: `\textendash{}`, '—': `\textemdash{}`, '…': `\dots{}`, '“': `\textquotedblleft{}`, '”': `\textquotedblright{}`, '‘': `\textquoteleft{}`, '’': `\textquoteright{}`,
	'\u00a0': `~`, '×': `\ensuremath{\times}`, '÷': `\ensuremath{\div}`, '·': `\ensuremath{\cdot}`, '±': `\ensuremath{\pm}`, '−': `\ensuremath{-}`, '≤': `\ensuremath{\leq}`, '≥': `\ensuremath{\geq}`, '≈': `\ensuremath{\approx}`,
	'µ': `\ensuremath{\mu}`, 'μ': `\ensuremath{\mu}`, '°': `\textdegree{}`, '²': `\ensuremath{^2}`, '³': `\ensuremath{^3}`, '₂': `\ensuremath{_2}`,
}
