package main

import (
	"context"
	"fmt"
	"strings"
)

// trainStudy returns the text of a study that trains a model with the native trainer
// on one GPU, in each precision, and its number of points.
func trainStudy(double bool, w workload) (text string, points int) {
	epochs, warmup := 4, 1
	if double {
		epochs, warmup = 2, 0
	}
	return studyFile("", fmt.Sprintf(`model = %q
batch = %d
epochs = %d
warmup_epochs = %d
learning_rate = 0.05`, w.model, w.batch, epochs, warmup), []string{"native"}, []int{1}, `precision = ["`+strings.Join(precisions, `", "`)+`"]`), len(precisions)
}

// leastAccuracy is the accuracy that a training must reach within a few epochs.
// Guessing reaches 0.1; 160 steps on a CPU reached 0.87.
const leastAccuracy = 0.5

// train trains a workload on one GPU in each precision, checks the accuracies and
// records the rates.
func (c *checker) train(ctx context.Context, o *outcome, w workload) error {
	text, points := trainStudy(c.Double, w)
	trial, err := c.trained(ctx, text, points)
	defer trial.remove()
	if err != nil {
		return err
	}
	var found []string
	for _, precision := range precisions {
		for _, r := range trial.rows {
			if !strings.Contains(r.Series, precision) {
				continue
			}
			if r.Accuracy == nil || *r.Accuracy < leastAccuracy && !c.Double {
				return fmt.Errorf("%s reached an accuracy of %s; want %v or more, chance is 0.1", r.Series, figures("%.3f", 1, r.Accuracy), leastAccuracy)
			}
			if r.Throughput != nil {
				o.Rates = append(o.Rates, rate{Model: w.model, Batch: w.batch, Trainer: nativeTrainer, Precision: precision, Median: *r.Throughput})
			}
			found = append(found, fmt.Sprintf("%s %s, median step %s ms", precision, figures("%.1f %%", 100, r.Accuracy), figures("%.3g", 1e3, r.StepP50)))
		}
	}
	if len(found) != points {
		return fmt.Errorf("the series %q, %q … do not name each precision once", trial.rows[0].Series, trial.rows[1].Series)
	}
	o.Found = []string{"accuracies: " + strings.Join(found, "; ")}
	return nil
}

// stepTime is one line that `scalebench-worker step-time` prints.
type stepTime struct {
	Precision string
	Step      float64 // seconds of a whole step, if kernels are launched one by one
	Shares    []struct {
		What     string
		Launches int
		Seconds  float64
	}
}

// split measures which kernels take how much of a step's time. It uses CUDA events
// around each kernel and matrix product.
func (c *checker) split(ctx context.Context, o *outcome, model string) error {
	batch := 512
	if c.Double {
		batch = 16
	}
	out, err := c.start(ctx, nil, c.Worker, "step-time", "--model", model, "--batch", fmt.Sprint(batch))
	if err != nil {
		return err
	}
	o.Found = []string{fmt.Sprintf("Shares of a step of %s, batch %d, with the number of launches, by CUDA events after each launch: the mean of 10 steps without CUDA graphs. A wait for the host counts with the launch that follows it.", model, batch), ""}
	steps, err := decodeAll[stepTime](out)
	if err != nil {
		return fmt.Errorf("%s step-time: %w", c.Worker, err)
	}
	for _, t := range steps {
		if len(t.Shares) == 0 || !(t.Step > 0) {
			return fmt.Errorf("%s step-time: a step of %v s in %d shares", c.Worker, t.Step, len(t.Shares))
		}
		o.Found = append(o.Found, t.line())
	}
	return nil
}

// line returns a list item with the time of the step and the shares of its parts. Parts below 4 %
// are added up.
func (t stepTime) line() string {
	text, others := fmt.Sprintf("- %s, %.3g ms: ", t.Precision, 1e3*t.Step), 0.0
	for _, s := range t.Shares {
		if share := s.Seconds / t.Step; share >= 0.04 {
			text += fmt.Sprintf("%s %.1f %% (%d), ", s.What, 100*share, s.Launches)
		} else {
			others += share
		}
	}
	return text + fmt.Sprintf("others %.1f %%", 100*others)
}
