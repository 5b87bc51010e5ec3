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
		{of(besideStudy(128)), 2}} {
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
