//go:build gpu

package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	engine "github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/telemetry"
	"github.com/scalebench/scalebench/launcher/telemetry/nvidia"
	"github.com/scalebench/scalebench/launcher/world"
)

// openNCCL returns the NCCL backend, which only workers built with GPU support
// have.
func openNCCL(ctx context.Context, g *collective.Group, w world.World) (collective.BenchTransport, error) {
	timeout, err := peerTimeout(os.Getenv)
	if err != nil {
		return nil, err
	}
	return gpurank.OpenTransport(ctx, g, w, timeout, os.Getenv)
}

// openEngine opens the trainer's engine on this rank's GPU.
func openEngine(ctx context.Context, o cpu.Options, precision string, g *collective.Group, w world.World) (train.GPU, error) {
	timeout, err := peerTimeout(os.Getenv)
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Options{Options: o, Precision: precision, Timeout: timeout}, g, w, os.Getenv)
	if err != nil {
		return nil, err // avoid an interface that holds a nil pointer
	}
	return e, nil
}

// lookForNCCL loads NCCL, CUDA's driver and cuBLAS like a run.
func lookForNCCL() *probe.NCCL {
	found := &probe.NCCL{}
	if l, err := nccl.Open(os.Getenv); err != nil {
		found.Error = err.Error()
	} else {
		found.Name, found.Path, found.Double = l.String(), l.Path(), l.IsFake()
	}
	d, err := cuda.Open(os.Getenv)
	if err == nil {
		var n int
		if n, err = d.Devices(); err == nil {
			found.Driver, found.Devices = d.Version(), &n
		}
		if err == nil && n > 0 {
			found.GPU, err = d.Name(0)
		}
	}
	if err != nil {
		found.DriverError = err.Error()
	}
	if l, err := cuda.OpenBLAS(os.Getenv); err != nil {
		found.CuBLASError = err.Error()
	} else {
		found.CuBLAS = l.String() + ", " + l.Path()
	}
	return found
}

// readDevices samples NVIDIA GPUs during a run.
func readDevices() telemetry.Devices { return nvidia.New(os.Getenv) }

// gpuCommands returns the commands that `make gpu-check` runs in each rank.
func gpuCommands() []*cli.Command {
	return append(checkCommands(), &cli.Command{
		Name:   "nccl",
		Usage:  "one rank of make gpu-check: prove every collective, and say what calls cost",
		Hidden: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "nonce", EnvVars: []string{gpucheck.NonceVariable}, Required: true},
			&cli.IntFlag{Name: "perturb", Usage: "change a bit of result `N` before it is compared"},
			&cli.BoolFlag{Name: "costs", Usage: "time calls instead"},
		},
		Action: proveNCCL,
	})
}

func proveNCCL(c *cli.Context) error {
	w, err := world.FromEnviron(os.Getenv)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(c)
	defer stop()
	g, err := collective.Join(ctx, w, c.String("nonce"), collective.Options{Transport: collective.TCP})
	if err != nil {
		return err
	}
	defer g.Close()
	b, err := gpurank.OpenTransport(ctx, g, w, 0, os.Getenv)
	if err != nil {
		g.Abort(err)
		return err
	}
	found := gpucheck.Proof{GPU: b.GPU()}
	if c.Bool("costs") {
		var costs []gpurank.ProofCost
		costs, err = gpurank.ProofCosts(ctx, b.Proof())
		for _, cost := range costs {
			found.Costs = append(found.Costs, gpucheck.Cost(cost))
		}
	} else {
		found.Expected = gpurank.ProofChecks
		var r gpurank.ProofOutcome
		r, err = gpurank.RunProof(ctx, b.Proof(), c.Int("perturb"))
		found.Checks, found.Wrong = r.Checks, r.Wrong
	}
	if err = b.End(ctx, err); err != nil {
		return err
	}
	return json.NewEncoder(c.App.Writer).Encode(found)
}
