package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// energyText returns the text of a study with one training on one GPU. The training is
// long enough for a few hundred power readings.
func energyText(double bool) string {
	model, epochs, every := "resnet44", 8, "200ms"
	if double {
		model, epochs, every = "cnn", 4, "100ms"
	}
	return fmt.Sprintf(`[study]
name = "gpu-check"
[workload]
model = %q
batch = 100
epochs = %d
warmup_epochs = 0
learning_rate = 0.01
[data]
path = "data"
[resources]
device = "gpu"
[telemetry]
every = %q
[sweep]
framework = ["native"]
workers = [1]
`, model, epochs, every)
}

// reading holds the two energy readings of a device, as scalebench show --format json
// prints them.
type reading struct {
	Of, Source    string
	Counter, Area *float64 // J
}

// most is the largest allowed ratio between the two energy readings of a GPU. They
// come from different sensors and windows: on an H100, the power readings cover a
// quarter of the time. So they may differ by tens of percent. A wrong unit, or the
// counter of another GPU, makes a larger difference.
const most = 2

// energy trains on one GPU. For each GPU it then compares the energy from NVML's
// counter with the integral of NVML's power readings.
func (c *checker) energy(ctx context.Context, o *outcome) error {
	if c.Double && os.Getenv("SCALEBENCH_NVML") == "" {
		o.Why = "SCALEBENCH_NVML names no double of NVML"
		return nil
	}
	trial, err := c.trained(ctx, energyText(c.Double), 1)
	defer trial.remove()
	if err != nil {
		return err
	}
	out, err := trial.ask("show", trial.rows[0].Run)
	if err != nil {
		return err
	}
	var shown struct {
		Result struct {
			TrainSeconds    float64  `json:"train_seconds"`
			Watts           *float64 // mean power of all devices that count
			JoulesPerSample *float64 `json:"joules_per_sample"`
			Warnings        []string
		}
		Energy []reading
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return fmt.Errorf("%s show: %w", c.Scalebench, err)
	}
	o.Found, err = energyRows(shown.Energy, shown.Result.TrainSeconds, c.Double)
	if err != nil && len(shown.Result.Warnings) > 0 {
		return fmt.Errorf("%w; the run says: %s", err, strings.Join(shown.Result.Warnings, "; "))
	}
	if err == nil && shown.Result.JoulesPerSample != nil {
		o.Found = append(o.Found, "", fmt.Sprintf("In all %.4g W, %.3g J for a sample: of every GPU above by its counter, where it has one, and of what else was read of the node.", *shown.Result.Watts, *shown.Result.JoulesPerSample))
	}
	return err
}

// energyRows returns a Markdown table with both energy readings of each GPU. seconds
// is the duration of the training. It returns an error if the readings differ too
// much.
func energyRows(list []reading, seconds float64, double bool) ([]string, error) {
	rows := []string{fmt.Sprintf("1 training of %.1f s, 1 run, no interval.", seconds), "",
		"| device | energy by counter | by area under the power | mean power by counter | area / counter | source |", "|---|---|---|---|---|---|"}
	gpus := 0
	for _, r := range list {
		if !strings.HasPrefix(r.Of, "GPU ") {
			continue
		}
		switch is := strings.Contains(r.Source, "DOUBLE"); {
		case is && !double:
			return nil, fmt.Errorf("%s is read by the test double of NVML; unset SCALEBENCH_NVML", r.Of)
		case !is && double:
			return nil, fmt.Errorf("-double: %s is not read by the test double of NVML", r.Of)
		}
		gpus++
		counter, area, watts, ratio := "none", "none", "–", "–"
		if r.Counter != nil {
			counter, watts = fmt.Sprintf("%.0f J", *r.Counter), fmt.Sprintf("%.4g W", *r.Counter/seconds)
		}
		if r.Area != nil {
			area = fmt.Sprintf("%.0f J", *r.Area)
		}
		if r.Counter != nil && r.Area != nil {
			x := *r.Area / *r.Counter
			if !(x <= most && x >= 1.0/most) {
				return nil, fmt.Errorf("%s: %s by its counter and %s by the area under its power: one of them is wrong", r.Of, counter, area)
			}
			ratio = fmt.Sprintf("%.3f", x)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", r.Of, counter, area, watts, ratio, strings.ReplaceAll(r.Source, "|", "/")))
	}
	if gpus == 0 {
		return nil, errors.New("no energy was read of any GPU")
	}
	return rows, nil
}
