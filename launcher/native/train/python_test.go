//go:build python

package train

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/study"
)

// The Python frameworks' learning rates, shares of the test split, and images
// for the same crop and mirror, are the native trainer's.
func TestRecipeAsPython(t *testing.T) {
	const stepsPerEpoch, steps, samples = 10, 80, 51
	var points []study.Point
	for _, change := range []func(p *study.Point){
		func(p *study.Point) {},
		func(p *study.Point) { p.Workload.Train.WarmupEpochs, p.LearningRate = 2.5, 0.4 },
		func(p *study.Point) {
			p.Workload.Train.Decay, p.Workload.Train.DecayEpochs, p.Workload.Train.WarmupEpochs, p.LearningRate = "step", []int{2, 5}, 1, 0.3
		},
		func(p *study.Point) {
			p.Workload.Train.Decay, p.Workload.Train.DecayEpochs, p.Workload.Train.DecayFactor = "step", []int{2, 5}, 0.3
		},
		func(p *study.Point) {
			p.Workload.Train.Decay, p.Workload.Train.Epochs, p.Workload.Train.WarmupEpochs, p.LearningRate = "cosine", 7, 1.25, 0.3
		},
		func(p *study.Point) {
			p.Workload.Train.Decay, p.Workload.Train.Epochs, p.Workload.Train.MaxSteps = "cosine", 7, 33
		},
		func(p *study.Point) {
			p.Workload.Train.Decay, p.Workload.Train.Epochs, p.Workload.Train.MaxSteps = "cosine", 0, 50
		},
	} {
		p := point("cnn", 2, 8)
		change(&p)
		points = append(points, p)
	}

	random := rand.New(rand.NewPCG(1, 2))
	transforms := []dataset.Transform{dataset.Identity, {}, {DX: 8, DY: 8}, {DY: 8, Mirror: true}, {DX: 4, DY: 4, Mirror: true}, {DX: 3, DY: 7, Mirror: true}}
	pixels := make([]int, len(transforms)*dataset.ImageBytes) // []byte would be base64 in JSON
	image := make([]byte, len(pixels))
	corners := make([][3]int, len(transforms))
	plain, augmented := make([]float32, len(pixels)), make([]float32, len(pixels))
	for i := range image {
		image[i] = byte(random.IntN(256))
		pixels[i] = int(image[i])
	}
	for i, c := range transforms {
		from, to := i*dataset.ImageBytes, (i+1)*dataset.ImageBytes
		dataset.Decode(image[from:to], dataset.Identity, plain[from:to])
		dataset.Decode(image[from:to], c, augmented[from:to])
		corners[i] = [3]int{int(c.DX), int(c.DY), 0}
		if c.Mirror {
			corners[i][2] = 1
		}
	}
	question, err := json.Marshal(map[string]any{"points": points, "steps": steps, "steps_per_epoch": stepsPerEpoch,
		"samples": samples, "images": pixels, "transforms": corners})
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Abs("../../framework/programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/python3", "-B", "testdata/answers.py") // Debian's, with its python3-torch
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(question), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Rates            [][]float64
		Shares           [][2]int
		Plain, Augmented []float32
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}

	if len(answer.Rates) != len(points) || len(answer.Shares) != 7 {
		t.Fatalf("%d schedules and %d shares, want %d and 7", len(answer.Rates), len(answer.Shares), len(points))
	}
	for i, rates := range answer.Rates {
		s, err := newSchedule(points[i], stepsPerEpoch)
		if err != nil {
			t.Fatal(err)
		}
		if len(rates) != steps {
			t.Fatalf("point %d: %d rates", i, len(rates))
		}
		for step, rate := range rates {
			if want := s.at(step); math.Abs(rate-want) > 1e-12 {
				t.Errorf("point %d, step %d: %g in Python, %g natively", i, step, rate, want)
			}
		}
	}
	for rank, got := range answer.Shares {
		if from, to := share(samples, rank, 7); got != [2]int{from, to} {
			t.Errorf("rank %d evaluates %v in Python, [%d %d) natively", rank, got, from, to)
		}
	}
	same := func(what string, got, want []float32) {
		if len(got) != len(want) {
			t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Fatalf("%s: number %d of image %d is %g in Python, %g natively", what, i%dataset.ImageBytes, i/dataset.ImageBytes, got[i], want[i])
			}
		}
	}
	same("plain images", answer.Plain, plain)
	same("augmented images", answer.Augmented, augmented)
}
