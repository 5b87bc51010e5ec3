package tables

import (
	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

// measurementRows are the measurements of one run.
func measurementRows(list []collective.Measurement) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "op"}, {Key: "in_place"}, {Key: "bytes", Head: "size", Show: number.Bytes},
		{Key: "seconds", Head: "time", Show: number.Seconds}, {Key: "seconds_min", Head: "min", Show: number.Seconds}, {Key: "seconds_mean", Head: "mean", Show: number.Seconds},
		{Key: "seconds_p99", Head: "p99", Show: number.Seconds}, {Key: "cv", Show: number.Percent}, {Key: "iterations"},
		{Key: "algbw", Unit: "B/s"}, {Key: "busbw", Unit: "B/s"}}}
	for _, m := range list {
		t.Add(table.NonZero(m.Op), m.InPlace, m.Bytes, m.Seconds, m.Min, m.Mean, m.P99, m.CV, table.NonZero(m.Iterations), m.AlgBW, m.BusBW)
	}
	return t
}

// linkRows are the fits of one run.
func linkRows(list []collective.Link) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "op"}, {Key: "in_place"}, {Key: "alpha", Head: "latency", Show: number.Seconds}, {Key: "beta", Head: "bandwidth", Unit: "B/s"},
		{Key: "sizes"}, {Key: "low", Head: "off by at most", Show: number.Percent}, {Key: "high", Head: "and", Show: number.Percent}}}
	for _, l := range list {
		t.Add(table.NonZero(l.Op), l.InPlace, l.Alpha, l.Beta, l.Sizes, l.Low, l.High)
	}
	return t
}
