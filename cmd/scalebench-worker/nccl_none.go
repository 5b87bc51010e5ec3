//go:build !gpu

package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/telemetry"
	"github.com/scalebench/scalebench/launcher/world"
)

// openNCCL says what to do: this worker links no GPU's libraries.
func openNCCL(context.Context, *collective.Group, world.World) (collective.BenchTransport, error) {
	return nil, fmt.Errorf("this worker has no backend \"nccl\"; `make worker-gpu` builds one that has")
}

// openEngine says what to do likewise.
func openEngine(context.Context, cpu.Options, string, *collective.Group, world.World) (train.GPU, error) {
	return nil, fmt.Errorf("this worker trains on CPUs only; `make worker-gpu` builds one that trains on GPUs: name it in the site file (worker = …), or set resources.device = \"cpu\"")
}

// lookForNCCL has nothing to load it with.
func lookForNCCL() *probe.NCCL { return nil }

// readDevices reads no GPU that needs a library.
func readDevices() telemetry.Devices { return nil }

// gpuCommands are the GPU variant's.
func gpuCommands() []*cli.Command { return nil }
