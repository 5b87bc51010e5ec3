//go:build python

package framework

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// ownPoint returns a point whose model and data are functions of the user.
func ownPoint(t *testing.T, workers int) study.Point {
	p := point(t, workers)
	p.Workload.Train.Model, p.Data = "models/my_model.py:build", study.Data{Kind: "my_data.py:load", TestSamples: 21}
	return p
}

// ownRun runs a point with the user's files next to the programs.
func ownRun(t *testing.T, p study.Point, files map[string]string) (events [][]metrics.Event, codes []int) {
	t.Helper()
	d := prepare(t, p)
	d.own(files)
	d.begin(p, p.Workers)
	return d.wait()
}

// own puts the user's own files into the run folder.
func (d *ddp) own(files map[string]string) {
	d.t.Helper()
	if err := os.MkdirAll(d.run.OwnFiles(), 0o755); err != nil {
		d.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(d.run.OwnFiles(), name), []byte(text), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
}

const (
	ownModel = `
import torch

class Sums(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = torch.nn.Embedding(5, 8)
        self.scores = torch.nn.Linear(8, 5)

    def forward(self, x):
        return self.scores(self.letters(x))

def build(point):
    assert point["workload"]["batch"] == 12
    return Sums()
`
	ownData = `
import numpy

def load(point):
    x = numpy.random.RandomState(1).randint(5, size=(120, 7))
    return (x, (x + 1) % 5), (x[:30], (x[:30] + 1) % 5)
`
)

// Two ranks train the user's model on the user's data, which are not images: each position of a
// text has a label. They end with equal parameters, which differ from those of training on
// rank 0's share alone.
func TestOwnModelAndData(t *testing.T) {
	p := ownPoint(t, 2)
	p.Workload.Train.LearningRate, p.LearningRate, p.Workload.Train.Epochs = 2, 2, 10
	files := map[string]string{"my_model.py": ownModel, "my_data.py": ownData}
	events, codes := ownRun(t, p, files)
	var ends [2]string
	for rank, list := range events {
		stop := only(t, list, stopOf)
		if codes[rank] != 0 || stop.Status != metrics.StopDone {
			t.Fatalf("rank %d ended with %d: %+v", rank, codes[rank], stop)
		}
		ends[rank] = stop.ParameterSHA256
		train := only(t, list, trainOf)
		// 5·8 + 8·5 + 5 parameters; 120 samples in steps of 24.
		if train.Parameters != 85 || train.TrainSamples != 120 || train.TestSamples != 21 || train.StepsPerEpoch != 5 {
			t.Errorf("%+v", train)
		}
	}
	if ends[0] != ends[1] {
		t.Errorf("the ranks ended with parameters %s and %s", ends[0], ends[1])
	}
	var accuracy float64
	for _, e := range events[0] {
		if e.Evaluation != nil {
			accuracy = e.Evaluation.Accuracy
		}
	}
	if accuracy != 1 {
		t.Errorf("accuracy %g of a successor that a linear layer learns", accuracy)
	}
	alone, codes := ownRun(t, func() study.Point {
		q := p
		q.Workers, q.WorkersPerNode, q.GlobalBatch = 1, 1, 12
		q.Workload.Train.Epochs, q.Workload.Train.MaxSteps = 0, 50
		return q
	}(), files)
	if stop := only(t, alone[0], stopOf); codes[0] != 0 || stop.ParameterSHA256 == ends[0] {
		t.Errorf("a rank alone ends with %d and the same parameters as two together", codes[0])
	}
}

// Problems in the user's files are reported in terms of those files.
func TestOwnProblems(t *testing.T) {
	for name, c := range map[string]struct{ model, data, want string }{
		"no function":    {"x = 1\n", ownData, "my_model.py:build: the file has no function build"},
		"no module":      {"def build(point):\n    return 7\n", ownData, "must return a torch.nn.Module, not a int"},
		"a stray import": {"import my_layers\n", ownData, "put what they import into one of them"},
		"one split":      {ownModel, "def load(point):\n    return [1], [1]\n", "must return (inputs, targets), (inputs, targets)"},
		"uneven":         {ownModel, "def load(point):\n    return ([1, 2], [1]), ([1], [1])\n", "the train split has 2 inputs and 1 targets"},
		"too few":        {ownModel, "def load(point):\n    return ([1], [1]), ([1], [1])\n", "21 test samples asked for, the data set has 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, codes := ownRun(t, ownPoint(t, 1), map[string]string{"my_model.py": c.model, "my_data.py": c.data})
			if stop := only(t, events[0], stopOf); codes[0] == 0 || stop.Status != metrics.StopFailed || !strings.Contains(stop.Cause, c.want) {
				t.Errorf("ended with %d: %+v, want %q", codes[0], stop, c.want)
			}
		})
	}
}

// The study's own parameters are arguments of the functions that have them:
// 5·16 + 16·5 + 5 parameters with 16 hidden values, and 90 of the 120 samples.
func TestOwnParameters(t *testing.T) {
	p := ownPoint(t, 1)
	p.Workload.Train.LearningRate, p.LearningRate, p.Workload.Train.Epochs, p.Data.TestSamples = 2, 2, 1, 0
	p.Own = study.Own{"hidden": {Value: int64(16)}, "kept": {Value: 0.75}, "activation": {Value: "relu"}}
	files := map[string]string{"my_model.py": `
import torch

def build(point, hidden, activation="tanh"):
    assert type(hidden) is int and activation == "relu"
    return torch.nn.Sequential(torch.nn.Embedding(5, hidden), torch.nn.Linear(hidden, 5))
`, "my_data.py": `
import numpy

def load(point, *, kept):
    x = numpy.random.RandomState(1).randint(5, size=(int(120 * kept), 7))
    return (x, (x + 1) % 5), (x[:30], (x[:30] + 1) % 5)
`}
	events, codes := ownRun(t, p, files)
	if train := only(t, events[0], trainOf); codes[0] != 0 || train.Parameters != 165 || train.TrainSamples != 90 {
		t.Errorf("code %d, %+v", codes[0], train)
	}
	p.Own["hiden"] = study.Scalar{Value: int64(8)}
	events, codes = ownRun(t, p, files)
	if stop := only(t, events[0], stopOf); codes[0] == 0 || !strings.Contains(stop.Cause, "parameters.hiden: no argument of that name in models/my_model.py:build or my_data.py:load") {
		t.Errorf("code %d, %+v", codes[0], stop)
	}
}
