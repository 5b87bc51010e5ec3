//go:build !training

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

func modelServerCommand() *cli.Command {
	return &cli.Command{
		Name:  "model-server",
		Usage: "serve a model of the native trainer by the Open Inference Protocol v2: print the URL and answer until a signal",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Usage: "`FILE` that a training saved (workload.save_model), or random:NAME for a model with initial weights, such as random:resnet44", Required: true},
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the model in requests", DefaultText: "the model's own, such as resnet44"},
			&cli.Int64Flag{Name: "seed", Usage: "draw random weights from `SEED`", Value: 1},
			&cli.StringFlag{Name: "listen", Usage: "`HOST:PORT` to listen at; port 0 is any", Value: "127.0.0.1:8000"},
			&cli.IntFlag{Name: "threads", Usage: "compute with `N` threads (default: one for each CPU)"},
		},
		Action: serveModel,
	}
}

// randomModel precedes the name of an untrained model.
const randomModel = "random:"

// openModel reads or creates a model; key is the option or key that named it.
func openModel(key, name string, seed int64) (*netspec.Trained, error) {
	untrained, ok := strings.CutPrefix(name, randomModel)
	if !ok {
		text, err := sharedfs.ReadFile(name, netspec.MaxFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		m, err := netspec.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", key, name, err)
		}
		return m, nil
	}
	if !slices.Contains(train.Models(), untrained) {
		return nil, fmt.Errorf("%s %q is not valid; valid: a file, or %s%s", key, name, randomModel, strings.Join(train.Models(), ", "+randomModel))
	}
	return cpu.Untrained(untrained, dataset.Classes, dataset.Height, dataset.Width, dataset.Channels, seed)
}

// tokenVariable holds the token that requests for logits must have. It is an environment
// variable because other users can read command lines.
const tokenVariable = "SCALEBENCH_SERVE_TOKEN"

// drainTime is the maximum time that requests in progress may take after a signal.
const drainTime = 20 * time.Second

func serveModel(c *cli.Context) error {
	threads := c.Int("threads")
	if threads == 0 {
		threads = world.CPUs()
	}
	if threads < 1 || threads > 1<<12 {
		return fmt.Errorf("--threads %d is not valid; valid: 1 to %d", threads, 1<<12)
	}
	m, err := openModel("--model", c.String("model"), c.Int64("seed"))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	// Threads that read requests must not wait for a compute thread to pause.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(threads + 1)
	}
	classifier, err := cpu.NewClassifier(m, threads, os.Getenv(train.KernelsVariable))
	if err != nil {
		return errors.Join(fmt.Errorf("--model %s: %w", c.String("model"), err), l.Close())
	}
	m.Model = cmp.Or(c.String("name"), m.Model) // from here on, only the handler reads it
	ctx, stop := untilSignal(c)
	defer stop()
	s := train.NewModelServer(train.ServeHandler(m, classifier, version.String()), train.ServerLimits{Token: os.Getenv(tokenVariable)})
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		patience, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		drained <- s.Shutdown(patience)
	}()
	if _, err := fmt.Fprintf(c.App.Writer, "http://%s/\n", l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if err := <-drained; err != nil {
		return fmt.Errorf("requests were still unanswered %s after the signal: %w", drainTime, err)
	}
	classifier.Close()
	return nil
}
