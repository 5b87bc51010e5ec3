//go:build python

package framework

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/summary"
)

// At frozen parameters the noise scale that two ranks of pytorch-ddp record
// agrees with the one from the gradient of every single sample. The model has
// no batch norm, which would make a sample's gradient depend on others.
//
// Samples are drawn without replacement: with the variance S (divisor n − 1) of
// the n gradients and their mean G_n, the estimates have the expectations
// tr(Σ) = S and |G|² = |G_n|² − S/n.
func TestDDPNoiseScale(t *testing.T) {
	p := point(t, 2)
	p.Workload.Train.Model, p.Workload.Train.Augment, p.Workload.Train.Epochs = "mlp", false, 8
	// Too small a rate to change a bit of a parameter.
	p.LearningRate, p.Workload.Train.LearningRate, p.Workload.Train.Momentum, p.Workload.Train.WeightDecay = 1e-30, 1e-30, 0, 0
	d := start(t, p, 2)
	events, codes := d.wait()
	if codes[0] != 0 || codes[1] != 0 {
		t.Fatalf("exit codes %v", codes)
	}
	var blocks []summary.NoiseBlock
	for _, zero := range events[0] {
		if zero.Gradients == nil {
			continue
		}
		g := zero.Gradients
		var one *metrics.Gradients
		for _, e := range events[1] {
			if e.Gradients != nil && e.Gradients.Epoch == g.Epoch {
				one = e.Gradients
			}
		}
		if one == nil || g.Samples != 12 || g.GlobalSamples != 24 || len(g.Steps) != 10 {
			t.Fatalf("%+v and %+v, want 10 steps of 12 of 24 samples on both ranks", g, one)
		}
		for k, steps := range g.Steps {
			if g.Averaged[k] != one.Averaged[k] {
				t.Errorf("the ranks' averaged gradients have squared norms of %g and %g", g.Averaged[k], one.Averaged[k])
			}
			blocks = append(blocks, summary.NoiseBlock{Steps: steps, Small: (g.Own[k] + one.Own[k]) / 2, Large: g.Averaged[k]})
		}
	}
	got, err := summary.EstimateNoiseScale(blocks, 12, 24)
	if err != nil || got.Samples == nil || got.High == nil || got.Steps != 80 {
		t.Fatalf("%+v, %v", got, err)
	}

	programs, err := filepath.Abs("programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/single_samples.py", d.run.Point())
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Samples, Each, Mean float64 }
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	noise := (all.Each - all.Mean) * all.Samples / (all.Samples - 1)
	want := noise / (all.Mean - noise/all.Samples)
	t.Logf("single samples: %.4g; two ranks: %.4g, %.4g to %.4g", want, *got.Samples, *got.Low, *got.High)
	if want < *got.Low || want > *got.High {
		t.Error("the interval does not hold the value from single samples")
	}
	if width := (*got.High - *got.Low) / want; width > 0.5 {
		t.Errorf("the interval is %.0f %% of the value wide: it would hold almost anything", 100*width)
	}
}

// A run that stops within an epoch records the gradients of its finished part; one rank has no
// gradients to compare.
func TestDDPGradientsRecorded(t *testing.T) {
	gradients := func(workers int) (list []*metrics.Gradients) {
		p := point(t, workers)
		p.Workload.Train.MaxSteps = 13
		events, codes := start(t, p, workers).wait()
		for rank, code := range codes {
			if code != 0 {
				t.Fatalf("rank %d exits with %d", rank, code)
			}
		}
		for _, e := range events[0] {
			if e.Gradients != nil {
				list = append(list, e.Gradients)
			}
		}
		return list
	}
	if list := gradients(2); len(list) != 2 || list[0].Epoch != 1 || len(list[0].Steps) != 10 || list[1].Epoch != 2 || list[1].Step != 13 || len(list[1].Steps) != 3 {
		t.Errorf("%+v", list)
	}
	if list := gradients(1); list != nil {
		t.Errorf("%+v of one rank", list)
	}
}
