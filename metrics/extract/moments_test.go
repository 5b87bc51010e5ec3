package extract

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Locust's tables: a summary with one row per endpoint and one for all, and the time series of a run.
func TestLocustTables(t *testing.T) {
	const stats = "Type,Name,Request Count,Failure Count,Average Response Time,Requests/s,Failures/s,95%\n" +
		"GET,/a,6000,60,120,100.0,1.0,300\nGET,/b,3000,30,220,50.0,0.5,400\n,Aggregated,9000,90,153.3,150.0,1.5,350\n"
	const course = "Timestamp,User Count,Type,Name,Requests/s,Failures/s,95%\n1700000000,23,,Aggregated,80.0,0.0,300\n1700000001,23,,Aggregated,150.0,0.0,350\n"
	apart := strings.Replace(course, "1700000001", "1700000100", 1)
	rate := map[string]Column{measure.RequestsPerSecond: {Name: "Requests/s"}}
	with := func(more map[string]Column) map[string]Column {
		all := map[string]Column{measure.RequestsPerSecond: {Name: "Requests/s"}}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	threads := map[string]float64{measure.Threads: 23}
	users := Column{Name: "User Count"}
	for _, c := range []struct {
		name, text string
		columns    map[string]Column
		at         map[string]float64
		want       []float64 // requests/s of each run; nil: refused
		says       string
	}{
		{"the row of all", stats, rate, threads, []float64{150}, "they are parts of the total"},
		{"failed requests", stats, rate, threads, []float64{150}, `requests failed (column "Failure Count")`},
		{"no failed requests", strings.NewReplacer(",60,", ",0,", ",30,", ",0,", ",90,", ",0,", ",1.0,", ",0,", ",0.5,", ",0,", ",1.5,", ",0,").Replace(stats), rate, threads, []float64{150}, ""},
		{"latency without a unit", stats, with(map[string]Column{measure.LatencyMean: {Name: "Average Response Time"}}), threads, nil, "'latency_mean=Average Response Time:ms'"},
		{"latency that its name calls a share", stats, with(map[string]Column{measure.LatencyP95: {Name: "95%"}}), threads, nil, "--map latency_p95=95%:ms"},
		{"latency in ms", stats, with(map[string]Column{measure.LatencyP95: {Name: "95%", Unit: "ms"}}), threads, []float64{150}, ""},
		{"failures a second", stats, with(map[string]Column{measure.Errors: {Name: "Failures/s"}}), threads, nil, "failed / all requests"},
		{"the course of a run", course, with(map[string]Column{measure.Threads: users}), nil, nil, "moments of one run"},
		{"runs one after another", apart, with(map[string]Column{measure.Threads: users}), nil, []float64{80, 150}, ""},
		{"moments with a label", course, with(map[string]Column{measure.Threads: users, "the_timestamp": {Name: "Timestamp", Label: true}}), nil, []float64{80, 150}, ""},
	} {
		var got []float64
		var notes []string
		var err error
		o := Options{File: "t.csv", Workers: 1, At: c.at, Say: func(s string) { notes = append(notes, s) }}
		for r, e := range Runs(strings.NewReader(c.text), o, c.columns) {
			if e != nil {
				err = e
				continue
			}
			notes = append(notes, r.Result.Notes...)
			for f := range r.Result.Findings() {
				if g := f.Event.Figure; g != nil && g.Name == measure.RequestsPerSecond {
					got = append(got, g.Value)
				}
			}
		}
		all := strings.Join(notes, "\n")
		if err != nil {
			all = err.Error()
		}
		if (err != nil) != (c.want == nil) || len(got) != len(c.want) || !strings.Contains(all, c.says) || c.name == "no failed requests" && strings.Contains(all, "failed") {
			t.Errorf("%s: %v (%v): %s; want %v and %q", c.name, got, err, all, c.want, c.says)
			continue
		}
		for i := range c.want {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v; want %v", c.name, got, c.want)
			}
		}
	}
}
