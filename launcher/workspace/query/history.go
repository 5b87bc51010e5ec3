package query

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/store"
)

// A History is a request for how a measure of the selected runs changed over time.
type History struct {
	Selection
	Metric  string
	Changed bool // only points that changed or raise an alarm
	Judge   bool // the command fails on an alarm, so it must be known which direction is better
}

// MeasureHistory holds the values of a measure over time, for each point.
type MeasureHistory struct {
	Measure      measure.Measure
	Traces       []report.Trace
	Marks        map[int64]store.RunMark
	Runs, Points int
	Judged       int // number of points with enough runs for an alarm
	Warnings     []string
	Database     string // file of the database
}

// History reads the history of a measure.
func (r *Reader) History(ctx context.Context, o History) (*MeasureHistory, error) {
	db, filter, err := r.OpenFor(o.Selection)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	m, err := FindMeasure(ctx, db, o.Metric)
	if err != nil {
		return nil, err
	}
	if err := directed(o.Judge, m); err != nil {
		return nil, err
	}
	points, prints, err := db.History(ctx, filter, m)
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	looks, err := newLookCounts(ctx, db)
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	if filter.Study != "" {
		if _, err := r.unread(ctx, db, filter.Study, filter.Study, nil); err != nil {
			return nil, err
		}
	}
	past := &MeasureHistory{Measure: m, Points: len(points), Database: db.Path()}
	var ids []int64
	for _, p := range points {
		past.Runs += len(p.Samples)
		segments := compare.Trace(p.Samples, prints)
		times, err := looks.at(ctx, compare.Tested(segments))
		if err != nil {
			return nil, workspace.StoreError(err)
		}
		alarm, enough := compare.Newest(segments, m.Worse(), times)
		if enough {
			past.Judged++
		}
		if o.Changed && len(segments) < 2 && alarm == nil {
			continue
		}
		past.Traces = append(past.Traces, report.Trace{Point: p.Point, Segments: segments, Alarm: alarm})
		if alarm != nil {
			ids = append(ids, alarm.Since.Run)
		}
		for _, segment := range segments {
			ids = append(ids, segment.Samples[0].Run)
			if segment.Before != nil {
				ids = append(ids, segment.Before.Run)
			}
		}
	}
	past.Warnings = looks.warnings()
	past.Marks, err = db.Marks(ctx, ids)
	return past, workspace.StoreError(err)
}

// directed returns an error if judge is set and it is unknown whether higher or
// lower values of the measure are better.
func directed(judge bool, m measure.Measure) error {
	if judge && m.Better == measure.Neither {
		return workspace.Errorf("--fail-if-worse: %s has no better direction; set better = \"higher\" or \"lower\" where it is defined", m.Name)
	}
	return nil
}

// Alarm returns an error that describes the first alarm about runs that became worse
// by at least limit, a fraction. It also returns an error if no point has enough runs
// for an alarm; otherwise nil.
func (p *MeasureHistory) Alarm(limit float64) error {
	if p.Judged == 0 {
		return errors.New("--fail-if-worse: no point has enough runs; an alarm needs 14 on the same hardware and software since the last change")
	}
	for _, trace := range p.Traces {
		if a := trace.Alarm; a != nil && !(float64(p.Measure.Worse())*(a.Ratio-1) < limit) { // also if there is no ratio (NaN)
			return errors.New(report.AlarmText(trace, p.Marks, p.Measure))
		}
	}
	return nil
}

// ParsePercent parses "5%" or "5 %" as a fraction; "" is 0.
func ParsePercent(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, is := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !is || err != nil || !(x >= 0 && x <= 100) {
		return 0, errors.New("not a percentage; write it like 5%")
	}
	return x / 100, nil
}
