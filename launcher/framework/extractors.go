package framework

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/extract"
)

// Time is the extractor for commands whose output need not be read: it only times the run, and uses events that
// the program itself writes.
const Time = "time"

// Recognised is like Time, but the output is also read in the format that it has, if it
// is a known one: extract.Any.
const Recognised = "any"

// Extractors returns the extractors that a point's command names: formats, and the user's patterns as one more;
// none if the program writes events itself. The error repeats problems that were reported when the study was
// read.
func Extractors(p study.Point) ([]extract.Extractor, error) {
	list, wrong := extractors(p.Command)
	var problems []error
	for path, message := range wrong {
		problems = append(problems, fmt.Errorf("%s: %s", path, message))
	}
	return list, errors.Join(problems...)
}

// extractors also returns the problems by TOML path.
func extractors(c study.Command) (list []extract.Extractor, wrong map[string]string) {
	wrong = map[string]string{}
	for i, name := range c.Extract {
		alone := len(c.Extract) == 1 && len(c.Patterns) == 0
		switch {
		case name == Time && !alone:
			wrong[fmt.Sprintf("command.extract[%d]", i)] = "\"time\" reads nothing from the output, and every run is timed anyway; do not combine it with other extractors"
			continue
		case name == Recognised && !alone:
			wrong[fmt.Sprintf("command.extract[%d]", i)] = "\"any\" looks for the one format that the output has; do not combine it with other extractors"
			continue
		case name == Time:
			continue
		case name == Recognised:
			list = append(list, extract.Any)
			continue
		}
		e, err := extract.Find(name)
		if err != nil {
			wrong[fmt.Sprintf("command.extract[%d]", i)] = err.Error()
		}
		list = append(list, e)
	}
	if len(c.Patterns) == 0 {
		return list, wrong
	}
	patterns := make([]extract.Pattern, len(c.Patterns))
	for i, q := range c.Patterns {
		patterns[i] = pattern(q)
	}
	e, err := extract.Patterns(patterns)
	if err != nil {
		wrong["extract"] = err.Error()
	}
	return append(list, e), wrong
}

func pattern(q study.Pattern) extract.Pattern {
	return extract.Pattern{Name: q.Name, Pattern: q.Pattern, Unit: q.Unit, Reduce: q.Reduce, Per: q.Per, Of: q.Of, Better: q.Better}
}
