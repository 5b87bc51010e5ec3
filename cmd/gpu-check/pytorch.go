package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/scalebench/scalebench/launcher/framework"
)

//go:embed pytorch.py
var pytorchProgram []byte

// way is one way in which PyTorch trains, such as eager in bf16, and its speed, as
// pytorch.py prints it.
type way struct {
	Precision, Layout, Mode string
	Median, Least, Most     float64 // images/s
	Why                     string  // why it has no rate
}

// compare trains a workload with PyTorch and records the rates, which the page
// compares with the native trainer's. The images are already on the GPU.
func (c *checker) compare(ctx context.Context, o *outcome, w workload) error {
	device, seconds := "cuda", 5.0
	if c.Double {
		device, seconds = "cpu", 0.2
	}
	ways, err := c.pytorchWays(ctx, device, w, w.compiled(), seconds)
	if err != nil {
		return err
	}
	for _, y := range ways {
		o.Rates = append(o.Rates, rate{Model: w.model, Batch: w.batch, Trainer: pytorchTrainer, Mode: y.Mode, Layout: y.Layout, Precision: y.Precision, Median: y.Median, Least: y.Least, Most: y.Most, Why: y.Why})
	}
	return nil
}

// pytorchWays trains with PyTorch on a device in each way, on request also compiled, for the given
// number of seconds, and returns the ways. Each has a rate, or the reason why it could not be
// measured. It is an error if no way has a rate.
func (c *checker) pytorchWays(ctx context.Context, device string, w workload, compiled bool, seconds float64) ([]way, error) {
	pytorch, err := framework.Find("pytorch-ddp")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gpu-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "pytorch.py")
	if err := errors.Join(os.CopyFS(dir, pytorch.Programs), os.WriteFile(program, pytorchProgram, 0o600)); err != nil {
		return nil, err
	}
	args := []string{"-B", program, device, w.model, fmt.Sprint(w.batch), fmt.Sprint(seconds)}
	if compiled {
		args = append(args, "compiled")
	}
	out, err := c.start(ctx, nil, c.python, args...)
	if err != nil {
		return nil, err
	}
	list, err := decodeAll[way](out)
	if err != nil {
		return nil, fmt.Errorf("%s printed %.200q: %w", c.python, out, err)
	}
	for _, y := range list {
		if y.Median <= 0 && y.Why == "" {
			return nil, fmt.Errorf("PyTorch, %s, %s, %s: no rate, and no reason", y.Mode, y.Layout, y.Precision)
		}
	}
	if !slices.ContainsFunc(list, func(y way) bool { return y.Median > 0 }) {
		return nil, fmt.Errorf("PyTorch trains in no way: %.200q", out)
	}
	return list, nil
}
