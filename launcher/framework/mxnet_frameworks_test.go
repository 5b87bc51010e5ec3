//go:build python && frameworks

package framework

import (
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

const ownGluonModel = `
from mxnet import init
from mxnet.gluon import nn

def build(point):
    net = nn.HybridSequential()
    # What goes into the layers is left for MXNet to find out.
    net.add(nn.Embedding(5, 8), nn.Dense(5, flatten=False))
    net.initialize(init.Normal(0.5))
    return net
`

// Two ranks of MXNet train a model of the user's own on their own data, a label
// for each place of a text: from equal weights to equal weights, other than
// those of rank 0's share alone.
func TestFrameworksOwnMXNet(t *testing.T) {
	p := ownPoint(t, 2)
	p.Framework = "mxnet"
	p.Workload.LearningRate, p.LearningRate, p.Workload.Epochs = 2, 2, 10
	files := map[string]string{"my_model.py": ownGluonModel, "my_data.py": ownData}
	events, codes := ownRun(t, p, files)
	first := only(t, events[0], trainOf)
	// 5·8 + 8·5 + 5 parameters; 120 samples in steps of 24.
	if first.Parameters != 85 || first.TrainSamples != 120 || first.TestSamples != 21 || first.StepsPerEpoch != 5 {
		t.Errorf("%+v", first)
	}
	end := only(t, events[0], stopOf)
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
	alone.Workload.Epochs, alone.Workload.MaxSteps = 0, 50
	events, codes = ownRun(t, alone, files)
	stop := only(t, events[0], stopOf)
	if codes[0] != 0 || only(t, events[0], trainOf).ParameterSHA256 != first.ParameterSHA256 || stop.ParameterSHA256 == end.ParameterSHA256 {
		t.Errorf("a rank alone ends with %d: %+v, two together with %+v", codes[0], stop, end)
	}
}

// The interpreter of the lock has what doctor asks for.
func TestFrameworksLookMXNet(t *testing.T) {
	got, err := mxnet.Look(t.Context(), interpreterOf(t, "mxnet"))
	if err != nil || got.Versions["mxnet"] != "1.9.1" || got.Versions["horovod"] != "0.28.1" || len(got.Devices) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
