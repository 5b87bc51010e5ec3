package main

import (
	"os"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/metrics"
)

func init() {
	programs = append(programs, &cli.Command{Name: "train", Usage: "one rank of the native trainer, as run starts it", Action: trainNative})
}

// trainNative runs one rank of a training.
func trainNative(c *cli.Context) error {
	p, err := openProgram()
	if err != nil {
		return err
	}
	defer p.file.Close()
	// Gradients are reduced in parallel with the compute threads, by a goroutine that must not wait for one of
	// them to pause.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
	ctx, stop := untilSignal(c)
	defer stop()
	return train.Run(ctx, p.point, p.world, train.Options{
		Nonce: p.nonce, Events: p.file, Log: os.Stdout, Version: version.String(),
		Timeout: p.timeout, JoinTimeout: p.timeout, Kernels: os.Getenv(train.KernelsVariable),
		Began: metrics.ProcessStart(), ModelFile: p.run.Model(), OpenGPU: openEngine,
	})
}
