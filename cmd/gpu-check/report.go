package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// markdown is the report as a page. The double's cannot be taken for a GPU's.
func (r *report) markdown() string {
	var b strings.Builder
	failed := 0
	for _, s := range r.Steps {
		if !s.fine() {
			failed++
		}
	}
	switch {
	case failed > 0 && r.Double:
		fmt.Fprintf(&b, "# DOUBLE, not a GPU: failed\n\n%d of %s did not pass. None of these figures were measured on a GPU.\n", failed, number.Count(len(r.Steps), "check"))
	case failed > 0:
		fmt.Fprintf(&b, "# GPU check: failed\n\n%d of %s did not pass, and nothing was recorded. What did pass is below as well.\n", failed, number.Count(len(r.Steps), "check"))
	case r.Double:
		b.WriteString("# DOUBLE, not a GPU\n\nThis is what `make gpu-check` would write, made with scalebench's test double in place of NCCL and the CUDA driver. None of its figures were measured on a GPU.\n")
	case r.Part:
		b.WriteString("# Part of the GPU check\n\n`make gpu-check` without PyTorch and the study; everything else passed.\n")
	default:
		b.WriteString("# GPU check\n\nWritten by `make gpu-check`; everything passed. [nccl.md](nccl.md) says what is checked.\n")
	}
	b.WriteString("\n| | |\n|---|---|\n")
	for _, row := range [][2]string{{"date", r.Date}, {"commit", "`" + r.Commit + "`"}, {"host", r.Host}, {"GPUs", r.GPUs}, {"driver's CUDA", r.Driver}, {"NCCL", r.NCCL}, {"cuBLAS", r.CuBLAS}, {"PyTorch", r.PyTorch}} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], cmp.Or(row[1], "–"))
	}
	b.WriteString("\n| check | result | took |\n|---|---|---|\n")
	for _, s := range r.Steps {
		took := "–"
		if s.Failed != nil || s.result() == "passed" {
			took = fmt.Sprintf("%.0f s", s.Took.Seconds())
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.Name, s.result(), took)
	}
	for _, s := range r.Steps {
		title := s.Name
		if s.Mark != "" {
			title += " (" + s.Mark + ")"
		}
		if first, _, _ := strings.Cut(title, " "); first == strings.ToLower(first) { // cuBLAS is written so
			title = strings.ToUpper(title[:1]) + title[1:]
		}
		fmt.Fprintf(&b, "\n## %s\n\n", title)
		switch {
		case s.Missing != "":
			fmt.Fprintf(&b, "Not made: %s.\n", s.Missing)
		case s.LeftOut != "":
			fmt.Fprintf(&b, "Left out: %s.\n", s.LeftOut)
		case s.Failed != nil:
			fmt.Fprintf(&b, "**Failed:**\n\n```\n%v\n```\n", s.Failed)
			if len(s.Found) > 0 {
				fmt.Fprintf(&b, "\nUntil then:\n\n%s\n", strings.Join(s.Found, "\n"))
			}
		default:
			fmt.Fprintln(&b, strings.Join(s.Found, "\n"))
		}
	}
	return b.String()
}

// json is the record that becomes part of the source.
func (r *report) json() ([]byte, error) {
	text, err := json.MarshalIndent(r.Record, "", "  ")
	return append(text, '\n'), err
}
