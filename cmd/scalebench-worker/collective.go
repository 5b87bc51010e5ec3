package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics/number"
)

func init() {
	programs = append(programs, collectiveCommand())
}

func collectiveCommand() *cli.Command {
	return &cli.Command{
		Name:  "collective",
		Usage: "measure collectives between ranks: one rank, as run starts it, or by hand with --ranks",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "ranks", Usage: "by hand: start `N` ranks on this host and print what they measure"},
			&cli.StringFlag{Name: "ops", Usage: "`LIST` of " + strings.Join(study.CollectiveOps, ","), DefaultText: "all"},
			&cli.StringFlag{Name: "backend", Usage: "`NAME`, one of " + strings.Join(study.CollectiveBackends, ", "), Value: "auto"},
			&cli.StringFlag{Name: "min", Usage: "smallest `SIZE` of the whole array", Value: "8"},
			&cli.StringFlag{Name: "max", Usage: "largest `SIZE`; sizes double in between", Value: "64M"},
			&cli.IntFlag{Name: "iterations", Usage: "time `N` operations for each size", Value: 20},
			&cli.IntFlag{Name: "warmup", Usage: "do `N` operations first, untimed", Value: 5},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object for each result, in seconds and bytes/s"},
		},
		Action: func(c *cli.Context) error {
			switch {
			case os.Getenv(framework.RunVariable) != "":
				return measureCollectives(c)
			case c.Int("ranks") == 0:
				return fmt.Errorf("--ranks is missing: give --ranks N to start N ranks on this host (only a run of a study sets %s)", framework.RunVariable)
			}
			return measureByHand(c)
		},
	}
}

// measureCollectives runs one rank of the benchmark.
func measureCollectives(c *cli.Context) error {
	transport := func(p study.Point) collective.Transport { return transports[p.Workload.Collective.Backend] }
	return runMember(c, "collective", transport, func(ctx context.Context, m *member) error { return benchmark(ctx, m, c.Bool("json")) })
}

// transports maps each host backend to the transport of its ranks' group; other backends leave the choice to
// the group.
var transports = map[string]collective.Transport{"tcp": collective.TCP, "shm": collective.SharedMemory}

// benchmark measures what the point lists. Rank 0 records each result at once, so that results before an
// unplanned end are kept.
func benchmark(ctx context.Context, m *member, asJSON bool) (err error) {
	w, g := m.point.Workload.Collective, m.group
	backend, err := openBackend(ctx, w.Backend, g, m.world)
	if err != nil {
		return err
	}
	if e, ok := backend.(interface {
		End(context.Context, error) error
	}); ok {
		defer func() { err = e.End(ctx, err) }()
	}
	versions := map[string]string{}
	if v, ok := backend.(interface{ Versions() map[string]string }); ok {
		maps.Copy(versions, v.Versions())
	}
	if err := m.environment(m.cores(), versions); err != nil {
		return err
	}
	o := collective.BenchOptions{MinBytes: int64(w.MinBytes), MaxBytes: int64(w.MaxBytes), Warmup: w.WarmupIterations, Iterations: w.Iterations}
	for _, op := range w.Ops {
		o.Ops = append(o.Ops, collective.Op(op))
	}
	if d, ok := backend.(interface{ TimingCaveats() []string }); ok && g.Rank() == 0 {
		for _, text := range d.TimingCaveats() {
			if err := m.note(text); err != nil {
				return err
			}
		}
	}
	var table *collective.BenchTable
	if g.Rank() == 0 && !asJSON {
		table = collective.NewBenchTable(os.Stdout, backend.Name(), g.Size(), o)
	}
	o.Report = func(r collective.BenchRow) error {
		if g.Rank() > 0 {
			return nil
		}
		for _, f := range r.Figures() {
			if err := m.figure(f); err != nil {
				return fmt.Errorf("writing events: %w", err)
			}
		}
		if asJSON {
			return json.NewEncoder(os.Stdout).Encode(r)
		}
		return table.Add(r)
	}
	return collective.Bench(ctx, backend, g, o)
}

// openBackend returns the backend that moves the data. NCCL is only in the worker's GPU variant.
func openBackend(ctx context.Context, name string, g *collective.Group, w world.World) (collective.BenchTransport, error) {
	if name == "nccl" {
		return openNCCL(ctx, g, w)
	}
	return collective.NewHostTransport(name, g), nil
}

// measureByHand starts the ranks of a benchmark on this host, like in a study's run, in a
// temporary folder. Rank 0 prints the results.
func measureByHand(c *cli.Context) error {
	point, err := pointByHand(c)
	if err != nil {
		return err
	}
	if cpus := world.CPUs(); point.Workers > cpus {
		fmt.Fprintf(c.App.ErrWriter, "scalebench-worker: %d ranks share %s and wait for each other; the figures are not the hardware's\n", point.Workers, number.Count(cpus, "CPU"))
	}
	folder, err := os.MkdirTemp("", "scalebench-collective-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	run := rundir.Folder(folder)
	text, err := json.Marshal(point)
	if err != nil {
		return err
	}
	for path, content := range map[string][]byte{run.Point(): text, run.Nonce(): []byte(rand.Text())} {
		if err := rundir.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(c)
	defer stop()
	return startRanks(ctx, c, run, world.World{Size: point.Workers, LocalSize: point.Workers, Nodes: 1, Address: "127.0.0.1", Port: port})
}

// pointByHand returns the point that the flags describe, as a study would.
func pointByHand(c *cli.Context) (study.Point, error) {
	quoted := "[]"
	if list := c.String("ops"); list != "" {
		quoted = `["` + strings.Join(strings.Split(list, ","), `", "`) + `"]`
	}
	device := "cpu"
	if c.String("backend") == "nccl" {
		device = "gpu"
	}
	text := fmt.Sprintf("[study]\nname = \"by-hand\"\n[workload]\nkind = \"collective\"\nops = %s\nbackend = %q\nmin_bytes = %q\nmax_bytes = %q\niterations = %d\nwarmup_iterations = %d\n[resources]\ndevice = %q\n[sweep]\nworkers = [%d]\n",
		quoted, c.String("backend"), c.String("min"), c.String("max"), c.Int("iterations"), c.Int("warmup"), device, c.Int("ranks"))
	s, err := study.Parse("options", []byte(text), framework.ForStudy())
	if err != nil {
		return study.Point{}, err
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		return study.Point{}, err
	}
	return plan.Points[0].Point, nil
}

// startRanks runs all ranks to their end; a failing rank stops the others.
func startRanks(ctx context.Context, c *cli.Context, run rundir.Folder, w world.World) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, w.Size)
	for rank := range w.Size {
		w := w
		w.Rank, w.LocalRank = rank, rank
		cmd := exec.CommandContext(ctx, self, "collective")
		if c.Bool("json") {
			cmd.Args = append(cmd.Args, "--json")
		}
		cmd.Env = append(append(os.Environ(), w.Environ()...), framework.RunVariable+"="+run.Path())
		cmd.Stderr = c.App.ErrWriter
		if rank == 0 {
			cmd.Stdout = c.App.Writer
		}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		go func() {
			// A rank dies with the thread that started it, hence the lock: a killed command
			// then leaves no ranks behind.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			err := cmd.Run()
			if err != nil {
				err = fmt.Errorf("rank %d: %w", rank, err)
				stop(err)
			}
			ended <- err
		}()
	}
	for range w.Size {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}
