//go:build !training

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/number"
)

func loadCommand() *cli.Command {
	return &cli.Command{
		Name:  "load",
		Usage: "send requests to a service by hand and print rate and latency",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "url", Usage: "`URL` of a service; several are replicas, asked in turn", Required: true},
			&cli.StringFlag{Name: "model", Usage: "ask the model `NAME` by the Open Inference Protocol v2, at --url http://HOST:PORT or grpc://HOST:PORT (https and grpcs with TLS)"},
			&cli.IntFlag{Name: "batch", Usage: "with --model: `N` samples in a request, drawn from --seed", Value: 1},
			&cli.BoolFlag{Name: "json-tensors", Usage: "with --model: send numbers as JSON even to a server that takes binary tensors"},
			&cli.DurationFlag{Name: "ready", Usage: "with --model: wait for `TIME` until the model is ready", Value: time.Minute},
			&cli.StringFlag{Name: "body", Usage: "POST the content of `FILE`; without it, GET"},
			&cli.StringFlag{Name: "content-type", Usage: "`TYPE` of the body", Value: "application/json"},
			&cli.BoolFlag{Name: "stream", Usage: "answers are streamed, by OpenAI's protocol; --body has \"stream\": true"},
			&cli.StringFlag{Name: "expect", Usage: "`TEXT` that every correct answer contains (default: any answer with status 2xx is correct)"},
			&cli.StringFlag{Name: "in-flight", Usage: "closed loop, for capacity: keep N requests in flight, for each N of `LIST`"},
			&cli.StringFlag{Name: "rate", Usage: "open loop, for latency: send R requests/s at random times, for each R of `LIST`"},
			&cli.DurationFlag{Name: "duration", Usage: "send for `TIME` at each load", Value: 20 * time.Second},
			&cli.DurationFlag{Name: "timeout", Usage: "an answer after `TIME` is late", Value: 5 * time.Second},
			&cli.Uint64Flag{Name: "seed", Usage: "draw the times from `SEED`", Value: 1},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON object for each load, in seconds"},
		},
		Action: loadByHand,
	}
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

// loads parses a list of positive numbers.
func loads(name, text string) ([]float64, error) {
	var list []float64
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || x <= 0 || math.IsInf(x, 0) || name == "in-flight" && (x != math.Trunc(x) || x > 1<<16) {
			want := "numbers above 0"
			if name == "in-flight" {
				want = fmt.Sprintf("whole numbers from 1 to %d", 1<<16)
			}
			return nil, fmt.Errorf("--%s: %q is not valid; want %s, like 1,2,4", name, word, want)
		}
		list = append(list, x)
	}
	return list, nil
}

func loadByHand(c *cli.Context) error {
	h := &target.HTTP{URLs: c.StringSlice("url"), ContentType: c.String("content-type"), Streams: c.Bool("stream")}
	if err := h.Check(); err != nil && c.String("model") == "" {
		return fmt.Errorf("--url: %w", err)
	}
	if text := c.String("expect"); text != "" {
		h.Expect = []byte(text)
	}
	if path := c.String("body"); path != "" {
		var err error
		body, err := target.ReadBody(path)
		if err != nil {
			return err
		}
		h.Bodies = [][]byte{body}
	}
	if h.Streams && (h.Bodies == nil || c.String("model") != "") {
		return errors.New("--stream needs a --body with \"stream\": true, and no --model")
	}
	closed, err := loads("in-flight", c.String("in-flight"))
	open, err2 := loads("rate", c.String("rate"))
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if len(closed)+len(open) == 0 {
		return errors.New("no load: give --in-flight 1,2,4, --rate 50,100, or both")
	}
	ctx, stop := untilSignal(c)
	defer stop()
	o := loadtest.Options{Dial: h.Dial, Timeout: c.Duration("timeout"), Duration: c.Duration("duration")}
	if c.String("model") != "" {
		if o.Dial, err = askModel(ctx, c, h); err != nil {
			return err
		}
	}
	o.Window = o.Duration / loadtest.Windows
	if o.Window < time.Millisecond {
		return fmt.Errorf("--duration %s is too short; want %s or more", o.Duration, loadtest.Windows*time.Millisecond)
	}
	if o.Timeout <= 0 {
		return fmt.Errorf("--timeout %s must be above 0", o.Timeout)
	}
	return printLoads(ctx, c, o, closed, open)
}

// printLoads runs the loads, those with requests in flight first, and prints a row for each.
func printLoads(ctx context.Context, c *cli.Context, o loadtest.Options, closed, open []float64) error {
	print := newLoadTable(c)
	capacity := 0.0
	for _, n := range closed {
		o.InFlight = int(n)
		r, err := loadtest.Run(ctx, o)
		if err != nil {
			return err
		}
		v := r.Judge()
		capacity = max(capacity, v.Total.Rate())
		if err := print.row(loadRow{InFlight: int(n)}, r, v); err != nil {
			return err
		}
	}
	o.InFlight = 0
	for i, rate := range open {
		o.Schedule = loadtest.Poisson(rate, o.Duration, c.Uint64("seed")+uint64(i))
		r, err := loadtest.Run(ctx, o)
		if err != nil {
			return err
		}
		v := r.Judge()
		v.Beyond(rate, capacity)
		if err := print.row(loadRow{Rate: rate}, r, v); err != nil {
			return err
		}
	}
	return print.end()
}

// askModel makes requests from the model's own description; as holds its address and the
// expected answers.
func askModel(ctx context.Context, c *cli.Context, as *target.HTTP) (dial func() (loadtest.Sender, error), err error) {
	if as.Bodies != nil {
		return nil, errors.New("--body and --model cannot be combined: with --model, requests follow the inputs that the model declares; leave one out")
	}
	name, in := c.String("model"), target.Inputs{Batch: c.Int("batch"), Seed: c.Uint64("seed"), JSON: c.Bool("json-tensors")}
	if target.OverGRPC(as.URLs[0]) && (as.Expect != nil || in.JSON) {
		return nil, errors.New("--expect and --json-tensors do not apply to grpc://, whose answers are not text; leave them out")
	}
	patience, cancel := context.WithTimeout(ctx, c.Duration("ready"))
	defer cancel()
	model, err := target.Find(patience, as.URLs, name, as.Private)
	if err != nil {
		return nil, err
	}
	question, err := model.Ask(ctx, in, as.Expect, time.Now().Add(max(c.Duration("ready"), c.Duration("timeout"))))
	if err != nil {
		return nil, err
	}
	if question.Varies {
		worker.Warn(c.App.ErrWriter, fmt.Sprintf("model %s answers the same request differently; only the names, types and shapes of its answers are checked", name))
	}
	return question.Dial, nil
}

// A loadRow is the result of one load; nil means unknown.
type loadRow struct {
	InFlight int      `json:"in_flight,omitempty"`
	Rate     float64  `json:"rate,omitempty"`
	Answers  float64  `json:"requests_per_second"` // right answers in time, per second
	P50      *float64 `json:"latency_p50"`
	P95      *float64 `json:"latency_p95"`
	P99      *float64 `json:"latency_p99"`
	TTFT     *times   `json:"ttft,omitempty"`
	TTFO     *times   `json:"ttfo,omitempty"` // if answers begin with reasoning
	TPOT     *times   `json:"tpot,omitempty"`
	ITL      *times   `json:"itl,omitempty"`
	Tokens   float64  `json:"output_throughput,omitempty"`
	Input    float64  `json:"input_tokens,omitempty"`
	Cached   float64  `json:"cached_tokens,omitempty"`    // share of the input tokens
	Thought  float64  `json:"reasoning_tokens,omitempty"` // share of the output tokens
	Errors   float64  `json:"errors"`                     // share of the requests
	Timeouts float64  `json:"timeouts"`
	Client   float64  `json:"client_cpus"`
	Warmup   int      `json:"warmup_windows"`
	Doubts   []string `json:"doubts,omitempty"`
}

// times holds percentiles in seconds; nil means unknown.
type times struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
}

type loadTable struct {
	streams bool
	json    func(loadRow) error // prints a row; nil: as a table
	out     io.Writer
	text    *tabwriter.Writer
	notes   []string
	failed  []string // loads without a right answer
	why     string   // reason for the first of them
}

func newLoadTable(c *cli.Context) *loadTable {
	t := &loadTable{streams: c.Bool("stream"), out: c.App.Writer}
	if c.Bool("json") {
		t.json = func(row loadRow) error {
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(t.out, clean.JSON(string(text)))
			return err
		}
		return t
	}
	t.text = tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', tabwriter.AlignRight)
	ofStreams := ""
	if t.streams {
		ofStreams = "TTFT P50\tTTFT P95\tTPOT P50\tTPOT P95\ttokens/s\t"
	}
	fmt.Fprintln(t.text, "in flight\trate asked\tanswers/s\tP50\tP95\tP99\t"+ofStreams+"errors\tclient CPUs\t")
	return t
}

func (t *loadTable) row(row loadRow, r *loadtest.Result, v loadtest.Verdict) error {
	row.Answers, row.Errors, row.Timeouts = v.Total.Rate(), v.Total.Errors(), v.Total.Timeouts()
	row.Client, row.Warmup, row.Doubts = r.ClientCPU, v.Warmup, v.Warnings
	name := fmt.Sprintf("%d in flight", row.InFlight)
	if row.Rate > 0 {
		name = fmt.Sprintf("%g requests/s", row.Rate)
	}
	if v.Why != "" {
		row.Doubts = append(row.Doubts, "no steady state: "+v.Why)
	}
	switch {
	case v.Total.Good == 0:
		if t.failed = append(t.failed, name); len(t.failed) == 1 {
			t.why = v.Why
		}
	case r.FirstError != nil:
		row.Doubts = append(row.Doubts, fmt.Sprintf("the first request without a right answer in time: %v", r.FirstError))
	}
	percentiles := func(of loadtest.Time, name string) *times {
		var t times
		for _, p := range []struct {
			of   float64
			into **float64
		}{{0.5, &t.P50}, {0.95, &t.P95}, {0.99, &t.P99}} {
			seconds, why := v.Percentile(of, p.of)
			switch {
			case why == "":
				*p.into = &seconds
			case v.Why == "":
				row.Doubts = append(row.Doubts, fmt.Sprintf("no %sP%g: %s", name, 100*p.of, why))
			}
		}
		return &t
	}
	latencies := percentiles(loadtest.Latency, "")
	row.P50, row.P95, row.P99 = latencies.P50, latencies.P95, latencies.P99
	if t.streams {
		tokens, counted := v.Total.Tokens()
		row.TTFT, row.TPOT, row.ITL = percentiles(loadtest.FirstToken, "TTFT "), percentiles(loadtest.PerToken, "TPOT "), percentiles(loadtest.Gap, "ITL ")
		row.Input, row.Cached, row.Thought = v.Total.Shares()
		if v.Total.Reasoned() {
			row.TTFO = percentiles(loadtest.FirstOutput, "TTFO ")
			if p := row.TTFO.P50; p != nil && t.json == nil {
				row.Doubts = append(row.Doubts, fmt.Sprintf("answers begin with reasoning: the median time to the first output token, TTFO P50, is %s", number.Seconds(*p)))
			}
		}
		row.Tokens = v.Total.OutputThroughput()
		if tokens > 0 && !counted {
			row.Doubts = append(row.Doubts, "the service does not say how many tokens it made: each text counts as one; ask for usage in --body with \"stream_options\": {\"include_usage\": true}")
		}
	}
	if t.json != nil {
		return t.json(row)
	}
	t.write(row)
	for _, d := range row.Doubts {
		t.notes = append(t.notes, name+": "+d)
	}
	return nil
}

// write writes a row of the table.
func (t *loadTable) write(row loadRow) {
	asked, flying := "–", "–"
	if row.Rate > 0 {
		asked = strconv.FormatFloat(row.Rate, 'g', -1, 64)
	} else {
		flying = strconv.Itoa(row.InFlight)
	}
	latency := func(seconds *float64) string {
		if seconds == nil {
			return "–"
		}
		return number.Seconds(*seconds)
	}
	fmt.Fprintf(t.text, "%s\t%s\t%s\t%s\t%s\t%s\t", flying, asked, number.Significant(row.Answers), latency(row.P50), latency(row.P95), latency(row.P99))
	if t.streams {
		fmt.Fprintf(t.text, "%s\t%s\t%s\t%s\t%s\t", latency(row.TTFT.P50), latency(row.TTFT.P95), latency(row.TPOT.P50), latency(row.TPOT.P95), number.Significant(row.Tokens))
	}
	fmt.Fprintf(t.text, "%.3g %%\t%.2f\t\n", 100*row.Errors, row.Client)
}

// end prints the rest. Its error names the loads at which every request failed, so that
// scripts notice.
func (t *loadTable) end() error {
	if t.json == nil {
		if err := t.text.Flush(); err != nil {
			return err
		}
	}
	for _, note := range t.notes {
		if _, err := fmt.Fprintln(t.out, clean.Lines(note)); err != nil {
			return err
		}
	}
	if t.failed != nil {
		return fmt.Errorf("%s: %s; check --url, --body, --expect and --timeout", strings.Join(t.failed, ", "), t.why)
	}
	return nil
}
