// Package query answers questions about the runs of a user's studies: curves, advice,
// costs, predictions, comparisons, and the data of figures and reports. It reads the
// database and the studies' plans, and prints nothing.
package query

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// A Reader answers questions from a workspace.
type Reader struct {
	*workspace.Workspace
	// Doubt receives warnings about a study's data that no answer contains.
	Doubt func(study string, warnings ...string)
}

// A Question selects runs of a study and how they become curves.
type Question struct {
	Study   string // file or name
	Measure string // "" means the default of the kind of workload
	Shown   func(measure.Measure) bool
	Base    string // a place on the axis; "" for the smallest of each series
	Mix     bool
	Axis    string             // a parameter or coordinate; "" for the measure's own
	Where   string             // SQL condition
	Points  map[string]bool    // by identity: only their runs; nil for all
	Edited  bool               // include points that the study file does not have
	Design  *sequential.Design // the study is looked at while it grows; nil if it is not
	Picture bool               // as in scaling.Question
	Along   string             // as in scaling.Question

	Series   []string // names; empty means all
	Baseline []string // KEY=VALUE
	At       []string // KEY=VALUE

	// Prices is the site file for a measure that is made of prices: "" for the file that
	// the study names, nil if such a measure cannot be asked for.
	Prices *string

	// Prepare, if not nil, changes the data before the analysis.
	Prepare func([]scaling.Observation, []scaling.Planned)
}

// inquiry returns the question in the terms of package scaling.
func (o *Question) inquiry() (q scaling.Question, err error) {
	q = scaling.Question{Measure: o.Measure, Axis: o.Axis, Picture: o.Picture, Along: o.Along, Base: o.Base, Mix: o.Mix, Shown: o.Shown}
	if o.Design != nil {
		q.Confidence, q.FewRuns = o.Design.Confidence, true
	}
	if len(o.Series) > 0 {
		q.Series = o.Series
	}
	if q.Baseline, err = conditionsOf("--baseline", o.Baseline); err != nil {
		return q, err
	}
	q.At, err = conditionsOf("--at", o.At)
	return q, err
}

// conditionsOf parses the values, KEY=VALUE, of an option.
func conditionsOf(option string, list []string) ([]scaling.Condition, error) {
	var conditions []scaling.Condition
	for _, text := range list {
		c, err := scaling.ParseCondition(text)
		if err != nil {
			return nil, &workspace.Error{Err: fmt.Errorf("%s: %w", option, err)}
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}

// An Analysis is the answer to a question.
type Analysis struct {
	*scaling.Answer
	Study     string // its name
	BaseError error  // some series have no base, and what to run; nil

	design *sequential.Design // as in Question
}
