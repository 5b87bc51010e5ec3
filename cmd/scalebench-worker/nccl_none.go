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

// openNCCL returns an error that says what to do: this worker does not link GPU libraries.
func openNCCL(context.Context, *collective.Group, world.World) (collective.BenchTransport, error) {
	return nil, fmt.Errorf("this worker has no backend \"nccl\"; `make worker-gpu` builds one that has")
}

// openEngine returns an error that says what to do.
func openEngine(context.Context, cpu.Options, string, *collective.Group, world.World) (train.GPU, error) {
	return nil, fmt.Errorf("this worker trains on CPUs only; `make worker-gpu` builds one that trains on GPUs: name it in the site file (worker = …), or set resources.device = \"cpu\"")
}

// lookForNCCL returns nil: this worker cannot load NCCL.
func lookForNCCL() *probe.NCCL { return nil }

// readDevices returns nil: this worker cannot sample GPUs.
func readDevices() telemetry.Devices { return nil }

// gpuCommands returns nil: only workers built with GPU support have these commands.
func gpuCommands() []*cli.Command { return nil }
