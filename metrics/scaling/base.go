package scaling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A NoBaseError lists the series that have no base and therefore no speedup.
type NoBaseError struct {
	Missing []MissingBase
}

// MissingBase describes the missing base of one series.
type MissingBase struct {
	Series     string
	At         Value   // position of the base point
	Why        string  // why it cannot be the base
	Unplanned  bool    // the study has no such point
	Unsteady   bool    // it has successful runs but no steady state, which more runs would not change
	Imported   bool    // all runs of the series were imported, so none can be repeated
	Resumed    bool    // all of its runs resumed from a checkpoint, whose steps are unknown
	Available  []Value // other possible base points
	Framework  string
	Parameters map[string]any // parameters of the series, by TOML path
	axis       axis
}

// Error returns a text that names the points to run. The caller adds the command.
func (e *NoBaseError) Error() string {
	var texts []string
	of := map[string][]string{} // series, by text
	for _, m := range e.Missing {
		if of[m.text()] == nil {
			texts = append(texts, m.text())
		}
		of[m.text()] = append(of[m.text()], strconv.Quote(m.Series))
	}
	for i, text := range texts {
		const shown = 3
		switch names := of[text]; {
		case len(names) == 1:
			texts[i] = fmt.Sprintf("no base for series %s: its %s", names[0], text)
		case len(names) <= shown:
			texts[i] = fmt.Sprintf("no base for series %s and %s: their %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1], text)
		default:
			texts[i] = fmt.Sprintf("no base for series %s and %d more: their %s", strings.Join(names[:shown], ", "), len(names)-shown, text)
		}
	}
	return strings.Join(texts, "\n")
}

// Remarks returns the same text as remarks, one for each series.
func (e *NoBaseError) Remarks() []Remark {
	list := make([]Remark, len(e.Missing))
	for i, m := range e.Missing {
		list[i] = Remark{Series: m.Series, Text: "no base: its " + m.text()}
	}
	return list
}

// text says what is wrong with the base, and what to do.
func (m MissingBase) text() string {
	text := fmt.Sprintf("point with %s %s", m.axis.place(m.At), m.Why)
	switch {
	case m.Unsteady:
	case m.Unplanned:
		text += "; add it"
	default:
		text += "; measure it"
	}
	if len(m.Available) > 0 {
		joint := ", or take "
		if m.Unsteady {
			joint = "; take "
		}
		text += joint + m.axis.places(m.Available) + " as the base"
	}
	return text
}

// Silent reports whether none of the given number of series has a result: all of them lack their
// base. A base without a steady state does not count as lacking, because the other points then
// still have a throughput.
func (e *NoBaseError) Silent(series int) bool {
	return len(e.Missing) == series && !slices.ContainsFunc(e.Missing, func(m MissingBase) bool { return m.Unsteady && len(m.Available) > 0 })
}

// imported reports whether all runs of the series were imported.
func (s *series) imported() bool {
	return len(s.runs) > 0 && !slices.ContainsFunc(s.runs, func(o *Observation) bool { return o.Parameters["import.format"] == nil })
}

func (s *series) missing(a axis, base Value, runs map[Value][]*Observation, c *Curve) *MissingBase {
	m := &MissingBase{Series: s.name, At: base, axis: a, Framework: s.framework, Parameters: s.parameters}
	for i := range c.Points {
		if p := &c.Points[i]; p.judged() && (p.Of(measure.Throughput).Median != nil || !c.Measured(measure.Throughput)) {
			m.Available = append(m.Available, p.At)
		}
	}
	switch runs := runs[base]; {
	case !slices.Contains(s.at, base):
		m.Why, m.Unplanned = "is not in the plan", true
	case len(runs) == 0:
		m.Why = "has no good run"
	default:
		m.Why = fmt.Sprintf("has %s, none with a steady state", number.Count(len(runs), "run"))
		m.Unsteady = true
		if m.Imported = s.imported(); m.Imported {
			m.Why = fmt.Sprintf("has %s, none with a throughput", number.Count(len(runs), "imported run"))
		}
		if !slices.ContainsFunc(runs, func(o *Observation) bool { return o.Why[measure.RunSeconds] != measure.WhyResumed }) {
			m.Why = fmt.Sprintf("has %s, resumed from a checkpoint and so without a run time", number.Count(len(runs), "run"))
			m.Resumed = true
		}
	}
	return m
}
