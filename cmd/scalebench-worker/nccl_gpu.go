//go:build gpu

package main

import (
	"context"
	"os"

	"github.com/scalebench/scalebench/launcher/collective"
	"github.com/scalebench/scalebench/launcher/collective/bench"
	"github.com/scalebench/scalebench/launcher/collective/bench/gpu"
	"github.com/scalebench/scalebench/launcher/cuda"
	"github.com/scalebench/scalebench/launcher/nccl"
	"github.com/scalebench/scalebench/launcher/probe"
	"github.com/scalebench/scalebench/launcher/world"
)

// openNCCL is what the worker's GPU variant has more than the ordinary worker.
func openNCCL(ctx context.Context, g *collective.Group, w world.World) (bench.Backend, error) {
	timeout, err := peerTimeout(os.Getenv)
	if err != nil {
		return nil, err
	}
	return gpu.Open(ctx, g, w, timeout, os.Getenv)
}

// lookForNCCL loads NCCL and CUDA's driver, as a run would.
func lookForNCCL() *probe.NCCL {
	found := &probe.NCCL{}
	if l, err := nccl.Open(os.Getenv); err != nil {
		found.Error = err.Error()
	} else {
		found.Name, found.Path, found.Double = l.String(), l.Path(), l.Double()
	}
	d, err := cuda.Open(os.Getenv)
	if err == nil {
		var n int
		if n, err = d.Devices(); err == nil {
			found.Driver, found.Devices = d.Version(), &n
		}
	}
	if err != nil {
		found.DriverError = err.Error()
	}
	return found
}
