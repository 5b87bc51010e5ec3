package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed beside.py
var besideProgram string

// programs are where PyTorch's models are, from the top of the source.
const programs = "launcher/framework/programs"

// way is one in which PyTorch trains, as beside.py prints it.
type way struct {
	Precision, Layout, Mode string
	Median, Least, Most     float64 // images/s
	Why                     string  // there are none
}

// besideStudy trains ResNet-20 by the native trainer in two precisions.
func besideStudy(batch int) (text string, points int) {
	return fmt.Sprintf(`[study]
name = "gpu-check"
[workload]
model = "resnet20"
batch = %d
epochs = 4
warmup_epochs = 1
[data]
path = "data"
[resources]
device = "gpu"
[sweep]
framework = ["native"]
workers = [1]
precision = ["fp32", "tf32"]
`, batch), 2
}

// beside has ResNet-20 trained by the native trainer and by PyTorch, in the ways that
// people do, one after the other on one GPU. The native trainer copies, crops
// and mirrors its images; PyTorch's batch lies on the GPU.
func (c *checker) beside(ctx context.Context, s *step) error {
	if c.Double {
		s.LeftOut = "it takes PyTorch for CUDA"
		return nil
	}
	folder, err := filepath.Abs(programs)
	if err != nil {
		return err
	}
	s.Found = []string{"ResNet-20, 1 GPU, images/s. Native: 1 run each, its own input included. PyTorch: the median of five stretches of 2 s, with the least and the most, of one batch that lies on the GPU.", "",
		"| batch | trainer | precision | images/s | least to most | native / PyTorch |", "|---|---|---|---|---|---|"}
	var goals []string
	for _, batch := range []int{128, 512} {
		text, points := besideStudy(batch)
		trial, err := c.trained(ctx, text, points)
		trial.remove()
		if err != nil {
			return err
		}
		native := map[string]float64{}
		for _, r := range trial.rows {
			for _, precision := range []string{"fp32", "tf32"} {
				if strings.Contains(r.Series, precision) {
					native[precision] = *r.Throughput
				}
			}
		}
		if len(native) != points {
			return fmt.Errorf("the series %q and %q do not say which precision they are of", trial.rows[0].Series, trial.rows[1].Series)
		}
		for _, precision := range []string{"fp32", "tf32"} {
			s.Found = append(s.Found, fmt.Sprintf("| %d | native | %s | %.0f | – | – |", batch, precision, native[precision]))
		}
		ways, err := c.pytorchWays(ctx, folder, "cuda", "resnet20", batch, 10)
		if err != nil {
			return err
		}
		for _, w := range ways {
			name := fmt.Sprintf("| %d | PyTorch, %s, %s | %s |", batch, w.Mode, w.Layout, w.Precision)
			if w.Why != "" {
				s.Found = append(s.Found, fmt.Sprintf("%s – (%s) | – | – |", name, strings.ReplaceAll(w.Why, "|", "/")))
				continue
			}
			s.Found = append(s.Found, fmt.Sprintf("%s %.0f | %.0f to %.0f | %.2f |", name, w.Median, w.Least, w.Most, native[w.Precision]/w.Median))
		}
		goals = append(goals, against(batch, native, ways)...)
	}
	s.Found = append(append(s.Found, "", "The goal is 1.0 or more of PyTorch eager, in its faster layout and the same precision:", ""), goals...)
	return nil
}

// against is the native trainer's rate over that of PyTorch's faster layout, eager and
// compiled, in the same precision.
func against(batch int, native map[string]float64, ways []way) (lines []string) {
	for _, precision := range []string{"fp32", "tf32"} {
		line := fmt.Sprintf("- batch %d, %s:", batch, precision)
		for i, mode := range []string{"eager", "compiled"} {
			fastest := 0.0
			for _, w := range ways {
				if w.Mode == mode && w.Precision == precision {
					fastest = max(fastest, w.Median)
				}
			}
			if i > 0 {
				line += ","
			}
			if fastest > 0 {
				line += fmt.Sprintf(" %.2f of %s", native[precision]/fastest, mode)
			} else {
				line += fmt.Sprintf(" %s does not run", mode)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// pytorchWays are the ways in which PyTorch trains a model on a device, for so many
// seconds each. Every way has a rate or a reason why not; that of no way has one is an
// error.
func (c *checker) pytorchWays(ctx context.Context, programs, device, model string, batch int, seconds float64) ([]way, error) {
	out, err := c.start(ctx, []string{"PYTHONPATH=" + programs}, c.Python, "-B", "-c", besideProgram, device, model, fmt.Sprint(batch), fmt.Sprint(seconds))
	if err != nil {
		return nil, err
	}
	var list []way
	rates := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var w way
		if err := d.Decode(&w); err != nil {
			return nil, fmt.Errorf("%s printed %.200q: %w", c.Python, out, err)
		}
		if w.Median > 0 {
			rates++
		} else if w.Why == "" {
			return nil, fmt.Errorf("PyTorch, %s, %s, %s: no rate, and no reason", w.Mode, w.Layout, w.Precision)
		}
		list = append(list, w)
	}
	if rates == 0 {
		return nil, fmt.Errorf("PyTorch trains in no way: %.200q", out)
	}
	return list, nil
}
