package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
)

func stageCommands() []*cli.Command {
	to := &cli.StringFlag{Name: "to", Usage: "`FOLDER` on this node, may contain variables of the job (default: the one for temporary files)"}
	owner := &cli.StringFlag{Name: "for", Usage: "`NAME` of the job that needs it", Required: true}
	return []*cli.Command{
		{
			Name:  "stage",
			Usage: "bring a run's data and Python environment to this node's disk",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "dir", Usage: "run `FOLDER`", EnvVars: []string{framework.RunVariable}, Required: true},
				to, owner, placeFlag(),
				&cli.StringFlag{Name: "python", Usage: "`ARCHIVE` of an environment"},
				&cli.DurationFlag{Name: "time", Usage: "`TIME` that the job may need it", Value: 24 * time.Hour},
				&cli.BoolFlag{Name: "keep", Usage: "leave it to later jobs"},
			},
			Action: stage,
		},
		{
			Name:   "unstage",
			Usage:  "remove from this node's disk what was staged for a job",
			Flags:  []cli.Flag{to, owner},
			Action: unstage,
		},
	}
}

// placeFlag returns the flag that says how a process learns its place in the world.
func placeFlag() cli.Flag {
	return &cli.StringFlag{Name: "place", Usage: "where this rank's rank and world size come from: `slurm` or environment", Value: "slurm"}
}

// place returns this process's place in the world, from the source that --place names; slurm reads it within a Slurm step.
func place(c *cli.Context, slurm func(getenv func(string) string) (world.World, error)) (world.World, error) {
	switch place := c.String("place"); place {
	case "slurm":
		return slurm(os.Getenv)
	case "environment":
		return world.FromEnviron(os.Getenv)
	default:
		return world.World{}, fmt.Errorf("--place %q is not known; valid: slurm, environment", place)
	}
}

func stage(c *cli.Context) error {
	dir, err := filepath.Abs(c.String("dir"))
	if err != nil {
		return err
	}
	w, err := place(c, world.NodeFromSlurm)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(c.Context)
	defer stop(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGINT)
	go func() { stop(fmt.Errorf("signal %v while staging", <-signals)) }()
	return worker.Stage(ctx, worker.Staging{Run: rundir.Folder(dir), World: w, Dir: c.String("to"), Python: c.String("python"),
		Life: worker.StagedLifetime{Owner: c.String("for"), Until: time.Now().Add(c.Duration("time")), Keep: c.Bool("keep")}})
}

func unstage(c *cli.Context) error {
	if c.String("for") == "" {
		return errors.New("--for is empty; give the job's name")
	}
	area, err := worker.OpenArea(c.String("to"))
	if err != nil {
		return err
	}
	return area.Remove(c.String("for"))
}
