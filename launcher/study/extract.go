package study

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Pattern is an [[extract]] table: a regular expression that finds a measured value in the
// output of a user's program. Package metrics/extract applies it.
type Pattern struct {
	Name    string `toml:"name" json:"name"`       // name of the measure
	Pattern string `toml:"pattern" json:"pattern"` // Go syntax; the group (?P<value>…) matches the number
	Unit    string `toml:"unit" json:"unit"`       // unit in the log
	Reduce  string `toml:"reduce" json:"reduce"`   // how to combine several values: "last", "mean", "median", "max", "min" or "sum"; "": depends on Per
	Per     string `toml:"per" json:"per"`         // what a value belongs to: "step", "epoch" or "run"
	Of      string `toml:"of" json:"of"`           // whether a value is for the whole run or for one rank: "run", "rank", or "": the whole run, unless ranks print different values
	Better  string `toml:"better" json:"better"`   // "higher" or "lower" is better; "": undeclared
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

// wrong returns what is wrong with the regular expression; "" if it is valid and has a
// group for the number.
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

// Timeless returns a warning if the study has a target that its pattern of that name cannot time: an accuracy without
// the time of its evaluation, or a loss, which a pattern reads as a figure of the whole run.
func (s *Study) Timeless(plan *Plan) Problems {
	for i, q := range s.Command.Patterns {
		asked := slices.ContainsFunc(plan.Points, func(p Planned) bool {
			return p.Point.Workload.Trains() && slices.ContainsFunc(p.Point.Workload.Train.Targets, func(t measure.Target) bool { return t.Of == q.Name })
		})
		re, err := regexp.Compile(q.Pattern)
		message := ""
		switch {
		case !asked || err != nil:
		case q.Name == measure.OfAccuracy && re.SubexpIndex("elapsed") < 0:
			message = "it has no group (?P<elapsed>…), the seconds since training began, so no time to workload.targets will be known"
		case q.Name == measure.OfLoss || q.Name == measure.OfPerplexity:
			message = fmt.Sprintf("it reads one %s of the whole run, so no time to workload.targets will be known; a known log format (command.extract) or scalebench.evaluate() reports evaluations", q.Name)
		}
		if message != "" {
			path := fmt.Sprintf("extract[%d].pattern", i)
			return Problems{{File: s.File, Line: s.lines[path], Path: path, Message: message}}
		}
	}
	return nil
}
