//go:build python && frameworks

package framework

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

const (
	ownGluonModel = `
from mxnet import init
from mxnet.gluon import nn

def build(point):
    net = nn.HybridSequential()
    # What goes into the layers is left for MXNet to find out.
    net.add(nn.Embedding(5, 8), nn.Dense(5, flatten=False))
    net.initialize(init.Normal(0.5))
    return net
`
	// It creates its layers with the first batch, as a subclass of keras.Model may do.
	ownKerasModel = `
import tensorflow as tf

class Sums(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.letters = tf.keras.layers.Embedding(5, 8)
        self.scores = tf.keras.layers.Dense(5)

    def call(self, x):
        return self.scores(self.letters(x))

def build(point):
    return Sums()
`
)

// Two ranks train the user's model on the user's data, with a label for each position of a text,
// under every Python framework. They start and end with equal weights, which differ from those of
// training on rank 0's share alone.
func TestFrameworksOwnModelAndData(t *testing.T) {
	for name, model := range map[string]string{
		"pytorch-horovod": ownModel, "deepspeed": ownModel, "mxnet": ownGluonModel, "tensorflow-horovod": ownKerasModel, "keras-horovod": ownKerasModel,
		"tensorflow-multiworker": ownKerasModel, "keras-mirrored": ownKerasModel,
	} {
		t.Run(name, func(t *testing.T) {
			p := ownPoint(t, 2)
			p.Framework = name
			p.Workload.Train.LearningRate, p.LearningRate, p.Workload.Train.Epochs = 2, 2, 10
			f, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := f.Check(p); len(wrong) > 0 {
				t.Errorf("check refuses it: %v", wrong)
			}
			events, codes := ownTraining(t, p, model)
			first, end := only(t, events[0], trainOf), only(t, events[0], stopOf)
			// 5·8 + 8·5 + 5 parameters; 120 samples in steps of 24.
			if first.Parameters != 85 || first.TrainSamples != 120 || first.TestSamples != 21 || first.StepsPerEpoch != 5 {
				t.Errorf("%+v", first)
			}
			for rank, list := range events {
				if stop := only(t, list, stopOf); codes[rank] != 0 || stop.Status != metrics.StopDone || *stop != *end {
					t.Errorf("rank %d ended with %d: %+v, rank 0 with %+v", rank, codes[rank], stop, end)
				}
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

			alone := p
			alone.Workers, alone.WorkersPerNode, alone.GlobalBatch = 1, 1, 12
			alone.Workload.Train.Epochs, alone.Workload.Train.MaxSteps = 0, 50
			events, codes = ownTraining(t, alone, model)
			stop := only(t, events[0], stopOf)
			if codes[0] != 0 || only(t, events[0], trainOf).ParameterSHA256 != first.ParameterSHA256 || stop.ParameterSHA256 == end.ParameterSHA256 {
				t.Errorf("a rank alone ends with %d: %+v, two together with %+v", codes[0], stop, end)
			}
		})
	}
}

// ownTraining runs a point with the user's model and ownData next to the programs, in one process for all ranks
// if the framework works that way.
func ownTraining(t *testing.T, p study.Point, model string) (events [][]metrics.Event, codes []int) {
	t.Helper()
	d := launchTF(t, p.Framework, p, p.Workers, map[string]string{"my_model.py": model, "my_data.py": ownData})
	return d.wait()
}
