//go:build !training

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/redact"
)

func loadCommand() *cli.Command {
	return &cli.Command{
		Name:      "load",
		Usage:     "send requests to a running service by hand and print rate and latency",
		ArgsUsage: "url=URL KEY=VALUE...",
		Description: `Keys are those of [workload] in a study with kind = "serve" and target = "url", like path=/predict payload=ask.json
threads=[1,4] rate=[50,100] duration=60s, and study.seed=2. Options go before them.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "into", Usage: "keep latencies, requests and the service's metrics in a new `FOLDER`"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object for each load, with all figures in base units"},
		},
		Action: loadByHand,
	}
}

// loadedByHand returns the point that KEY=VALUE words describe, as a study would.
func loadedByHand(words []string) (study.Point, error) {
	const text = "[study]\nname = \"by-hand\"\n[workload]\nkind = \"serve\"\ntarget = \"url\"\n[sweep]\nframework = [\"command\"]\nreplicas = [1]\n"
	here, err := os.Getwd()
	if err != nil {
		return study.Point{}, err
	}
	keys := slices.Clone(words)
	for i, word := range words {
		if key, _, ok := strings.Cut(word, "="); ok && !strings.Contains(key, ".") {
			keys[i] = "workload." + word
		}
	}
	s, err := study.Parse(filepath.Join(here, "arguments"), []byte(text), framework.ForStudy(), keys...)
	if err != nil {
		return study.Point{}, err
	}
	plan, err := s.Plan(study.DefaultSite())
	if err != nil {
		return study.Point{}, err
	}
	if n := len(plan.Points); n != 1 {
		return study.Point{}, fmt.Errorf("the arguments describe %d points; give each key one value, except threads, rate and batch", n)
	}
	return plan.Points[0].Point, nil
}

// loadByHand measures a service like the load generator of a run.
func loadByHand(c *cli.Context) error {
	point, err := loadedByHand(c.Args().Slice())
	if err != nil {
		return err
	}
	folder := c.String("into")
	if folder == "" {
		if folder, err = os.MkdirTemp("", "scalebench-load-"); err != nil {
			return err
		}
		defer os.RemoveAll(folder)
	} else if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("--into: %w", err)
	}
	r := &serving{member: &member{program: &program{run: rundir.Folder(folder), point: point}, log: printable{c.App.ErrWriter}}, asked: map[int]exchanged{}}
	if r.framework, err = framework.Find(point.Framework); err != nil {
		return err
	}
	var events bytes.Buffer
	if r.events, err = metrics.NewWriter(&events, metrics.Start{Writer: "rank", WorldSize: 1, PID: os.Getpid()}); err != nil {
		return err
	}
	ctx, stop := untilSignal(c)
	defer stop()
	failed := r.load(ctx, nil, nil, 0)
	rows, err := rowsOf(&events)
	if err == nil {
		print := printTable
		if c.Bool("json") {
			print = printJSON
		}
		err = print(c.App.Writer, rows)
	}
	return errors.Join(failed, err)
}

// printable writes what a terminal may show: no control characters and no secrets of a server.
type printable struct{ io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, clean.Lines(redact.Text(string(text)))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// A loadRow holds the figures at one place, with its coordinates, such as batch and rate.
type loadRow map[string]any

// rowsOf reads the figures of a load's events.
func rowsOf(events io.Reader) (rows []loadRow, err error) {
	at := map[string]loadRow{}
	for in := metrics.NewReader(events, "events", 0, 0); ; {
		e, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, err
		case e.Figure == nil:
			continue
		}
		place := fmt.Sprint(e.Figure.At) // fmt sorts the keys
		if at[place] == nil {
			at[place] = maps.Clone(e.Figure.At)
			rows = append(rows, at[place])
		}
		at[place][e.Figure.Name] = e.Figure.Value
	}
}

func printJSON(to io.Writer, rows []loadRow) error {
	for _, row := range rows {
		text, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(to, clean.JSON(string(text))); err != nil {
			return err
		}
	}
	return nil
}

// shown lists the columns of the table; one that no row has is left out.
var shown = []string{measure.Batch, measure.Threads, measure.Rate, measure.RequestsPerSecond, measure.LatencyP50, measure.LatencyP95, measure.LatencyP99,
	measure.TTFTP50, measure.TTFTP95, measure.TTFOP50, measure.TPOTP50, measure.TPOTP95, measure.OutputThroughput, measure.Errors, measure.ClientCPUs,
	measure.RateWithinLimit, measure.RateAtLeast, measure.RateAtMost}

// printTable prints the loads, and the results of the search.
func printTable(to io.Writer, rows []loadRow) error {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row loadRow) bool {
		return !slices.ContainsFunc(shown[3:], func(name string) bool { return row[name] != nil })
	})
	if len(rows) == 0 {
		return nil
	}
	columns := slices.DeleteFunc(slices.Clone(shown), func(name string) bool {
		return !slices.ContainsFunc(rows, func(row loadRow) bool { return row[name] != nil })
	})
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range columns {
		title := name
		if m, err := measure.Find(name); err == nil {
			title = m.Title
			if m.Unit != "" && m.Show != measure.Seconds {
				title += ", " + m.Unit
			}
		}
		fmt.Fprintf(out, "%s\t", title)
	}
	fmt.Fprintln(out)
	for _, row := range rows {
		for _, name := range columns {
			fmt.Fprintf(out, "%s\t", cellOf(name, row[name]))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// cellOf formats a value of a column; nil is unknown.
func cellOf(name string, value any) string {
	x, ok := value.(float64)
	m, err := measure.Find(name)
	switch {
	case !ok:
		return "–"
	case err != nil: // a coordinate
		return number.Exact(x)
	case m.Show == measure.Seconds:
		return number.Seconds(x)
	case m.Show == measure.Percent:
		return number.Percent(x)
	}
	return number.Significant(x)
}

func nullCommand() *cli.Command {
	return &cli.Command{
		Name:  "null",
		Usage: "a service that answers at once, or token by token on a schedule, to measure the client against: print its URL and serve until a signal",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` to listen at", Value: "127.0.0.1:0"},
			&cli.IntFlag{Name: "answer", Usage: "answer with `N` bytes", Value: 100},
			&cli.BoolFlag{Name: "grpc", Usage: "answer over gRPC"},
			&cli.IntFlag{Name: "tokens", Usage: "answer with a stream of `N` tokens, by OpenAI's protocol"},
			&cli.DurationFlag{Name: "ttft", Usage: "with --tokens: send the first after `TIME`"},
			&cli.DurationFlag{Name: "tpot", Usage: "with --tokens: send each further one `TIME` later"},
			&cli.BoolFlag{Name: "count", Usage: "with --tokens: count the words of a request as its tokens, and answer with max_tokens tokens if it has that"},
		},
		Action: func(c *cli.Context) error {
			if c.Bool("grpc") && c.Int("tokens") > 0 {
				return errors.New("--grpc and --tokens cannot be combined: streams of OpenAI's protocol go over HTTP; leave one out")
			}
			l, err := net.Listen("tcp", c.String("listen"))
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(c)
			defer stop()
			if c.Bool("grpc") {
				fmt.Fprintf(c.App.Writer, "grpc://%s\n", l.Addr())
				return target.NullGRPC(ctx, l, c.Int("answer"))
			}
			if n := c.Int("tokens"); n > 0 {
				fmt.Fprintf(c.App.Writer, "http://%s/\n", l.Addr())
				return target.Simulated{Tokens: n, First: c.Duration("ttft"), PerToken: c.Duration("tpot"), Counts: c.Bool("count")}.Serve(ctx, l)
			}
			go func() {
				<-ctx.Done()
				_ = l.Close()
			}()
			fmt.Fprintf(c.App.Writer, "http://%s/\n", l.Addr())
			return target.Null(l, c.Int("answer"))
		},
	}
}
