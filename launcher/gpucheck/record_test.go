package gpucheck

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
)

// The record and the report come and go together, and the documents say what is
// so: none of them may go on claiming that nothing ran on a GPU, nor stop too
// early.
func TestRecordAndReport(t *testing.T) {
	var parsed *Record
	if err := json.Unmarshal(record, &parsed); err != nil {
		t.Fatalf("record.json: %v", err)
	}
	report, err := os.ReadFile("../../docs/gpu-check.md")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for file, sentence := range map[string]string{"docs/nccl.md": "This has never run on a GPU.", "README.md": "nothing here has run on a GPU"} {
		page, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(string(page), sentence); says != (parsed == nil) {
			t.Errorf("%s says %q: %v; record.json is %s", file, sentence, says, record)
		}
	}
	if parsed == nil {
		if report != nil {
			t.Error("docs/gpu-check.md is there without a record; make gpu-check writes both")
		}
		if Standing() != "never run on a GPU" {
			t.Errorf("Standing: %q", Standing())
		}
		return
	}
	for what, word := range map[string]string{"commit": parsed.Commit, "date": parsed.Date, "GPUs": parsed.GPUs, "NCCL": parsed.NCCL, "driver": parsed.Driver, "PyTorch": parsed.PyTorch} {
		if word == "" || !strings.Contains(string(report), word) {
			t.Errorf("docs/gpu-check.md does not have the record's %s, %q", what, word)
		}
	}
	if strings.Contains(string(report), "DOUBLE") {
		t.Error("docs/gpu-check.md is of a double")
	}
}

func TestString(t *testing.T) {
	r := &Record{Date: "2026-12-01", GPUs: "1 × X", NCCL: "2.28.0"}
	if got, want := r.String(), "checked on 1 × X with NCCL 2.28.0 on 2026-12-01 (docs/gpu-check.md)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a report says is what its record says, and the double's says what it is.
func TestReport(t *testing.T) {
	r := &Report{Record: Record{Date: "2026-12-01", Commit: "abc123", Host: "node1", GPUs: "1 × X", Driver: "12.8", NCCL: "2.28.0", PyTorch: "2.9.0"},
		Steps: []Step{{Name: "correctness", Found: []string{"all"}, Mark: notPerformance}}}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Record
	if err := json.Unmarshal(text, &back); err != nil || back != r.Record {
		t.Errorf("%s: %v", text, err)
	}
	page := r.Markdown()
	for _, word := range []string{"2026-12-01", "abc123", "node1", "1 × X", "12.8", "2.28.0", "2.9.0", "## Correctness (not performance: two ranks on one GPU)"} {
		if !strings.Contains(page, word) {
			t.Errorf("the report does not say %q:\n%s", word, page)
		}
	}
	if strings.Contains(page, "DOUBLE") {
		t.Error("a report of a GPU speaks of a double")
	}
	if r.Part = true; !strings.HasPrefix(r.Markdown(), "# A part of the check") {
		t.Error("a part of the check looks like a whole one")
	}
	if r.Double = true; !strings.HasPrefix(r.Markdown(), "# DOUBLE, not a GPU\n") {
		t.Error("a report of the double does not say so in its title")
	}
}

// The study of the check is one that scalebench runs, with as many points as
// are then expected.
func TestStudyText(t *testing.T) {
	for _, test := range []struct {
		double bool
		gpus   int
		want   int
	}{{true, 1, 2}, {false, 1, 2}, {false, 2, 4}, {false, 3, 4}, {false, 8, 8}} {
		text, points := studyText(test.double, test.gpus)
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
			if gpu := p.Point.Resources.Device == "gpu"; gpu == test.double {
				t.Errorf("%+v: device %s", test, p.Point.Resources.Device)
			}
		}
	}
}
