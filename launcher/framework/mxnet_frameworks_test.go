//go:build python && frameworks

package framework

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/scalebench/scalebench/launcher/world"
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

// An evaluation looks at the training and does not change it: while steps are
// made the running variances are kept at another scale, and evaluating puts the
// weights into another order.
func TestFrameworksEvaluationMXNet(t *testing.T) {
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1"}
	var ports [2]int
	for i := range ports {
		port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = port
	}
	w.Port = ports[0]
	cmd := exec.Command(interpreterOf(t, "mxnet"), "-B", "testdata/mxnet_evaluation.py", strconv.Itoa(ports[1]))
	cmd.Env = append(append(os.Environ(), w.Environ()...), "PYTHONPATH=programs", "OMP_NUM_THREADS=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var found struct {
		Hashes     [2]string
		Difference float64
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if found.Hashes[0] != found.Hashes[1] || len(found.Hashes[0]) != 64 || found.Difference > 1e-5 {
		t.Errorf("with an evaluation between: %+v", found)
	}
}

// The interpreter of the lock has what doctor asks for.
func TestFrameworksLookMXNet(t *testing.T) {
	got, err := mxnet.Look(t.Context(), interpreterOf(t, "mxnet"))
	if err != nil || got.Versions["mxnet"] != "1.9.1" || got.Versions["horovod"] != "0.28.1" || len(got.Devices) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
