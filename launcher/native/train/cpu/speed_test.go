//go:build python

package cpu

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// speed is the time per image of one contender.
type speed struct{ wall, cpu float64 } // seconds

// A contender runs the given steps with the given number of threads.
type contender func(b *testing.B, threads, steps int) speed

const speedBatch = 128

// pytorch starts PyTorch with a model and returns its two contenders.
func pytorch(b *testing.B, model string) (nchw, channelsLast contender) {
	b.Helper()
	programs, err := filepath.Abs("../../../framework/programs")
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/pytorch_speed.py", model, strconv.Itoa(speedBatch))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close() // which ends it
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	answers := bufio.NewReader(out)
	with := func(format string) contender {
		return func(b *testing.B, threads, steps int) (s speed) {
			if _, err := fmt.Fprintln(in, threads, format, steps); err != nil {
				b.Fatal(err)
			}
			if _, err := fmt.Fscanln(answers, &s.wall, &s.cpu); err != nil {
				b.Fatalf("PyTorch has not answered: %v", err)
			}
			return s.of(steps)
		}
	}
	return with("nchw"), with("channels_last")
}

// of converts the time of some steps to the time per image.
func (s speed) of(steps int) speed {
	images := float64(steps * speedBatch)
	return speed{s.wall / images, s.cpu / images}
}

// native returns our engine as a contender, with one engine per number of threads.
func native(b *testing.B, model string) contender {
	engines := map[int]*Engine{}
	return func(b *testing.B, threads, steps int) speed {
		e := engines[threads]
		if e == nil {
			e = newEngine(b, Options{Model: model, Batch: speedBatch, Threads: threads, Momentum: 0.9, WeightDecay: 1e-4})
			fill(e, 1)
			engines[threads] = e
		}
		begin, used := time.Now(), processorTime(b)
		for range steps {
			if _, _, err := e.Gradient(context.Background(), speedBatch); err != nil {
				b.Fatal(err)
			}
			if _, err := e.Reduce(context.Background(), nil); err != nil {
				b.Fatal(err)
			}
			e.Update(0.01)
		}
		return speed{time.Since(begin).Seconds(), (processorTime(b) - used).Seconds()}.of(steps)
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAgainstPyTorch trains with the native engine and with PyTorch in both memory formats, in turn, so
// that other work on the machine affects all alike. A step is a forward pass, a backward pass and SGD at a
// batch of 128. Figures are medians over the rounds. The ratio divides our median by the faster of PyTorch's;
// its range is from the lowest to the highest ratio of a round. The ratio of CPU time with one thread depends
// less on other work.
func BenchmarkAgainstPyTorch(b *testing.B) {
	const rounds = 9
	for _, model := range []string{"resnet20", "resnet44"} {
		b.Run(model, func(b *testing.B) {
			nchw, channelsLast := pytorch(b, model)
			all := []contender{native(b, model), nchw, channelsLast}
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
					for b.Loop() {
						b.ReportMetric(0, "ns/op") // says nothing here
						for _, c := range all {
							c(b, threads, 1)
						}
						wall, cpu := make([][]float64, len(all)), make([][]float64, len(all))
						var ratios []float64
						for range rounds {
							for i, c := range all {
								s := c(b, threads, 1)
								wall[i], cpu[i] = append(wall[i], s.wall), append(cpu[i], s.cpu)
							}
							last := func(i int) float64 { return wall[i][len(wall[i])-1] }
							ratios = append(ratios, min(last(1), last(2))/last(0))
						}
						for i, name := range []string{"native", "pytorch-nchw", "pytorch-nhwc"} {
							b.ReportMetric(1/median(wall[i]), name+"-images/s")
						}
						b.ReportMetric(min(median(wall[1]), median(wall[2]))/median(wall[0]), "ratio")
						b.ReportMetric(slices.Min(ratios), "ratio-low")
						b.ReportMetric(slices.Max(ratios), "ratio-high")
						if threads == 1 {
							b.ReportMetric(min(median(cpu[1]), median(cpu[2]))/median(cpu[0]), "ratio-cpu")
						}
					}
				})
			}
		})
	}
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
