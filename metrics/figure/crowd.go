package figure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// mostLines is the number of lines that a reader can distinguish in one plot. A plot with
// more is split into panels.
const mostLines = 8

// mostCrossed is that number if colours and markers have a meaning each.
const mostCrossed = 12

func (c *chart) mostLines() int {
	if c.crossed != nil {
		return mostCrossed
	}
	return mostLines
}

// group is the set of curves of one panel.
type group struct {
	title  string
	curves []scaling.Curve
	key    string // parameter whose value the title is; "" for none
}

// groupsBy returns a group for each value of a parameter.
func groupsBy(key string, curves []scaling.Curve) []group {
	curves = slices.Clone(curves)
	slices.SortStableFunc(curves, func(a, b scaling.Curve) int { return parameter(a, key).Compare(parameter(b, key)) })
	var list []group
	for i, c := range curves {
		if i == 0 || parameter(c, key) != parameter(curves[i-1], key) {
			list = append(list, group{title: panelTitle(key, parameter(c, key).String()), key: key})
		}
		last := &list[len(list)-1]
		last.curves = append(last.curves, c)
	}
	return list
}

func parameter(c scaling.Curve, key string) scaling.Value {
	if key == "framework" {
		return scaling.ValueOf(c.Framework)
	}
	return scaling.ValueOf(c.Parameters[key])
}

// uncrowd divides curves among panels of at most most curves: by the values of the parameter that
// needs the fewest panels or, if none fits, in the order of the curves.
func uncrowd(curves []scaling.Curve, most int) []group {
	keys := map[string]bool{"framework": true}
	for _, c := range curves {
		for key := range c.Parameters {
			keys[key] = true
		}
	}
	var best []group
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		list := groupsBy(key, curves)
		fits := !slices.ContainsFunc(list, func(g group) bool { return len(g.curves) > most })
		if fits && 2*len(list) <= len(curves) && (best == nil || len(list) < len(best)) {
			best = list
		}
	}
	if best != nil {
		return best
	}
	panels := (len(curves) + most - 1) / most
	for i := range panels {
		own := curves[i*len(curves)/panels : (i+1)*len(curves)/panels]
		title := own[0].Series
		if len(own) > 1 {
			title += " to " + own[len(own)-1].Series
		}
		best = append(best, group{title: shown(title), curves: own})
	}
	return best
}

// withoutKeys names the curves of panels without the parameter that the panels' titles state. A
// curve that is alone in each panel keeps its name.
func withoutKeys(groups []group) []group {
	var all []scaling.Curve
	for _, g := range groups {
		all = append(all, g.curves...)
	}
	if key := groups[0].key; key != "" && key != "framework" && len(all) > len(groups) {
		all = scaling.Rename(all, key)
	}
	named := slices.Clone(groups)
	for i := range named {
		n := len(named[i].curves)
		named[i].curves, all = all[:n], all[n:]
	}
	return named
}

// drawGroups draws a panel for each group, all with the same axes.
func drawGroups(kind string, draw build, groups []group, d Data, o Options) (*Drawing, error) {
	var charts []chart
	var without []string
	var why error
	for _, g := range withoutKeys(groups) {
		own := d
		own.Curves = g.curves
		list, err := draw(own, o)
		if err != nil {
			without, why = append(without, g.title), err
			continue
		}
		for i := range list {
			list[i].caption = append(list[i].caption, mixtures(g.curves)...)
			list[i].caption = append(list[i].caption, doubts(g.curves)...)
		}
		if len(list) == 1 {
			if list[0].title = g.title; g.key != "" {
				list[0].shortenLabels()
			}
		}
		charts = append(charts, list...)
	}
	if charts == nil {
		return nil, fmt.Errorf("%s figure: %w", kind, why)
	}
	if without != nil {
		c := &charts[len(charts)-1]
		c.caption = append(c.caption, fmt.Sprintf("Not drawn: %s (%v).", strings.Join(without, ", "), why))
	}
	return compose(kind, charts, o)
}
