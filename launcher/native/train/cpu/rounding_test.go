package cpu

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/dataset"
)

// A way is the result of three steps.
type way struct {
	parameters []float32
	sides      []byte // of each input of a ReLU, and of the padding around them: 1 if above zero
}

// trainRanks trains resnet20 as ranks of 2 images do that sum their gradients; each
// pixel is changed before.
func trainRanks(t *testing.T, ranks int, data *dataset.Data, change func(float32) float32) (w way) {
	t.Helper()
	const batch = 2
	engines := make([]*Engine, ranks)
	for r := range engines {
		engines[r] = newEngine(t, Options{Model: "resnet20", Batch: batch, GlobalBatch: ranks * batch, Seed: 42, Momentum: 0.9, WeightDecay: 1e-4})
	}
	next := 0
	for range 3 {
		sum := make([]float32, len(engines[0].parameters))
		for _, e := range engines {
			images, labels := e.Input()
			for i := range batch {
				dataset.Decode(data.Train.Image(next), dataset.Identity, image(images, i, dataset.ImageBytes))
				labels[i] = data.Train.Labels[next]
				next++
			}
			for i := range images {
				images[i] = change(images[i])
			}
			if _, _, err := e.Gradient(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
			for i, g := range e.gradients[:len(sum)] {
				sum[i] += g
			}
			for _, l := range e.net.layers {
				u, convolution := l.(*unit)
				if !convolution {
					continue
				}
				for i := range batch {
					for _, v := range u.outcome(0, i, false) {
						side := byte(0)
						if v > 0 {
							side = 1
						}
						w.sides = append(w.sides, side)
					}
				}
			}
		}
		for _, e := range engines {
			copy(e.gradients, sum)
			e.Update(0.002)
		}
	}
	w.parameters = slices.Clone(engines[0].parameters)
	return w
}

// How far rounding alone takes three steps: the same training, with each pixel moved by
// at most one unit in its last place. As long as every input of a ReLU stays on its
// side of zero, it is a few units in the last place of the parameters; where one of
// the millions does not, its gradient comes or goes, and the parameters end some 10⁻⁵
// apart. So the engine for GPUs, whose sums are made in another order, cannot
// come nearer than that to this one in every training (launcher/native/train/gpu/ptx/README.md).
func TestDriftOfRounding(t *testing.T) {
	source, err := dataset.OpenSynthetic(dataset.SyntheticOptions{TrainSamples: 24, TestSamples: 1, Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	data, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	alike := map[string][]float32{} // parameters of the first training with these sides
	var first []float32
	stayed := 0
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 5))
		got := trainRanks(t, 4, data, func(v float32) float32 {
			return []float32{v, math.Nextafter32(v, 9), math.Nextafter32(v, -9)}[random.IntN(3)]
		})
		if first == nil {
			first = got.parameters
		}
		if apart := furthest(got.parameters, first); !(apart <= 1e-3) {
			t.Errorf("parameters are %g apart", apart)
		}
		want, met := alike[string(got.sides)]
		if !met {
			alike[string(got.sides)] = got.parameters
			continue
		}
		stayed++
		if apart := furthest(got.parameters, want); !(apart <= 1e-6) { // parameters are below 8, whose last place is 5·10⁻⁷
			t.Errorf("every input of a ReLU is on the same side of zero, and parameters are %g apart", apart)
		}
	}
	t.Logf("%d trainings differ in the side of an input of a ReLU; %d more have the sides of one of these", len(alike), stayed)
	if stayed == 0 || len(alike) == 1 {
		t.Error("want trainings with the same sides, and with different ones")
	}
}

// furthest returns the largest difference between two trainings' parameters.
func furthest(a, b []float32) float64 {
	apart := 0.0
	for i, v := range a {
		apart = max(apart, math.Abs(float64(v-b[i])))
	}
	return apart
}
