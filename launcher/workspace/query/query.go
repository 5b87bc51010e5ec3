// Package query answers questions about the runs of a user's studies: curves, advice,
// costs, predictions, comparisons, and the data of figures and reports. It reads the
// database and the studies' plans, and prints nothing.
package query

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Reader answers questions from a workspace.
type Reader struct {
	*workspace.Workspace
	// WarnStudy is called with warnings about a study's data that the returned answer does
	// not contain.
	WarnStudy func(study string, warnings ...string)
	// Partial is called, if it is not nil, with an error that says how many runs of a
	// study an answer does without because they cannot be read; nil if all can be.
	Partial func(study string, err error)
}

// A Question selects runs of a study, and says which measure to show along which axis.
type Question struct {
	Study   string // file or name
	Measure string // "" means the default of the kind of workload
	Shown   func(measure.Measure) bool
	Base    string // point on the axis that speedups refer to; "" for the smallest of each series
	Mix     bool
	Axis    string             // parameter or coordinate along the x axis; "" for the measure's default
	Where   string             // SQL condition
	Points  map[string]bool    // IDs of the points whose runs to use; nil for all
	Edited  bool               // also use points that the study file does not have, such as those measured with KEY=VALUE arguments
	Design  *sequential.Design // design of the interim analyses, if the study is analysed while it grows; else nil
	Picture bool               // as in scaling.Question
	Along   string             // as in scaling.Question

	Series   []string // names of series; empty means all
	Baseline []string // KEY=VALUE
	At       []string // KEY=VALUE

	// Prices is the site file with the prices for a measure that depends on them: ""
	// means the site file of the study. If Prices is nil, such a measure is not
	// available.
	Prices *string

	// Prepare, if not nil, changes the data before the analysis.
	Prepare func([]scaling.Observation, []scaling.Planned)
}

// openStudy returns the name of a study, which arg gives as a file or a name, and the database. The caller closes
// the database.
func (r *Reader) openStudy(arg string) (name string, db *store.Store, err error) {
	if name, err = workspace.StudyName(arg); err != nil {
		return "", nil, err
	}
	db, err = r.Open()
	return name, db, err
}

// inquiry converts the question to a question of package scaling.
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

// conditionsOf parses the values of an option, each KEY=VALUE. option is its name for
// errors.
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
	Study     string // name of the study
	BaseError error  // error that names series without a base and the runs that would give them one; nil if there are none

	design *sequential.Design  // as in Question
	open   []*launcher.Attempt // runs without a verdict, which may be queued or running
}
