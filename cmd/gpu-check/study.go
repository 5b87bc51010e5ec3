package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// workers returns the worker counts of the study: powers of two up to the number of
// GPUs.
func workers(gpus int) []int {
	list := []int{1}
	for n := 2; n <= gpus; n *= 2 {
		list = append(list, n)
	}
	return list
}

// studyText returns the text of the study that the check runs, and its number of
// points. It trains ResNet-44 with two batch sizes, with the native trainer and, if
// it was found, with PyTorch. Runs are long enough for a steady state. The data is in
// the folder next to the study. With the test fakes of CUDA's libraries, it is a
// small study with the native trainer only.
func studyText(double, pytorch bool, gpus int) (text string, points int) {
	if double {
		return studyFile("", `model = "cnn"
epochs = 2
warmup_epochs = 0
learning_rate = 0.01`, []string{"native"}, []int{1}, "batch = [16, 32]"), 2
	}
	frameworks := []string{"native"}
	if pytorch {
		frameworks = []string{"pytorch-ddp", "native"}
	}
	counts := workers(gpus)
	return studyFile("", `model = "resnet44"
epochs = 4
warmup_epochs = 1`, frameworks, counts, "batch = [128, 1024]"), 2 * len(frameworks) * len(counts)
}

// studyFile returns the text of a study on GPUs, with the given keys of [study] and [workload], and with one
// more line of [sweep].
func studyFile(study, workload string, frameworks []string, workers []int, sweep string) string {
	return fmt.Sprintf(`[study]
name = "gpu-check"
%s
[workload]
%s
[data]
path = "data"
[resources]
device = "gpu"
[sweep]
framework = ["%s"]
workers = %s
%s
`, study, workload, strings.Join(frameworks, `", "`), strings.ReplaceAll(fmt.Sprint(workers), " ", ", "), sweep)
}

// row is one run, as scalebench runs --format json prints it.
type row struct {
	Run, Series, Status, Dir string
	Detail                   *string
	Workers                  int
	Steps                    *int64
	Throughput               *float64 // samples/s
	ThroughputWhy            *string  `json:"throughput_why"`
	StepP50                  *float64 `json:"step_p50"`       // s
	Accuracy                 *float64 `json:"final_accuracy"` // as a fraction
}

// study tests all steps of a user's study: plan, local runs, collecting, and results.
func (c *checker) study(ctx context.Context, o *outcome) error {
	text, points := studyText(c.Double, c.hasPyTorch(), *c.facts.Devices)
	trial, err := c.trained(ctx, text, points)
	defer trial.remove()
	if err != nil {
		return err
	}
	o.Found = []string{"| run | workers | steps | throughput (1 run, no interval) | median step | NCCL |", "|---|---|---|---|---|---|"}
	for _, r := range trial.rows {
		library, err := ncclOf(r.Dir)
		if err != nil {
			return err
		}
		switch {
		case library != "":
		case r.Workers == 1 && strings.Contains(r.Series, "native"): // a single worker needs no all-reduce
			library = "–"
		default:
			return fmt.Errorf("%s does not say that it used NCCL", r.Run)
		}
		throughput, step := "–", "–" // both are missing without a steady state
		if r.Throughput != nil {
			throughput, step = fmt.Sprintf("%.0f samples/s", *r.Throughput), fmt.Sprintf("%.3g ms", 1e3**r.StepP50)
		}
		o.Found = append(o.Found, fmt.Sprintf("| %s | %d | %d | %s | %s | %s |", r.Series, r.Workers, *r.Steps, throughput, step, library))
	}
	return nil
}

// A trial is a study that the check has run.
type trial struct {
	rows   []row                                   // the study's runs, all with good results
	ask    func(command ...string) ([]byte, error) // runs a scalebench command about the study and returns its JSON
	remove func()                                  // removes the folders of the study
}

// trained runs a study and checks that each of its points has a good run. The caller
// must call remove on the result, even after an error.
func (c *checker) trained(ctx context.Context, text string, points int) (t trial, err error) {
	dir, err := os.MkdirTemp("", "gpu-check-")
	t.remove = func() { os.RemoveAll(dir) }
	if err != nil {
		return t, err
	}
	file, site := filepath.Join(dir, "study.toml"), filepath.Join(dir, "site.toml")
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(site, fmt.Appendf(nil, "python = %q\nworker = %q\n", c.python, c.Worker), 0o600)); err != nil {
		return t, err
	}
	samples := []string{"--train", "50000", "--test", "2000"}
	if c.Double {
		samples = []string{"--train", "500", "--test", "100"}
	}
	if _, err := c.start(ctx, nil, c.Scalebench, append([]string{"data", "synth", filepath.Join(dir, "data")}, samples...)...); err != nil {
		return t, err
	}
	t.ask = func(command ...string) ([]byte, error) {
		return c.start(ctx, nil, c.Scalebench, append([]string{"--quiet", "--db", filepath.Join(dir, "db"), "--runs", filepath.Join(dir, "runs"), "--format", "json"}, command...)...)
	}
	run := []string{"run", file, "--site", site}
	if c.Double {
		run = append(run, "--oversubscribe") // the speed does not matter
	}
	if _, err := t.ask(run...); err != nil {
		return t, err
	}
	if _, err := t.ask("collect", "gpu-check"); err != nil {
		return t, err
	}
	out, err := t.ask("runs", "--study", "gpu-check")
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(out, &t.rows); err != nil {
		return t, fmt.Errorf("%s runs: %w", c.Scalebench, err)
	}
	if len(t.rows) != points {
		return t, fmt.Errorf("the database has %d runs, the study %d points", len(t.rows), points)
	}
	for _, r := range t.rows {
		switch {
		case r.Status != "done":
			return t, fmt.Errorf("%s is %s: %s", r.Run, r.Status, orDash(r.Detail))
		case r.Throughput == nil && !c.Double: // with the fakes, the few steps on a busy machine may not be steady
			return t, fmt.Errorf("%s has no throughput: %s", r.Run, orDash(r.ThroughputWhy))
		case r.Steps == nil || r.StepP50 == nil && r.Throughput != nil:
			return t, fmt.Errorf("%s has no steps", r.Run)
		}
	}
	return t, nil
}

func orDash(s *string) string {
	if s == nil {
		return "–"
	}
	return *s
}

// ncclOf returns the version of NCCL that rank 0 of a run recorded; "" if it did not
// use NCCL.
func ncclOf(dir string) (string, error) {
	path := rundir.Folder(dir).EventFile("rank", 0, 0)
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for r := metrics.NewReader(f, path, 0, 0); ; {
		e, err := r.Next()
		switch {
		case err == io.EOF:
			return "", nil
		case err != nil:
			return "", err
		case e.Environment != nil && e.Environment.Versions["nccl"] != "":
			return e.Environment.Versions["nccl"], nil
		}
	}
}
