//go:build python && frameworks

package cpu

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
	"github.com/scalebench/scalebench/launcher/world"
)

// TestFrameworksSteps is TestStepsAsPyTorch for the frameworks in separate environments. If one process drives
// all ranks, a loss is the mean over them.
func TestFrameworksSteps(t *testing.T) {
	for _, f := range []struct {
		framework, module, family string
		oneProcess                bool
	}{
		{"tensorflow-horovod", "tensorflow_horovod", "tensorflow", false},
		{"keras-horovod", "keras_horovod", "tensorflow", false},
		{"tensorflow-multiworker", "tensorflow_multiworker", "tensorflow", false},
		{"keras-mirrored", "keras_mirrored", "tensorflow", true},
		{"mxnet", "mxnet_horovod", "mxnet", false},
	} {
		for _, c := range []struct {
			model string
			ranks int
		}{{"resnet20", 1}, {"resnet20", 2}, {"cnn", 2}, {"mlp", 2}} {
			t.Run(fmt.Sprintf("%s/%s/%d", f.framework, c.model, c.ranks), func(t *testing.T) {
				s, dir := threeSteps(c.model), t.TempDir()
				start, native := nativeSteps(t, s, dir, c.ranks, stepsBatch)
				python := interpreter(t, f.family)
				port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
				if err != nil {
					t.Fatal(err)
				}
				processes := c.ranks
				if f.oneProcess {
					processes = 1
					native = withMeanLosses(native)
				}
				other := elsewhere(t, s, dir, c.ranks, processes, func(rank int) *exec.Cmd {
					return exec.Command(python, "-B", "testdata/framework_steps.py", f.module, f.family+"_models", dir, strconv.Itoa(rank), strconv.Itoa(c.ranks), strconv.Itoa(port))
				})
				compare(t, start, native, other)
			})
		}
	}
}

// withMeanLosses gives each rank the mean of all ranks' losses.
func withMeanLosses(list []outcome) []outcome {
	mean := make([]float64, len(list[0].losses))
	for _, o := range list {
		for i, loss := range o.losses {
			mean[i] += loss / float64(len(list))
		}
	}
	for r := range list {
		list[r].losses = mean
	}
	return list
}

// interpreter returns the Python of a family's environment, which is built if necessary.
func interpreter(t *testing.T, family string) string {
	t.Helper()
	return pythontest.Environment(t, "../../../framework/locks", family)
}

// TestFrameworksStepsPyTorch is the same for PyTorch with Horovod, and for
// DistributedDataParallel of PyTorch 2.
func TestFrameworksStepsPyTorch(t *testing.T) {
	for _, f := range []struct{ framework, module, family string }{
		{"pytorch-horovod", "pytorch_horovod", "pytorch"},
		{"pytorch-ddp", "pytorch_ddp", "pytorch2"},
	} {
		for _, c := range []struct {
			model string
			ranks int
		}{{"resnet20", 1}, {"resnet20", 2}, {"cnn", 2}, {"mlp", 2}} {
			t.Run(fmt.Sprintf("%s/%s/%d", f.framework, c.model, c.ranks), func(t *testing.T) {
				s, dir := threeSteps(c.model), t.TempDir()
				start, native := nativeSteps(t, s, dir, c.ranks, stepsBatch)
				compare(t, start, native, pytorchSteps(t, interpreter(t, f.family), f.module, s, dir, c.ranks))
			})
		}
	}
}
