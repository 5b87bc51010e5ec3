package report

import (
	"maps"
	"slices"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// alarms returns a line for each point whose newest runs are worse than its earlier ones in a
// measure that the report's answer uses, because the results of such a point mix two speeds. For
// trainings, these are the throughput (or else the run time) and the measures that the runs
// report. For other kinds of workload they are all measures with one value per run.
func (s *ReportedStudy) alarms() []string {
	var list []string
	of := map[string]int64{}
	for i, o := range s.Observations {
		of[o.Run] = int64(i)
	}
	look := func(curves []scaling.Curve, m measure.Measure) {
		if m.At != "" || m.Better == measure.Neither {
			return
		}
		for _, c := range curves {
			for _, p := range c.Points {
				if text := s.alarm(c.Series+", "+c.Places(p.At), p.Runs, of, m); text != "" && !slices.Contains(list, text) {
					list = append(list, text)
				}
			}
		}
	}
	if s.Kind.Trains {
		for _, name := range []string{measure.Throughput, measure.RunSeconds} {
			m, err := measure.Find(name)
			if err == nil && slices.ContainsFunc(s.Curves, func(c scaling.Curve) bool { return c.Measured(name) }) {
				look(s.Curves, m)
				break
			}
		}
	}
	for _, f := range s.Frames {
		for _, m := range f.Measures {
			look(f.Curves, m)
		}
	}
	return list
}

// alarm returns the line about one point; "" if its newest runs are not worse. It ignores runs
// without a start time, whose order is unknown.
func (s *ReportedStudy) alarm(point string, runs []scaling.RunValues, of map[string]int64, m measure.Measure) string {
	var samples []compare.Sample
	var prints []fingerprint.Print
	marks := map[int64]store.RunMark{}
	for _, r := range runs {
		i, known := of[r.ID]
		if !known {
			continue
		}
		o := &s.Observations[i]
		x := o.Known(m.Name)
		if x == nil || o.BeganUnix == 0 {
			continue
		}
		print := slices.IndexFunc(prints, func(p fingerprint.Print) bool { return maps.Equal(p, o.Fingerprint) })
		if print < 0 {
			print, prints = len(prints), append(prints, o.Fingerprint)
		}
		samples = append(samples, compare.Sample{Run: i, Unix: o.BeganUnix, Value: *x, Print: print})
		marks[i] = store.RunMark{Run: o.Run}
	}
	trace := Trace{Point: point, Segments: compare.Trace(samples, prints)}
	if trace.Alarm, _ = compare.Newest(trace.Segments, m.Worse(), s.Looks); trace.Alarm == nil {
		return ""
	}
	return AlarmText(trace, marks, m)
}
