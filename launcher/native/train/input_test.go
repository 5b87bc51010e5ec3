package train

import (
	"math"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/study"
)

// In every step the ranks' shares are disjoint and together form the global batch, which has the same samples
// in the same order for any number of ranks. An epoch uses no sample twice.
func TestShares(t *testing.T) {
	const samples, globalBatch = 103, 24
	var single []int32
	for _, ranks := range []int{1, 2, 3, 4} {
		var epochSamples []int32
		orders := make([]*order, ranks)
		for r := range orders {
			orders[r] = newOrder(11, samples, r, globalBatch/ranks, globalBatch)
			orders[r].shuffle(5)
			if got := orders[r].stepsPerEpoch(); got != 4 {
				t.Fatalf("%d steps in an epoch, want 4", got)
			}
		}
		for k := range 4 {
			for r, o := range orders {
				b := o.batch(k)
				if len(b) != globalBatch/ranks {
					t.Fatalf("rank %d of %d has %d samples", r, ranks, len(b))
				}
				epochSamples = append(epochSamples, b...)
			}
		}
		if ranks == 1 {
			single = epochSamples
		}
		if !slices.Equal(epochSamples, single) {
			t.Errorf("%d ranks: samples %v, one rank has %v", ranks, epochSamples, single)
		}
		sorted := slices.Clone(epochSamples)
		slices.Sort(sorted)
		if n := len(slices.Compact(sorted)); n != 4*globalBatch {
			t.Errorf("%d ranks: %d different samples in an epoch, want %d", ranks, n, 4*globalBatch)
		}
	}
	first, other, again := newOrder(11, samples, 0, 24, 24), newOrder(12, samples, 0, 24, 24), newOrder(11, samples, 0, 24, 24)
	first.shuffle(5)
	other.shuffle(5)
	again.shuffle(4)
	if slices.Equal(first.samples, other.samples) || slices.Equal(first.samples, again.samples) {
		t.Error("another seed or epoch gives the same order")
	}
	again.shuffle(5)
	if !slices.Equal(first.samples, again.samples) {
		t.Error("the order of an epoch depends on those before it")
	}
}

func TestEvaluationShares(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		for _, size := range []int{1, 2, 3, 16} {
			next := 0
			for r := range size {
				from, to := share(n, r, size)
				if from != next || to < from || to-from > n/size+1 {
					t.Errorf("rank %d of %d has [%d, %d) of %d samples", r, size, from, to, n)
				}
				next = to
			}
			if next != n {
				t.Errorf("%d ranks evaluate %d of %d samples", size, next, n)
			}
		}
	}
}

// All crops and mirror images occur, about equally often, from seeds and
// samples that follow each other.
func TestAugmentationIsUniform(t *testing.T) {
	counts := map[dataset.Transform]int{}
	const n = 81 * 2 * 200
	for i := range n {
		counts[augmentation(int64(i%3), i/3%40, int32(i/120))]++
	}
	if len(counts) != 162 {
		t.Fatalf("%d different transforms, want 162", len(counts))
	}
	var chi2 float64
	for tr, c := range counts {
		if tr.DX > 8 || tr.DY > 8 {
			t.Fatalf("transform %+v", tr)
		}
		chi2 += float64(c-200) * float64(c-200) / 200
	}
	// 161 degrees of freedom: mean 161, standard deviation 18.
	if chi2 > 161+5*18 || chi2 < 161-5*18 {
		t.Errorf("chi-squared %.0f, want about 161", chi2)
	}
	if first, again := augmentation(1, 2, 3), augmentation(1, 2, 3); first != again {
		t.Errorf("the same sample is transformed by %+v and %+v", first, again)
	}
}

func TestSchedule(t *testing.T) {
	at := func(change func(*study.Point), step int) float64 {
		t.Helper()
		var p study.Point
		p.LearningRate, p.Workload.Train.LearningRate, p.Workload.Train.Epochs = 0.8, 0.1, 20
		change(&p)
		s, err := newSchedule(p, 10)
		if err != nil {
			t.Fatal(err)
		}
		return s.at(step)
	}
	warm := func(p *study.Point) { p.Workload.Train.WarmupEpochs = 5 }
	step := func(p *study.Point) { p.Workload.Train.Decay, p.Workload.Train.DecayEpochs = "step", []int{8, 12} }
	half := func(p *study.Point) { step(p); p.Workload.Train.DecayFactor = 0.5 }
	cosine := func(p *study.Point) { p.Workload.Train.Decay = "cosine" }
	both := func(p *study.Point) { warm(p); cosine(p) }
	shorter := func(p *study.Point) { cosine(p); p.Workload.Train.MaxSteps = 100 }
	for _, test := range []struct {
		name   string
		change func(*study.Point)
		step   int
		want   float64
	}{
		{"none", func(*study.Point) {}, 0, 0.8}, {"none", func(*study.Point) {}, 10_000, 0.8},
		{"warm-up starts unscaled", warm, 0, 0.1}, {"warm-up", warm, 25, 0.45}, {"warm-up is over", warm, 50, 0.8},
		{"before the first drop", step, 79, 0.8}, {"first drop", step, 80, 0.08}, {"second drop", step, 120, 0.008},
		{"first drop of a factor of its own", half, 80, 0.4}, {"second one", half, 120, 0.2},
		{"cosine starts", cosine, 0, 0.8}, {"cosine at half", cosine, 100, 0.4}, {"cosine at a quarter", cosine, 50, 0.4 * (1 + math.Sqrt2/2)}, {"cosine ends", cosine, 200, 0},
		{"cosine after warm-up", both, 125, 0.4}, {"cosine over max_steps", shorter, 50, 0.4},
	} {
		if got := at(test.change, test.step); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: step %d has rate %v, want %v", test.name, test.step, got, test.want)
		}
	}
}
