package report

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// Readers of a report may not have the program, so its answer names no command. The advice
// itself keeps the command.
func TestAnswerHasNoCommands(t *testing.T) {
	four := 4
	a := &advice.Advice{Workers: &four, Reason: [2]string{"Use 4 workers.", ""}, Next: &advice.Next{Workers: 8, Runs: 6, Why: "8 may be better", Command: "scalebench submit s.toml workers=8"}}
	got := answer([]*advice.Advice{a}, nil, advice.Options{}, bestMeasured(nil))
	if text := got.Lead + strings.Join(got.Reasons, " ") + strings.Join(got.Table.Text.Notes, " "); strings.Contains(text, "scalebench") || !strings.Contains(text, "8 may be better") {
		t.Errorf("the answer is: %s", text)
	}
	if a.Next.Command == "" {
		t.Error("the advice lost its command")
	}
}
