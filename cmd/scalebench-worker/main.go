// Command scalebench-worker is the program inside a job. Batch scripts and the
// local launcher start it; people rarely do. It links neither the database nor
// the plots, and needs no C library.
//
//	scalebench-worker run           supervise one rank of the run in --dir
//	scalebench-worker train         one rank of the native trainer
//	scalebench-worker serve         one rank of a service: its load, or a replica
//	scalebench-worker preprocess    one rank of a preprocessing
//	scalebench-worker load          send requests to a service by hand
//	scalebench-worker model-server  answer for a model of the native trainer
//	scalebench-worker stage         bring a run's data to this node's disk; unstage removes it
//	scalebench-worker address       print this host's address and a free port
//	scalebench-worker version       print the version
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
)

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

// exitCode is an exit code whose error was already printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// programs are the commands that run one rank of a kind of workload. Each kind's file adds
// its own; a build without the file lacks the command.
var programs []*cli.Command

func run(args []string, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name:      "scalebench-worker",
		Usage:     "the program inside scalebench's jobs",
		Writer:    stdout,
		ErrWriter: stderr,
		ExitErrHandler: func(*cli.Context, error) {
			// run maps errors to exit codes itself.
		},
		Commands: slices.Concat(stageCommands(), gpuCommands(), []*cli.Command{
			{
				Name:  "run",
				Usage: "supervise one rank of a run: start its program, forward signals, record where it ran and how it ended",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "dir", Usage: "run `FOLDER`", EnvVars: []string{framework.RunVariable}, Required: true},
					&cli.StringFlag{Name: "python", Usage: "`INTERPRETER` of Python programs"},
					&cli.StringFlag{Name: "commit", Usage: "git `COMMIT` of the study, for the record"},
					placeFlag(),
				},
				Action: supervise,
			},
			{Name: "version", Usage: "print the version and the commit it was built from", Action: printVersion},
		}, programs, []*cli.Command{
			{
				Name:   "probe",
				Usage:  "say what a process sees here; in a job of scalebench doctor, answer its question",
				Hidden: true,
				Flags:  []cli.Flag{&cli.StringFlag{Name: "dir", Usage: "doctor's `FOLDER`; without it, print what is seen here"}},
				Action: probeHere,
			},
			{
				Name:   "address",
				Usage:  "print this host's IP address and a free TCP port",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "interface", Usage: "network `INTERFACE` (default: the one that the host name resolves to)"}},
				Action: address,
			},
		}, otherCommands()),
	}
	err := app.Run(args)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	worker.Warn(stderr, err.Error())
	return 1
}

func supervise(c *cli.Context) error {
	dir, err := filepath.Abs(c.String("dir"))
	if err != nil {
		return err
	}
	w, err := place(c, world.FromSlurm)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	code, err := worker.Supervise(c.Context, worker.Options{Run: rundir.Folder(dir), World: w, Worker: self,
		Python: c.String("python"), Commit: c.String("commit"), Devices: readDevices()})
	if err != nil {
		return err
	}
	if code != 0 {
		fmt.Fprintf(c.App.ErrWriter, "scalebench-worker: rank %d of %d ended with code %d; see %s\n", w.Rank, w.Size, code, rundir.Folder(dir).RankLog(w.Rank))
		return exitCode(code)
	}
	return nil
}

func printVersion(c *cli.Context) error {
	_, err := fmt.Fprintln(c.App.Writer, c.App.Name, version.String())
	return err
}

// probeHere is run by the jobs of scalebench doctor, and by doctor itself.
func probeHere(c *cli.Context) error {
	facts := probe.Look(c.Context, version.String())
	facts.NCCL = lookForNCCL()
	dir := c.String("dir")
	if dir == "" {
		return json.NewEncoder(c.App.Writer).Encode(facts)
	}
	w, err := world.FromSlurm(os.Getenv)
	if err != nil {
		return err
	}
	return probe.Run(c.Context, rundir.Probe(dir), w, facts)
}

func address(c *cli.Context) error {
	ip, err := world.RoutableAddress(c.String("interface"))
	if err != nil {
		return err
	}
	port, err := world.FreePort(ip)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.App.Writer, ip, port)
	return err
}
