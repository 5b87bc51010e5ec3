//go:build gpu

package main

import (
	"context"
	"os"

	"github.com/scalebench/scalebench/launcher/collective"
	"github.com/scalebench/scalebench/launcher/collective/bench"
	"github.com/scalebench/scalebench/launcher/collective/bench/gpu"
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
