//go:build python

package main

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/native/dataset"
)

// A contender is one framework on a number of single-threaded ranks.
type contender struct {
	framework string
	ranks     int
	run       *localRun
	rates     []float64 // samples/s over all ranks, by round
}

const (
	efficiencyRounds = 6
	efficiencyTurn   = 4 * time.Second // time of each contender in a round
)

// BenchmarkEfficiency measures the two-rank scaling efficiency of the native trainer and of
// PyTorch's DistributedDataParallel over gloo on this machine, which needs two idle CPUs: the
// throughput of two single-threaded ranks divided by twice the throughput of one. All four
// trainings stay alive and take turns while the others are stopped, so that disturbances affect all
// of them alike.
//
// mlp's gradient is 14.7 MB, ResNet-20's 1.1 MB.
func BenchmarkEfficiency(b *testing.B) {
	requireFastBLAS(b)
	worker, data := buildWorker(b), b.TempDir()
	if err := dataset.Synthesize(data, dataset.SyntheticOptions{TrainSamples: 12800, TestSamples: 64}); err != nil {
		b.Fatal(err)
	}
	for _, model := range []string{"resnet20", "mlp"} {
		b.Run(model, func(b *testing.B) {
			for range b.N {
				list := []*contender{{framework: "native", ranks: 1}, {framework: "native", ranks: 2}, {framework: "pytorch-ddp", ranks: 1}, {framework: "pytorch-ddp", ranks: 2}}
				for _, c := range list {
					c.run = startLocal(b, c.ranks, efficiencyStudy(c.framework, model, data, c.ranks), fmt.Sprintf("worker = %q\npython = \"/usr/bin/python3\"\n", worker))
					c.signal(b, syscall.SIGSTOP)
				}
				for round := range efficiencyRounds {
					for i := range list {
						c := list[(i+round)%len(list)]
						c.signal(b, syscall.SIGCONT)
						time.Sleep(efficiencyTurn)
						c.signal(b, syscall.SIGSTOP)
					}
				}
				for _, c := range list {
					c.rates = c.turns(b)
					c.signal(b, syscall.SIGKILL)
					c.signal(b, syscall.SIGCONT)
					_ = c.run.cmd.Wait() // it fails, because it was killed
				}
				compareContenders(b, list)
			}
		})
	}
}

// requireFastBLAS skips a PyTorch that computes dense layers with the reference BLAS,
// Debian's default. It is ten times as slow, which hides communication.
func requireFastBLAS(b *testing.B) {
	b.Helper()
	const script = `import torch; print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if "blas" in line}))`
	out, err := exec.Command("/usr/bin/python3", "-c", script).CombinedOutput()
	if err != nil {
		b.Fatalf("import torch: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "/blas/libblas") {
		b.Fatalf("PyTorch computes with the reference BLAS (%s); make bench-packages installs OpenBLAS", strings.TrimSpace(string(out)))
	}
}

func efficiencyStudy(framework, model, data string, ranks int) string {
	return fmt.Sprintf(`
[study]
name = "e"
[workload]
model = %q
batch = 128
warmup_epochs = 0
learning_rate = 0.001
augment = false
epochs = 1000000
[data]
path = %q
[sweep]
framework = [%q]
workers = [%d]
`, model, data, framework, ranks)
}

// signal sends a signal to the ranks only, not to their supervisors.
func (c *contender) signal(b *testing.B, s syscall.Signal) {
	b.Helper()
	for _, pid := range c.run.ranks {
		if err := syscall.Kill(pid, s); err != nil && s != syscall.SIGCONT {
			b.Fatalf("%s on %d ranks: %v: %s", c.framework, c.ranks, err, &c.run.output)
		}
	}
}

// turns returns the throughputs of the contender's turns, from the steps between two
// stopped ones; NaN if there are too few. The first step after a stop is left out too,
// because its data have left the caches.
func (c *contender) turns(b *testing.B) (rates []float64) {
	b.Helper()
	var slowest []float64 // seconds of each step, the largest over the ranks
	samples := 0.0        // of one step, over all ranks
	for rank := range c.ranks {
		step := 0
		for _, e := range c.run.events(b, "rank", rank) {
			if e.Steps == nil {
				continue
			}
			for i, ticks := range e.Steps.Duration {
				seconds := float64(ticks) * e.Steps.Tick
				if step == len(slowest) {
					slowest = append(slowest, 0)
				}
				slowest[step] = max(slowest[step], seconds)
				samples = float64(e.Steps.Samples[i]) * float64(c.ranks)
				step++
			}
		}
	}
	stopped := efficiencyTurn.Seconds() // shorter than any stop, longer than any step
	var turn []float64
	for _, seconds := range slowest {
		if seconds < stopped {
			turn = append(turn, seconds)
			continue
		}
		rate := math.NaN()
		if len(turn) > 2 {
			sum := 0.0
			for _, s := range turn[1:] {
				sum += s
			}
			rate = samples * float64(len(turn)-1) / sum
		}
		rates, turn = append(rates, rate), nil
	}
	if len(rates) < efficiencyRounds {
		b.Fatalf("%s on %d ranks: %d turns of %d can be told apart; is the machine busy?", c.framework, c.ranks, len(rates), efficiencyRounds)
	}
	return rates[1:efficiencyRounds] // steps before the first round do not count, and the last turn has no end
}

// compareContenders prints medians over the rounds in which all contenders have a throughput
// and, in brackets, the smallest and the largest.
func compareContenders(b *testing.B, list []*contender) {
	spread := func(values []float64, format string) string {
		sorted := slices.Sorted(slices.Values(values))
		return fmt.Sprintf(format+" ["+format+", "+format+"]", median(sorted), sorted[0], sorted[len(sorted)-1])
	}
	rates, efficiency := make([][]float64, len(list)), make([][]float64, len(list)/2)
	var ratio []float64 // native's efficiency over that of DDP
	for round := range list[0].rates {
		var now []float64
		for _, c := range list {
			now = append(now, c.rates[round])
		}
		if slices.ContainsFunc(now, math.IsNaN) {
			continue
		}
		for i, rate := range now {
			rates[i] = append(rates[i], rate)
		}
		native, ddp := now[1]/now[0]/2, now[3]/now[2]/2
		efficiency[0], efficiency[1], ratio = append(efficiency[0], native), append(efficiency[1], ddp), append(ratio, native/ddp)
	}
	if len(ratio) < 3 {
		b.Fatalf("%d of %d rounds in which all made three steps; is the machine busy?", len(ratio), len(list[0].rates))
	}
	for i, e := range efficiency {
		b.Logf("%s: 1 rank %s samples/s, 2 ranks %s, efficiency %s", list[2*i].framework, spread(rates[2*i], "%.0f"), spread(rates[2*i+1], "%.0f"), spread(e, "%.3f"))
	}
	b.Logf("native's efficiency over pytorch-ddp's: %s in %d rounds, target 1.0 or more", spread(ratio, "%.3f"), len(ratio))
	b.ReportMetric(median(slices.Sorted(slices.Values(efficiency[0]))), "native-efficiency")
	b.ReportMetric(median(slices.Sorted(slices.Values(efficiency[1]))), "ddp-efficiency")
	b.ReportMetric(median(slices.Sorted(slices.Values(ratio))), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
