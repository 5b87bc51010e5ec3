package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/study"
)

// The page shows every result, and its title marks results of the fakes.
func TestPage(t *testing.T) {
	r := &report{Record: gpucheck.Record{Date: "2026-12-01", Commit: "abc123", GPUs: "1 × NVIDIA H100 80GB HBM3", Driver: "12.8", NCCL: "2.28.0", PyTorch: "2.9.0"}, Calls: []call{{Host: "n1"}, {Host: "n2"}, {Host: "n1"}},
		Parts: []*outcome{
			{Name: "kernels/sgd", Result: passed, Seconds: 0.25},
			{Name: "kernels/adam", Result: failed, Failure: &failure{Reproduce: "./gpu-check --only kernels/adam", Failure: gpucheck.Failure{Said: []string{"weights: 1 of 9"},
				Differences: []gpucheck.Difference{{What: "weights", Wrong: 1, Elements: 9, Shape: "9", First: []gpucheck.Value{{Index: 4, Got: "NaN", Want: "0.5"}}, Launch: &gpucheck.Launch{Kernel: "adam", Blocks: 3, Threads: 256, Arguments: "{Count:517}"}}}}}},
			{Name: "collectives/correct", Result: passed, Mark: notPerformance, Found: []string{"| a time |", "", "all"}},
			{Name: "study/whole", Result: leftOut, Why: "there is no Slurm"},
			{Name: "training/resnet20-128", Result: passed, Rates: []rate{{Model: "resnet20", Batch: 128, Trainer: nativeTrainer, Precision: "fp32", Median: 3000}}},
			{Name: "pytorch/resnet20-128", Result: passed, Rates: []rate{
				{Model: "resnet20", Batch: 128, Trainer: pytorchTrainer, Mode: "eager", Layout: "nchw", Precision: "fp32", Median: 2000, Least: 1900, Most: 2100},
				{Model: "resnet20", Batch: 128, Trainer: pytorchTrainer, Mode: "eager", Layout: "channels_last", Precision: "fp32", Median: 4000},
				{Model: "resnet20", Batch: 128, Trainer: pytorchTrainer, Mode: "compiled", Layout: "channels_last", Precision: "fp32", Why: "no compiler"}}},
		}}
	r.judge()
	page := r.markdown()
	for _, want := range []string{"# GPU check: failed\n\n", " 4 of 6 checks passed.", "| host | n1, n2 |", "| kernels: sgd | passed | 0.2 s |", "| kernels/adam | failed | 0.0 s |", "## kernels/adam failed\n", "Written by `adam<<<3, 256>>> {Count:517}`.", "| 4 | NaN | 0.5 |",
		"Reproduce: `./gpu-check --only kernels/adam`", "- collectives/correct (not performance: two ranks on one GPU): all\n", "- study/whole: left out: there is no Slurm\n",
		"| resnet20 | 128 | native | 3000 (1.1 %) | – | – |\n", "| resnet20 | 128 | PyTorch eager nchw | 2000 (1900–2100); 1.50 | – | – |\n", "| PyTorch eager channels_last | 4000; 0.75 |", "| PyTorch compiled channels_last | – (no compiler) |", "(the goal is 1.0 or more): resnet20-128 fp32 0.75.\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "DOUBLE") {
		t.Error("a page of a GPU speaks of a fake")
	}
	if r.exitCode() != exitFailed {
		t.Errorf("exit code %d", r.exitCode())
	}
	r.Double, r.Parts[1].Result, r.Parts[1].Failure = true, pending, nil
	if r.judge(); r.exitCode() != exitUnfinished || !strings.HasPrefix(r.markdown(), "# DOUBLE, not a GPU: unfinished\n") {
		t.Errorf("exit code %d:\n%s", r.exitCode(), r.markdown())
	}
	r.Parts[1].Result = passed
	if r.judge(); r.exitCode() != exitPassed || !strings.HasPrefix(r.markdown(), "# DOUBLE, not a GPU\n") {
		t.Errorf("exit code %d:\n%s", r.exitCode(), r.markdown())
	}
}

// Passed parts of a group share a row, with the sum of their times. A part with another result has
// its own.
func TestResults(t *testing.T) {
	r := &report{Parts: []*outcome{
		{Name: "kernels/sgd", Result: passed, Seconds: 0.25},
		{Name: "kernels/adam", Result: passed, Seconds: 1.5},
		{Name: "kernels/graph", Result: pending},
		{Name: "kernels/nan", Result: passed, Seconds: 2},
		{Name: "steps/mlp-1", Result: passed, Seconds: 4},
	}}
	want := `
| check | result | took |
|---|---|---|
| kernels: sgd, adam | passed | 1.8 s |
| kernels/graph | pending | – |
| kernels: nan | passed | 2.0 s |
| steps: mlp-1 | passed | 4.0 s |
`
	if diff := cmp.Diff(want, r.results()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A step's parts below 4 % are added up.
func TestStepTimeLine(t *testing.T) {
	var step stepTime
	if err := json.Unmarshal([]byte(`{"Precision": "tf32", "Step": 0.02, "Shares": [
		{"What": "products", "Launches": 59, "Seconds": 0.015}, {"What": "sgd", "Launches": 1, "Seconds": 0.0001}, {"What": "bias", "Launches": 1, "Seconds": 0.0007}]}`), &step); err != nil {
		t.Fatal(err)
	}
	if got, want := step.line(), "- tf32, 20 ms: products 75.0 % (59), others 4.0 %"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Operations of a step per image, worked out by hand: the multiplications of each
// layer are its outputs times its inputs, twice that with the additions, and three
// times that with the backward pass, which the first layer makes without its input's
// gradient.
func TestFLOPs(t *testing.T) {
	// cnn, stride 2: 16·16 pixels of 16 channels from 3, 8·8 of 32 from 16, 4·4 of 64
	// from 32, and 10 outputs from 64.
	first, others := 2*256*16*9*3.0, 2*(64*32*9*16.0+16*64*9*32.0+64*10.0)
	if got, err := flops("cnn"); err != nil || got != 2*first+3*others {
		t.Errorf("%v, %v; want %v", got, err, 2*first+3*others)
	}
	// ResNet-20: one convolution from 3 channels, then 6 of 16 channels at 32·32 pixels; 1
	// of 16 to 32 channels and 5 of 32 at 16·16; 1 of 32 to 64 and 5 of 64 at 8·8. He et
	// al. 2016 count 41 million multiplications for an image, too.
	forward := 2 * (1024*16*9*3 + 6*1024*16*9*16 + 256*32*9*16 + 5*256*32*9*32 + 64*64*9*32 + 5*64*64*9*64 + 640.0)
	if got, err := flops("resnet20"); err != nil || got != 3*forward-2*1024*16*9*3 {
		t.Errorf("%v, %v; want %v", got, err, 3*forward-2*1024*16*9*3)
	}
}

// A peak belongs to one device, not to its other variants.
func TestPeak(t *testing.T) {
	for _, test := range []struct {
		gpu, precision string
		want           float64
	}{
		{"NVIDIA H100 80GB HBM3", "fp32", 67e12},
		{"NVIDIA H100 80GB HBM3", "tf32", 495e12},
		{"NVIDIA H100 80GB HBM3", "bf16", 989e12},
		{"NVIDIA H100 PCIe", "tf32", 0},
		{"NVIDIA A100-SXM4-80GB", "tf32", 156e12},
		{"NVIDIA GeForce RTX 4090", "fp32", 0},
	} {
		if got := peak(test.gpu, test.precision); got != test.want {
			t.Errorf("%s, %s: %g, want %g", test.gpu, test.precision, got, test.want)
		}
	}
}

// A record names the GPU, the commit, and the parts that have not been run.
func TestRecord(t *testing.T) {
	for name, test := range map[string]struct {
		r    report
		want string
	}{
		"fakes":      {report{Double: true}, "test fakes"},
		"no PyTorch": {report{Record: gpucheck.Record{Commit: "abc"}, Parts: []*outcome{{Result: leftOut}}}, "PyTorch"},
		"dirty":      {report{Record: gpucheck.Record{Commit: "abc-dirty", PyTorch: "2.9"}}, "commit first"},
		"unknown":    {report{Record: gpucheck.Record{PyTorch: "2.9"}}, "commit first"},
		"whole":      {report{Record: gpucheck.Record{Commit: "abc", PyTorch: "2.9"}}, ""},
		"unfinished": {report{Record: gpucheck.Record{Commit: "abc", PyTorch: "2.9"}, Parts: []*outcome{{Name: "kernels/sgd", Result: passed}, {Name: "energy/nvml", Result: pending}, {Name: "scaling/gpus", Result: leftOut}}}, ""},
	} {
		checkout := t.TempDir()
		if err := os.MkdirAll(filepath.Join(checkout, "launcher/gpucheck"), 0o700); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		err := record(&test.r, checkout, &said)
		written, _ := os.ReadFile(filepath.Join(checkout, "launcher/gpucheck/record.json"))
		page, _ := os.ReadFile(filepath.Join(checkout, "launcher/gpucheck/record.md"))
		if (page == nil) != (written == nil) {
			t.Errorf("%s: the record is written without its page, or the page without its record", name)
		}
		if test.want == "" && (err != nil || !strings.Contains(string(written), `"commit": "abc"`)) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || written != nil) {
			t.Errorf("%s: %v, want %q; %s", name, err, test.want, written)
		}
		if open := strings.Contains(string(written), `"open": [
    "energy/nvml"
  ]`); open != (name == "unfinished") {
			t.Errorf("%s: %s", name, written)
		}
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
	}{{of(studyText(true, false, 1)), 2}, {of(studyText(false, true, 1)), 4}, {of(studyText(false, false, 1)), 2}, {of(studyText(false, true, 2)), 8}, {of(studyText(false, true, 3)), 8}, {of(studyText(false, true, 8)), 16},
		{of(trainStudy(true, workload{"cnn", 16})), 3}, {of(trainStudy(false, workload{"resnet20", 128})), 3}, {of(scalingStudy(true, 2)), 2}, {of(scalingStudy(false, 2)), 12}, {of(scalingStudy(false, 8)), 24}} {
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
// without its figure is an error, unless it is the fakes'.
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
