//go:build !gpu

package main

import (
	"context"
	"errors"

	"github.com/scalebench/scalebench/launcher/collective"
	"github.com/scalebench/scalebench/launcher/collective/bench"
	"github.com/scalebench/scalebench/launcher/world"
)

// openNCCL says what to do: this worker links no GPU's libraries.
func openNCCL(context.Context, *collective.Group, world.World) (bench.Backend, error) {
	return nil, errors.New("backend \"nccl\" is not in this worker; build the one that has it with `make worker-gpu` (never run on a GPU)")
}
