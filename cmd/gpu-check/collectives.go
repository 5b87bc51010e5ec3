package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/extract"
)

// bus is the result of one collective operation at one size, out of place, as
// scalebench-worker collective --json prints it on one line.
type bus struct {
	Op      collective.Op `json:"op"`
	Bytes   int64         `json:"bytes"`
	InPlace bool          `json:"in_place"`
	Median  float64       `json:"seconds"`
	P99     float64       `json:"seconds_p99"`
	CV      float64       `json:"cv"`
	BusBW   float64       `json:"busbw"` // bytes/s
}

// sizes returns the two sizes in bytes that the report shows: a small one for
// latency and a large one for bandwidth.
func (c *checker) sizes() [2]int64 {
	if c.Double {
		return [2]int64{1 << 10, 8 << 10}
	}
	return [2]int64{1 << 10, 64 << 20}
}

// benchmark runs `scalebench-worker collective`, which measures the operations and
// checks every result.
func (c *checker) benchmark(ctx context.Context, o *outcome) error {
	sizes, iterations := c.sizes(), 20
	if c.Double {
		iterations = 3
	}
	var environment []string
	if c.shared() {
		environment, o.Mark = []string{"SCALEBENCH_SHARE_GPU=1"}, notPerformance
	}
	out, err := c.start(ctx, environment, c.Worker, "collective", "--ranks", fmt.Sprint(c.ranks), "--backend", "nccl", "--max", fmt.Sprint(sizes[1]), "--iterations", fmt.Sprint(iterations), "--json")
	if err != nil {
		return err
	}
	results, err := decodeAll[bus](out)
	if err != nil {
		return fmt.Errorf("%s collective --json: %w", c.Worker, err)
	}
	o.Found = []string{"| collective, out of place | size | median | 99 % | cv | busbw |", "|---|---|---|---|---|---|"}
	for _, op := range collective.Ops {
		for _, size := range sizes {
			i := slices.IndexFunc(results, func(r bus) bool { return r.Op == op && r.Bytes == size && !r.InPlace })
			if i < 0 {
				return fmt.Errorf("no result for %s of %d bytes", op, size)
			}
			r := results[i]
			if r.Median <= 0 {
				return fmt.Errorf("%s of %d bytes took %v s", op, size, r.Median)
			}
			o.Buses = append(o.Buses, r)
			o.Found = append(o.Found, fmt.Sprintf("| %s | %d B | %.1f µs | %.1f µs | %.0f %% | %.3g GB/s |", op, size, 1e6*r.Median, 1e6*r.P99, 100*r.CV, r.BusBW/1e9))
		}
	}
	o.Found = append(o.Found, "", fmt.Sprintf("%d results over %d ranks, %d iterations each, every element checked", len(results), c.ranks, iterations))
	return nil
}

// ncclTests measures the same operations with NVIDIA's nccl-tests, if its programs
// are in PATH.
func (c *checker) ncclTests(ctx context.Context, o *outcome) error {
	ours := c.report.outcome("collectives/benchmark").Buses
	if c.shared() {
		o.Why = fmt.Sprintf("nccl-tests needs a GPU for each of %d ranks, and there are %d", c.ranks, *c.facts.Devices)
		return nil
	}
	reader, err := extract.Find("nccl-tests")
	if err != nil {
		return err
	}
	o.Found = []string{"| collective, out of place | size | scalebench | nccl-tests | scalebench | nccl-tests | busbw ratio |", "|---|---|---|---|---|---|---|"}
	sizes := c.sizes()
	for _, op := range collective.Ops {
		program, err := exec.LookPath(string(op) + "_perf")
		if err != nil {
			continue
		}
		out, err := c.start(ctx, nil, program, "-g", fmt.Sprint(c.ranks), "-b", fmt.Sprint(sizes[0]), "-e", fmt.Sprint(sizes[1]), "-f", "2")
		if err != nil {
			return err
		}
		content, err := reader.Extract(bytes.NewReader(out), extract.Options{File: program, Workers: c.ranks})
		if err != nil {
			return err
		}
		var list []metrics.Figure
		for f := range content.Findings() {
			if f.Event.Figure != nil {
				list = append(list, *f.Event.Figure)
			}
		}
		measured, _ := busbw.Group(list)
		for _, m := range measured {
			i := slices.IndexFunc(ours, func(b bus) bool { return b.Op == op && float64(b.Bytes) == m.Bytes })
			if m.InPlace || i < 0 || m.Seconds == nil || m.BusBW == nil {
				continue
			}
			ratio := "–"
			if *m.BusBW > 0 {
				ratio = fmt.Sprintf("%.2f", ours[i].BusBW / *m.BusBW)
			}
			o.Found = append(o.Found, fmt.Sprintf("| %s | %d B | %.1f µs | %.1f µs | %.3g GB/s | %.3g GB/s | %s |", op, ours[i].Bytes, 1e6*ours[i].Median, 1e6**m.Seconds, ours[i].BusBW/1e9, *m.BusBW/1e9, ratio))
		}
	}
	if len(o.Found) == 2 {
		o.Why = fmt.Sprintf("no %s of nccl-tests is in PATH", strings.Join([]string{"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf"}, ", "))
	}
	return nil
}
