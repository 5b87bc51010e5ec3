//go:build cgo && python

package gpu_test

import (
	"os"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
)

// Three steps on the fakes give the same results as PyTorch on this machine's CPUs.
func TestStepsAsPyTorch(t *testing.T) {
	for _, variable := range append(doubles, gpucheck.PythonVariable+"=/usr/bin/python3") {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	for _, c := range suite.StepChecks(os.Args[:1]) {
		if c.PyTorch {
			t.Run(c.Name, func(t *testing.T) { c.Run(t) })
		}
	}
}
