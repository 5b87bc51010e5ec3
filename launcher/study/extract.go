package study

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Pattern is one [[extract]] table: a figure that a command prints, found by a
// regular expression. What is made of it is metrics/extract's to say.
type Pattern struct {
	Name    string `toml:"name" json:"name"`       // of the figure
	Pattern string `toml:"pattern" json:"pattern"` // Go's syntax; its group (?P<value>…) is the number
	Unit    string `toml:"unit" json:"unit"`       // that the log has it in
	Reduce  string `toml:"reduce" json:"reduce"`   // of several values: "last", "mean", "median", "max", "min" or "sum"; "": as Per has it
	Per     string `toml:"per" json:"per"`         // what one value is of: "step", "epoch" or "run"
	Of      string `toml:"of" json:"of"`           // whose it is: "run" or "rank"; "": the run's, if ranks do not print different values
	Better  string `toml:"better" json:"better"`   // which way it is better: "higher" or "lower"; "": nobody says
}

// extract decodes [[extract]].
func (d *decoder) extract() []Pattern {
	p, ok := d.top["extract"]
	if !ok {
		return nil
	}
	var tables []table
	if !d.value("extract", p, &tables) {
		return nil
	}
	var list []Pattern
	for i, t := range tables {
		at := "extract[" + strconv.Itoa(i) + "]"
		q := Pattern{Per: "run"}
		d.into(at, t, &q)
		if q.Name != "" && slices.ContainsFunc(list, func(earlier Pattern) bool { return earlier.Name == q.Name }) {
			d.rule(at+".name", fmt.Sprintf("%q is also the name of an earlier [[extract]]", q.Name))
		}
		for key, wrong := range map[string]string{
			"name": notEmpty(q.Name), "pattern": q.wrong(),
			"reduce": among("", "last", "mean", "median", "max", "min", "sum")(q.Reduce),
			"per":    among("step", "epoch", "run")(q.Per),
			"of":     among("", "run", "rank")(q.Of),
			"better": among("", "higher", "lower")(q.Better),
		} {
			d.rule(at+"."+key, wrong)
		}
		list = append(list, q)
	}
	return list
}

// wrong says what is wrong with the regular expression, "" when it finds a
// number.
func (p Pattern) wrong() string {
	if p.Pattern == "" {
		return "missing; write a regular expression whose group is the number, like 'throughput: (?P<value>[0-9.]+)'"
	}
	re, err := regexp.Compile(p.Pattern)
	if err != nil {
		return fmt.Sprintf("is not a Go regular expression: %v", err)
	}
	if re.SubexpIndex("value") < 0 && re.SubexpIndex(p.Name) < 0 {
		return "has no group named value; put the number into one: (?P<value>[0-9.]+)"
	}
	return ""
}

// Timeless doubts a study that asks for times to an accuracy whose pattern does not
// read when it was reached.
func (s *Study) Timeless(plan *Plan) Problems {
	for i, q := range s.Command.Patterns {
		asked := slices.ContainsFunc(plan.Points, func(p Planned) bool {
			return p.Point.Workload.Trains() && slices.ContainsFunc(p.Point.Workload.Train.Targets, func(t measure.Target) bool { return t.Of == measure.OfAccuracy })
		})
		if re, err := regexp.Compile(q.Pattern); q.Name == "accuracy" && asked && err == nil && re.SubexpIndex("elapsed") < 0 {
			path := fmt.Sprintf("extract[%d].pattern", i)
			return Problems{{File: s.File, Line: s.lines[path], Path: path,
				Message: "it has no group (?P<elapsed>…), the seconds since training began, so no time to workload.targets will be known"}}
		}
	}
	return nil
}
