package cpu

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/summary"
)

// images is a small data set: each class is a different image with noise of the same size, so that gradients
// share a direction.
type images struct {
	pixels [][]float32
	labels []byte
}

func newImages(n, size int) images {
	random := rand.New(rand.NewPCG(11, 12))
	classes := make([][]float32, 10)
	for c := range classes {
		classes[c] = make([]float32, size)
		for i := range classes[c] {
			classes[c][i] = float32(random.NormFloat64())
		}
	}
	var d images
	for range n {
		label := byte(random.IntN(len(classes)))
		pixels := make([]float32, size)
		for i := range pixels {
			pixels[i] = classes[label][i] + float32(random.NormFloat64())
		}
		d.pixels, d.labels = append(d.pixels, pixels), append(d.labels, label)
	}
	return d
}

// gradient returns the gradient of the mean loss over the given images, from an engine without other ranks.
func (d images) gradient(t testing.TB, e *Engine, ids []int) []float64 {
	d.put(e, ids)
	if _, _, err := e.Gradient(context.Background(), len(ids)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Reduce(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	list := make([]float64, e.Parameters())
	for i, g := range e.gradients[:len(list)] {
		list[i] = float64(g)
	}
	return list
}

func (d images) put(e *Engine, ids []int) {
	pixels, labels := e.Input()
	for i, id := range ids {
		copy(pixels[i*len(d.pixels[id]):], d.pixels[id])
		labels[i] = d.labels[id]
	}
}

func squared(v []float64) (sum float64) {
	for _, x := range v {
		sum += x * x
	}
	return sum
}

// The reported norms of two ranks equal the norms of separately computed gradients: own for the
// mean loss over the rank's images, with batch norm's statistics over these, and averaged for the
// mean over ranks. cnn is reduced in one bucket, mlp in several.
func TestSquaredNorms(t *testing.T) {
	for _, o := range []Options{{Model: "cnn", Height: 16, Width: 16}, {Model: "mlp", Height: 16, Width: 16}} {
		t.Run(o.Model, func(t *testing.T) {
			o.Batch, o.Seed, o.Threads, o.NormsEvery = 6, 7, 1, 1
			data := newImages(12, 3*o.Height*o.Width)
			ids := [][]int{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}}
			alone := newEngine(t, o)
			zero, one := data.gradient(t, alone, ids[0]), data.gradient(t, alone, ids[1])
			if _, _, ok := alone.SquaredNorms(); ok {
				t.Error("a rank alone has two batch sizes")
			}
			mean := make([]float64, len(zero))
			for i := range mean {
				mean[i] = (zero[i] + one[i]) / 2
			}
			want := []float64{squared(zero), squared(one)}
			ranks(t, 2, func(rank int, g *collective.Group) {
				o := o
				o.Channels, o.Classes, o.GlobalBatch, o.NormsEvery = 3, 10, 12, 2
				e, err := New(o, g)
				if err != nil {
					t.Error(err)
					return
				}
				defer e.Close()
				for step := range 5 { // each begins anew
					data.gradient(t, e, ids[rank])
					own, averaged, ok := e.SquaredNorms()
					if step%2 == 1 {
						if ok {
							t.Errorf("rank %d: norms of step %d, which was not to be measured", rank, step)
						}
						continue
					}
					if !ok || math.Abs(own/want[rank]-1) > 1e-4 || math.Abs(averaged/squared(mean)-1) > 1e-4 {
						t.Errorf("rank %d: own %g and averaged %g (%v), want %g and %g", rank, own, averaged, ok, want[rank], squared(mean))
					}
				}
			})
		})
	}
}

func TestNoSquaredNormsWithSyncBatchNorm(t *testing.T) {
	data := newImages(4, 3*16*16)
	ranks(t, 2, func(rank int, g *collective.Group) {
		e, err := New(Options{Model: "cnn", Height: 16, Width: 16, Channels: 3, Classes: 10, Batch: 2, GlobalBatch: 4, SyncBatchNorm: true, NormsEvery: 1}, g)
		if err != nil {
			t.Error(err)
			return
		}
		defer e.Close()
		data.gradient(t, e, []int{2 * rank, 2*rank + 1})
		if own, averaged, ok := e.SquaredNorms(); ok {
			t.Errorf("norms of %g and %g", own, averaged)
		}
	})
}

// At frozen parameters the estimate from two ranks' norms agrees with G and Σ
// from the gradient of every single sample.
//
// Samples are drawn without replacement. With the mean G_n and the variance S
// (divisor n − 1) of the n samples' gradients, the mean over m of them has
// expected squared norm |G_n|² + S/m·(1 − m/n), so that the estimates have the
// expectations tr(Σ) = S and |G|² = |G_n|² − S/n.
func TestNoiseScaleOfSingleSamples(t *testing.T) {
	const n, batch, epochs = 240, 6, 15
	o := Options{Model: "mlp", Height: 4, Width: 4, Batch: batch, Seed: 5, Threads: 1}
	data := newImages(n, 3*o.Height*o.Width)

	single := o
	single.Batch = 1
	e := newEngine(t, single)
	var each float64 // mean squared norm of a sample's gradient
	mean := make([]float64, e.Parameters())
	for i := range n {
		g := data.gradient(t, e, []int{i})
		each += squared(g) / n
		for k := range g {
			mean[k] += g[k] / n
		}
	}
	noise := (each - squared(mean)) * n / (n - 1)
	gradient := squared(mean) - noise/n

	const steps = n / (2 * batch)
	sums := make([]*metrics.GradientSums, 2)
	ranks(t, 2, func(rank int, g *collective.Group) {
		o := o
		o.Channels, o.Classes, o.GlobalBatch, o.NormsEvery = 3, 10, 2*batch, 1
		e, err := New(o, g)
		if err != nil {
			t.Error(err)
			return
		}
		defer e.Close()
		sums[rank] = metrics.NewGradientSums(epochs*steps, batch, 2*batch)
		random := rand.New(rand.NewPCG(1, 1)) // the same order on both
		for range epochs {
			order := random.Perm(n)
			for s := range steps {
				at := s*2*batch + rank*batch
				data.gradient(t, e, order[at:at+batch])
				own, averaged, _ := e.SquaredNorms()
				sums[rank].Add(own, averaged)
			}
		}
	})
	zero, one := sums[0].Take(1, 0), sums[1].Take(1, 0)
	if zero == nil || one == nil {
		t.Fatal("no norms")
	}
	var blocks []summary.NoiseBlock
	for i, steps := range zero.Steps {
		blocks = append(blocks, summary.NoiseBlock{Steps: steps, Small: (zero.Own[i] + one.Own[i]) / 2, Large: zero.Averaged[i]})
	}
	got, err := summary.EstimateNoiseScale(blocks, batch, 2*batch)
	if err != nil || got.Samples == nil || got.High == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	want := noise / gradient
	t.Logf("single samples: %.4g (tr(Σ) %.4g, |G|² %.4g); two ranks: %.4g, %.4g to %.4g (%.4g, %.4g)",
		want, noise, gradient, *got.Samples, *got.Low, *got.High, got.Noise, got.GradientSquared)
	if want < *got.Low || want > *got.High {
		t.Error("the interval does not hold the value from single samples")
	}
	if width := (*got.High - *got.Low) / want; width > 0.25 {
		t.Errorf("the interval is %.0f %% of the value wide: it would hold almost anything", 100*width)
	}
}

// BenchmarkNorms measures the cost of the norms. Two ranks with one thread compute them in every
// other step; the tenth fastest of a hundred steps with norms is compared with the tenth fastest
// without. The reported share is for a training, in which one step of eight computes them.
func BenchmarkNorms(b *testing.B) {
	for _, m := range []struct {
		model string
		steps int
	}{{"cnn", 500}, {"resnet20", 20}, {"mlp", 100}} {
		b.Run(m.model, func(b *testing.B) {
			var with, without []float64 // seconds
			for b.Loop() {
				ranks(b, 2, func(rank int, g *collective.Group) {
					e, err := New(Options{Model: m.model, Height: 32, Width: 32, Channels: 3, Classes: 10, Batch: 64, GlobalBatch: 128, Threads: 1, NormsEvery: 2}, g)
					if err != nil {
						b.Error(err)
						return
					}
					defer e.Close()
					fill(e, uint64(rank))
					for range m.steps {
						begin := time.Now()
						if _, _, err := e.Gradient(context.Background(), 64); err != nil {
							b.Error(err)
							return
						}
						if _, err := e.Reduce(context.Background(), nil); err != nil {
							b.Error(err)
							return
						}
						_, _, taken := e.SquaredNorms()
						e.Update(1e-3)
						if took := time.Since(begin).Seconds(); rank == 0 && taken {
							with = append(with, took)
						} else if rank == 0 {
							without = append(without, took)
						}
					}
				})
			}
			tenth := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/10] }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(1e3*tenth(without), "ms/step")
			b.ReportMetric(1e3*(tenth(with)-tenth(without)), "norms-ms")
			b.ReportMetric(100*(tenth(with)/tenth(without)-1)/8, "%-of-training")
		})
	}
}
