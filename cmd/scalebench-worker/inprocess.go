//go:build !training

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// openLocal loads the point's model in this process with a replica's number of threads,
// until end is called.
func (r *serving) openLocal(ctx context.Context) (m target.Local, end func(), err error) {
	threads := max(r.point.Resources.CPUsPerWorker, 1)
	if r.framework.Server { // these serve ONNX files
		return openONNX(ctx, pythonOfRun(), r.point.Workload.Serve.Model, threads)
	}
	trained, err := openModel("workload.model", r.point.Workload.Serve.Model, 1)
	if err != nil {
		return nil, nil, err
	}
	classifier, err := cpu.NewClassifier(trained, threads, os.Getenv(train.KernelsVariable))
	if err != nil {
		return nil, nil, fmt.Errorf("workload.model: %w", err)
	}
	before := processors(threads)
	return train.NewLocal(trained, classifier), func() { classifier.Close(); runtime.GOMAXPROCS(before) }, nil
}

// pythonOfRun returns the interpreter whose packages the run uses.
func pythonOfRun() string { return cmp.Or(os.Getenv(framework.PythonVariable), "python3") }

// onnxruntimeVersion returns the version of the library that computes the model in this process; "" if none
// does, or it cannot be found (openLocal reports why).
func (r *serving) onnxruntimeVersion(ctx context.Context) string {
	if w := r.point.Workload.Serve; !r.framework.Server || w.Target != study.Process {
		return "" // for servers, the Python packages state it
	}
	return onnxruntimeVersion(ctx, pythonOfRun())
}

// processors allows threads to compute while another thread does other work, and returns the previous setting.
func processors(threads int) (before int) {
	if os.Getenv("GOMAXPROCS") != "" {
		threads = runtime.GOMAXPROCS(0) - 1
	}
	return runtime.GOMAXPROCS(threads + 1)
}

// hasModel reports whether the replicas serve a model that this process can compute.
func (r *serving) hasModel() bool {
	return !r.framework.UserProgram && r.point.Workload.Serve.Path == ""
}

// aloneTime returns how long to measure the model alone if a load is measured for d.
func aloneTime(d time.Duration) time.Duration { return min(max(d/4, time.Second), 10*time.Second) }

// alone measures the model without a server, for each batch. It runs in the process of the
// first replica's rank, so on the replica's CPUs, before any replica starts.
func (r *serving) alone(ctx context.Context) error {
	w := r.point.Workload.Serve
	if r.replica() != 0 {
		return nil
	}
	m, end, err := r.openLocal(ctx)
	if err != nil && r.framework.Server { // servers work without it
		return r.warn(fmt.Sprintf("no %s, the time of the model alone: %v", measure.ModelP50, err))
	}
	if err != nil {
		return err
	}
	defer end()
	for _, batch := range w.Batch {
		in, err := r.inputs(batch)
		if err != nil {
			return err
		}
		q, err := target.InProcess(m, in)
		if err != nil {
			return fmt.Errorf("the model alone: %w", err)
		}
		fmt.Printf("measuring the model alone, batch %d\n", batch)
		d := aloneTime(time.Duration(w.Duration))
		result, err := loadtest.Run(ctx, loadtest.Options{Dial: q.Dial, InFlight: 1, Duration: d, Window: d / loadtest.Windows, Timeout: time.Duration(w.Timeout), InProcess: true})
		if err != nil {
			return fmt.Errorf("the model alone: %w", err)
		}
		v := result.Judge()
		p50, why := v.Percentile(loadtest.Latency, 0.5)
		if why == "" {
			err = r.figure(metrics.Figure{Name: measure.ModelP50, Unit: "s", Value: p50, At: map[string]any{measure.Batch: float64(batch)}})
		} else {
			err = r.warn(fmt.Sprintf("the model alone, batch %d: no P50: %s", batch, why))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
