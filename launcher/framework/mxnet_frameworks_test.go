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
)

// An evaluation does not change the training, although steps keep the running variances at
// another scale, and an evaluation reorders the
// weights.
func TestFrameworksEvaluation(t *testing.T) {
	t.Run("mxnet", evaluationMXNet)
}

func evaluationMXNet(t *testing.T) {
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

// The interpreter of the framework's lock file passes doctor's check.
func TestFrameworksLook(t *testing.T) {
	t.Run("mxnet", lookMXNet)
}

func lookMXNet(t *testing.T) {
	got, err := mxnet.Look(t.Context(), interpreterOf(t, "mxnet"))
	if err != nil || got.Versions["mxnet"] != "1.9.1" || got.Versions["horovod"] != "0.28.1" || len(got.Devices) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
