package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/study"
)

// What a report says is what its record says, and the double's says what it is.
func TestReport(t *testing.T) {
	r := &report{Record: gpucheck.Record{Date: "2026-12-01", Commit: "abc123", Host: "node1", GPUs: "1 × X", Driver: "12.8", NCCL: "2.28.0", PyTorch: "2.9.0"},
		Steps: []step{{Name: "correctness", Found: []string{"all"}, Mark: notPerformance}}}
	text, err := r.json()
	if err != nil {
		t.Fatal(err)
	}
	var back gpucheck.Record
	if err := json.Unmarshal(text, &back); err != nil || back != r.Record {
		t.Errorf("%s: %v", text, err)
	}
	page := r.markdown()
	for _, word := range []string{"2026-12-01", "abc123", "node1", "1 × X", "12.8", "2.28.0", "2.9.0", "## Correctness (not performance: two ranks on one GPU)"} {
		if !strings.Contains(page, word) {
			t.Errorf("the report does not say %q:\n%s", word, page)
		}
	}
	if strings.Contains(page, "DOUBLE") {
		t.Error("a report of a GPU speaks of a double")
	}
	if r.Part = true; !strings.HasPrefix(r.markdown(), "# Part of the GPU check") {
		t.Error("a part of the check looks like a whole one")
	}
	if r.Double = true; !strings.HasPrefix(r.markdown(), "# DOUBLE, not a GPU\n") {
		t.Error("a report of the double does not say so in its title")
	}
}

// The study of the check is one that scalebench runs, with as many points as
// are then expected.
func TestStudyText(t *testing.T) {
	type made struct {
		text   string
		points int
	}
	of := func(text string, points int) made { return made{text, points} }
	for _, test := range []struct {
		made
		want int
	}{{of(studyText(true, 1)), 2}, {of(studyText(false, 1)), 4}, {of(studyText(false, 2)), 8}, {of(studyText(false, 3)), 8}, {of(studyText(false, 8)), 16},
		{of(besideStudy(128)), 2}, {of(scalingStudy(true, 2)), 2}, {of(scalingStudy(false, 2)), 12}, {of(scalingStudy(false, 8)), 24}} {
		text, points := test.text, test.points
		s, err := study.Parse("study.toml", []byte(text), framework.ForStudy())
		if err != nil {
			t.Fatal(err)
		}
		site := study.DefaultSite()
		site.Python = "python3"
		plan, err := s.Plan(site)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Points) != test.want || points != test.want {
			t.Errorf("%+v: %d points, and %d are expected", test, len(plan.Points), points)
		}
		for _, p := range plan.Points {
			if p.Point.Resources.Device != "gpu" {
				t.Errorf("%+v: device %s", test, p.Point.Resources.Device)
			}
		}
	}
}

// The table of scaling has the figures that scalebench gives, with their intervals; one
// without its figure is an error, unless it is the double's.
func TestScalingTable(t *testing.T) {
	of := func(v float64) *float64 { return &v }
	list := []scaled{
		{Workers: 1, Runs: 6, Throughput: of(10000), ThroughputLow: of(9900), ThroughputHigh: of(10100), Efficiency: of(1), Warnings: []string{"a doubt"}},
		{Workers: 2, Runs: 6, Throughput: of(19000), ThroughputLow: of(18800), ThroughputHigh: of(19200), Efficiency: of(0.95), EfficiencyLow: of(0.935), EfficiencyHigh: of(0.965), Warnings: []string{"a doubt"}},
	}
	lines, err := scalingTable(list, 3, false)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"| 1 | 6 | 10000 | 9900 to 10100 | 100.0 % | – |\n",
		"| 2 | 6 | 19000 | 18800 to 19200 | 95.0 % | 93.5 % to 96.5 % |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "a doubt"); n != 1 {
		t.Errorf("the doubt is said %d times", n)
	}
	if _, err := scalingTable(list, 4, false); err == nil {
		t.Error("a line is missing for 4 GPUs, and nothing is said")
	}
	list[1].Efficiency = nil
	if _, err := scalingTable(list, 2, false); err == nil || !strings.Contains(err.Error(), "no efficiency on 2 GPUs: a doubt") {
		t.Errorf("%v", err)
	}
	if _, err := scalingTable(list, 2, true); err != nil {
		t.Error(err)
	}
}
