package extract

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// 1.7e9 s after 1970 it was 2023-11-14 22:13:20 UTC.
func TestParseTime(t *testing.T) {
	for text, want := range map[string]float64{
		"100000000": 1e8, "9999999999": 9999999999, "1700000000.5": 1700000000.5, // seconds
		"100000000000": 1e8, "1700000000500": 1700000000.5, "9999999999999": 9999999999.999, // milliseconds
		"2023-11-14T22:13:20Z": 1.7e9, "2023-11-14T22:13:20.5Z": 1700000000.5, "2023-11-14T23:13:20+01:00": 1.7e9, "2023-11-14T23:13:20+0100": 1.7e9,
		"2023-11-14T22:13:20": 1.7e9, "2023-11-14T22:13:20.25": 1700000000.25,
		"2023-11-14 23:13:20+01:00": 1.7e9, "2023-11-14 22:13:20": 1.7e9, "2023-11-14 17:13:20 -0500": 1.7e9, "2023-11-14 22:13:20UTC": 1.7e9,
		"2023-11-14T22:13Z": 1.7e9 - 20, "2023-11-14T22:13": 1.7e9 - 20, "2023-11-14 22:13": 1.7e9 - 20, "2023-11-14": 1.7e9 - 80000,
		"20231114T221320": 1.7e9, "20231114T221320Z": 1.7e9, "1970-01-01T00:00:00.5Z": 0.5,
	} {
		if got, err := parseTime(text); err != nil || math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %.3f, %v; want %.3f", text, got, err, want)
		}
	}
	for _, text := range []string{"", "99999999", "10000000000", "99999999999", "10000000000000", "-1700000000", "1.7e9 s", "1970-01-01", "1969-12-31", "14.11.2023", "0", "2023-11-14 22:13:20 UTC", "2023-13-01"} {
		if got, err := parseTime(text); err == nil || !strings.Contains(err.Error(), "--map order=COLUMN") {
			t.Errorf("%q: %.3f, %v; want an error with the remedy", text, got, err)
		}
	}
}

// Blocks that are numbers may start at 0, like positions; blocks with names are numbered in
// order of appearance.
func TestWhenRunsWereMade(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		want      []string // start, position and block of each run
		why       string
	}{
		{"started", "workers,throughput,started\n1,10,2023-11-14T22:13:20Z\n2,19,\n", []string{"1700000000 0 0", "0 0 0"}, ""},
		{"no time", "workers,throughput,started\n1,10,2023-11-14T22:13:20Z\n2,19,noon\n", nil, "t.csv:3: column \"started\": \"noon\" is not a time"},
		{"order", "workers,throughput,order\n1,10,0\n2,19,2.5\n4,30,1e6\n8,50,\n", []string{"0 1 0", "0 3.5 0", "0 1.000001e+06 0", "0 0 0"}, ""},
		{"negative order", "workers,throughput,order\n1,10,-1\n", nil, "t.csv:2: column \"order\": \"-1\" is not a place in an order; want a number from 0 to 1e6"},
		{"large order", "workers,throughput,order\n1,10,1000001\n", nil, "not a place in an order"},
		{"no order", "workers,throughput,order\n1,10,first\n", nil, "not a place in an order"},
		{"numbered blocks", "workers,throughput,block\n1,10,0\n2,19,5\n4,30,1073741824\n8,50,\n", []string{"0 1 1", "0 6 6", "0 1.073741825e+09 1073741825", "0 0 0"}, ""},
		{"named blocks", "workers,throughput,block\n1,10,mon\n2,19,tue\n4,30,mon\n8,50,-1\n16,90,1073741825\n", []string{"0 1 1", "0 2 2", "0 1 1", "0 3 3", "0 4 4"}, ""},
		{"an order within blocks", "workers,throughput,block,order\n1,10,2,7\n", []string{"0 8 3"}, ""},
	} {
		var got []string
		var err error
		for r, e := range Runs(strings.NewReader(c.csv), Options{File: "t.csv"}, nil) {
			if err = e; err == nil {
				got = append(got, fmt.Sprintf("%.0f %v %d", r.Result.StartUnix, r.Result.Position, r.Result.Block))
			}
		}
		switch {
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		case c.why == "" && (err != nil || !slices.Equal(got, c.want)):
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
