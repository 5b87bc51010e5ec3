package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// scalingStudy returns the text of a study of the native trainer on 1, 2, 4 … GPUs,
// and its number of points. The batch per GPU is constant. There are enough repeats
// for intervals.
func scalingStudy(double bool, gpus int) (text string, points int) {
	model, batch, steps, repeats := "resnet44", 512, 400, 6
	if double {
		model, batch, steps, repeats = "cnn", 8, 12, 1
	}
	counts := workers(gpus)
	return studyFile(fmt.Sprintf("repeats = %d", repeats), fmt.Sprintf(`model = %q
batch = %d
max_steps = %d
warmup_epochs = 0
learning_rate = 0.01
scale_learning_rate = "none"`, model, batch, steps), []string{"native"}, counts, ""), repeats * len(counts)
}

// scaled is one line that scalebench scaling --format json prints.
type scaled struct {
	Workers        int
	Runs           int
	Throughput     *float64 // samples/s
	ThroughputLow  *float64 `json:"throughput_low"`
	ThroughputHigh *float64 `json:"throughput_high"`
	Efficiency     *float64
	EfficiencyLow  *float64 `json:"efficiency_low"`
	EfficiencyHigh *float64 `json:"efficiency_high"`
	Warnings       []string
}

// scaling measures how the native trainer scales over this machine's GPUs. It is
// left out with a single GPU.
func (c *checker) scaling(ctx context.Context, o *outcome) error {
	gpus := *c.facts.Devices
	if gpus < 2 {
		o.Why = "this process sees one GPU"
		return nil
	}
	text, points := scalingStudy(c.Double, gpus)
	trial, err := c.trained(ctx, text, points)
	defer trial.remove()
	if err != nil {
		return err
	}
	out, err := trial.ask("scaling", "gpu-check")
	if err != nil {
		return err
	}
	var list []scaled
	if err := json.Unmarshal(out, &list); err != nil {
		return fmt.Errorf("%s scaling: %w", c.Scalebench, err)
	}
	o.Found, err = scalingTable(list, gpus, c.Double)
	return err
}

// scalingTable returns a Markdown table with one line for each number of GPUs. It
// returns an error if a value is missing, except with the test fakes, whose study
// is too small.
func scalingTable(list []scaled, gpus int, double bool) ([]string, error) {
	counts := workers(gpus)
	if len(list) != len(counts) {
		return nil, fmt.Errorf("scaling has %d lines, want one for each of %v GPUs", len(list), counts)
	}
	what := "ResNet-44 in fp32 by the native trainer, 512 images per GPU and step, 6 runs each, local batch normalisation"
	if double {
		what = "the CNN through the fakes, once each"
	}
	lines := []string{what + "; efficiency is images/s per GPU over those of one GPU; 95 % intervals", "",
		"| GPUs | runs | images/s | interval | efficiency | interval |", "|---|---|---|---|---|---|"}
	var notes []string
	for i, r := range list {
		if r.Workers != counts[i] {
			return nil, fmt.Errorf("scaling has %d GPUs in line %d, want %d", r.Workers, i+1, counts[i])
		}
		if !double && (r.Throughput == nil || r.Efficiency == nil) {
			return nil, fmt.Errorf("no efficiency on %d GPUs: %s", r.Workers, strings.Join(r.Warnings, "; "))
		}
		lines = append(lines, fmt.Sprintf("| %d | %d | %s | %s | %s | %s |", r.Workers, r.Runs,
			figures("%.0f", 1, r.Throughput), figures("%.0f", 1, r.ThroughputLow, r.ThroughputHigh),
			figures("%.1f %%", 100, r.Efficiency), figures("%.1f %%", 100, r.EfficiencyLow, r.EfficiencyHigh)))
		for _, w := range r.Warnings {
			if note := "- " + w; !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	if len(notes) > 0 {
		lines = append(append(lines, ""), notes...)
	}
	return lines, nil
}

// figures formats a value, or the two ends of an interval; a missing value becomes
// a dash.
func figures(format string, times float64, list ...*float64) string {
	var texts []string
	for _, v := range list {
		if v == nil {
			return "–"
		}
		texts = append(texts, fmt.Sprintf(format, times**v))
	}
	return strings.Join(texts, " to ")
}
