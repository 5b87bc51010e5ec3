//go:build gpu

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	engine "github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/world"
)

// checkCommands run the checks of results for gpu-check.
func checkCommands() []*cli.Command {
	return []*cli.Command{
		{Name: "checks", Usage: "list the checks of results", Hidden: true, Action: listChecks},
		{Name: "check", Usage: "run the checks named on standard input, one a line", Hidden: true, Action: runChecks},
		{Name: "step-time", Usage: "say where the time of a training step goes, in each precision", Hidden: true, Action: stepTime, Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Required: true},
			&cli.IntFlag{Name: "batch", Required: true},
		}},
		{Name: "check-rank", Usage: "be one rank of a check", Hidden: true, Action: func(*cli.Context) error { return suite.Rank() }},
	}
}

func checks() ([]gpucheck.Check, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return slices.Concat(suite.KernelChecks(), suite.ProductChecks(), suite.StepChecks([]string{self, "check-rank"})), nil
}

func listChecks(c *cli.Context) error {
	list, err := checks()
	if err != nil {
		return err
	}
	var listed []gpucheck.Listed
	for _, c := range list {
		listed = append(listed, gpucheck.Listed{Name: c.Name, Seconds: c.Estimate.Seconds(), PyTorch: c.PyTorch, NCCL: c.NCCL})
	}
	return json.NewEncoder(c.App.Writer).Encode(listed)
}

func runChecks(c *cli.Context) error {
	list, err := checks()
	if err != nil {
		return err
	}
	names := bufio.NewScanner(c.App.Reader)
	for names.Scan() {
		r := gpucheck.Result{Name: names.Text(), Failure: &gpucheck.Failure{Said: []string{"this worker has no such check"}}}
		if i := slices.IndexFunc(list, func(c gpucheck.Check) bool { return c.Name == r.Name }); i >= 0 {
			r = gpucheck.Run(list[i])
		}
		if err := json.NewEncoder(c.App.Writer).Encode(r); err != nil {
			return err
		}
	}
	return names.Err()
}

// stepTime trains with one precision after the other, on random images.
func stepTime(c *cli.Context) error {
	for _, precision := range engine.Precisions {
		if err := timeSteps(c, precision); err != nil {
			return fmt.Errorf("%s: %w", precision, err)
		}
	}
	return nil
}

func timeSteps(c *cli.Context, precision string) error {
	const warmUp, steps, rate = 3, 10, 0.001
	batch := c.Int("batch")
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1"}
	g, err := collective.Join(c.Context, w, "", collective.Options{})
	if err != nil {
		return err
	}
	defer g.Close()
	e, err := engine.Open(c.Context, engine.Options{Precision: precision, Options: cpu.Options{Model: c.String("model"), Classes: 10,
		Height: dataset.Height, Width: dataset.Width, Channels: dataset.Channels, Batch: batch, GlobalBatch: batch, Momentum: 0.9, WeightDecay: 1e-4}}, g, w, os.Getenv)
	if err != nil {
		return err
	}
	defer e.Close()
	random := rand.New(rand.NewPCG(1, 2))
	for _, input := range []dataset.Batch{e.Input(), e.Ahead()} {
		image := make([]byte, dataset.ImageBytes)
		for i := range batch {
			for k := range image {
				image[k] = byte(random.Uint32())
			}
			input.Put(i, image, dataset.Identity, byte(random.IntN(10)))
		}
	}
	type share struct {
		What     string
		Launches int
		Seconds  float64
	}
	found := struct {
		Precision string
		Step      float64
		Shares    []share
	}{Precision: precision}
	for step := range warmUp + steps {
		total, shares, err := e.Profile(c.Context, batch, rate)
		if err != nil {
			return err
		}
		if step < warmUp {
			continue
		}
		found.Step += total.Seconds() / steps
		for _, s := range shares {
			i := slices.IndexFunc(found.Shares, func(x share) bool { return x.What == s.What })
			if i < 0 {
				i = len(found.Shares)
				found.Shares = append(found.Shares, share{What: s.What, Launches: s.Launches})
			}
			found.Shares[i].Seconds += s.Time.Seconds() / steps
		}
	}
	slices.SortStableFunc(found.Shares, func(a, b share) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return json.NewEncoder(c.App.Writer).Encode(found)
}
