//go:build !training

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// load measures the replicas under each load of the point.
func (r *serving) load(ctx context.Context, addresses, hosts []string, startup time.Duration) error {
	w := r.point.Workload.Serve
	var servers []string
	scheme := "http://"
	if w.Target == study.GRPC {
		scheme = "grpc://"
	}
	var names []string
	for rank, address := range addresses {
		if address != "" {
			names = append(names, strings.TrimSuffix(fmt.Sprintf("replica %d on %s", len(names), hosts[rank]), " on "))
			servers = append(servers, scheme+address)
		}
	}
	if w.Target == study.URL {
		if servers = w.URLs(); len(servers) > 1 {
			names = servers
		}
	}
	private, err := privateHeaders(w)
	if err != nil {
		return err
	}
	s := loadtest.Service{Replicas: names, Null: r.null, Seed: uint64(r.point.Seed), InProcess: w.Target == study.Process, Phase: r.phase, Figure: r.figure, Warn: r.warn, Log: r.latencies, GPUs: r.point.ServedBy()}
	if s.InProcess {
		s.Null = nil // the model runs in this process, so no client can limit the results
	}
	if w.Export {
		s.Export = r.requests
	}
	if path := w.Metrics; path != "" || r.framework.Language && w.Starts() {
		s.Scrape = r.scraper(servers, cmp.Or(path, framework.LanguageMetrics), private)
	}
	if s.Dial, err = r.dialer(ctx, servers, private, &s); err != nil {
		return err
	}
	if w.Starts() {
		if err := r.figure(metrics.Figure{Name: measure.StartupSeconds, Value: startup.Seconds(), Unit: "s"}); err != nil {
			return err
		}
	}
	if err := r.phase("ready"); err != nil {
		return err
	}
	if w.Arrivals == study.Trace && len(w.Rate)+len(w.Threads) == 0 && w.Limit == "" { // replay the trace as it was recorded
		w.Rate = []float64{loadtest.TraceRate(s.Trace)}
		if w.Rate[0] == 0 {
			return errors.New("workload.prompts: all requests of the trace come at one time; set workload.rate")
		}
	}
	return s.Measure(ctx, w)
}

// A dialer returns a function that connects to the servers to send requests of a batch.
type dialer = func(batch int) (func() (loadtest.Sender, error), error)

// dialer returns how to ask the servers: over plain HTTP if the study sets a path, else by the
// Open Inference Protocol, or the model in this process. It sets what s needs to know of the prompts.
func (r *serving) dialer(ctx context.Context, servers []string, private map[string]string, s *loadtest.Service) (dialer, error) {
	w := r.point.Workload.Serve
	var expect []byte
	if w.Expect != "" {
		expect = []byte(w.Expect)
	}
	if w.Path != "" {
		return r.plainDialer(servers, expect, private, s)
	}
	ask, err := r.asker(ctx, servers, expect, private)
	if err != nil {
		return nil, err
	}
	asked := map[int]*target.Question{} // by batch
	return func(batch int) (func() (loadtest.Sender, error), error) {
		if asked[batch] == nil {
			q, err := r.question(ask, batch)
			if err != nil {
				return nil, err
			}
			asked[batch] = q
		}
		return asked[batch].Dial, nil
	}, nil
}

// plainDialer sends the study's payload or prompts to its path.
func (r *serving) plainDialer(servers []string, expect []byte, private map[string]string, s *loadtest.Service) (dialer, error) {
	w := r.point.Workload.Serve
	h := &target.HTTP{Expect: expect, Streams: w.Stream, Token: r.token(), Private: private, Routing: w.Routing, ContentType: w.ContentType}
	for _, server := range servers {
		h.URLs = append(h.URLs, server+w.Path)
	}
	if err := h.Check(); err != nil {
		return nil, err
	}
	var body []byte
	if w.Payload != "" {
		var err error
		if body, err = target.ReadBody(w.Payload); err != nil {
			return nil, fmt.Errorf("workload.payload: %w", err)
		}
		h.Bodies = [][]byte{body}
	}
	if w.Prompts != "" {
		if err := r.prompts(h, body, s); err != nil {
			return nil, err
		}
	}
	return func(batch int) (func() (loadtest.Sender, error), error) {
		if _, warm := r.asked[batch]; !warm {
			e, err := r.overHTTP(h, time.Now().Add(time.Duration(w.Timeout)))
			if err != nil {
				return nil, err
			}
			r.asked[batch] = e
		}
		if h.Prompts != nil {
			h.Prompts.Rewind()
		}
		return h.Dial, nil
	}, nil
}

// question sends one request with a batch to the servers, to learn the right answer, and returns it
// as a Question.
func (r *serving) question(ask func(target.Inputs) (*target.Question, error), batch int) (*target.Question, error) {
	in, err := r.inputs(batch)
	if err != nil {
		return nil, err
	}
	q, err := ask(in)
	if err != nil {
		return nil, err
	}
	if q.Varies {
		if err := r.warn(fmt.Sprintf("batch %d: the model answers the same request differently; only the names, types and shapes of its answers are checked", batch)); err != nil {
			return nil, err
		}
	}
	switch deadline := time.Now().Add(time.Duration(r.point.Workload.Serve.Timeout)); {
	case q.HTTP != nil:
		if r.asked[batch], err = r.overHTTP(q.HTTP, deadline); err != nil {
			return nil, err
		}
	case q.GRPC != nil:
		r.asked[batch] = overGRPC(q.GRPC, deadline)
	}
	return q, nil
}

// inputs returns the inputs of requests with that many samples.
func (r *serving) inputs(batch int) (target.Inputs, error) {
	w := r.point.Workload.Serve
	if files := w.Inputs.Of(); len(files) > 0 && r.samples == nil {
		var err error
		if r.samples, err = oip.ReadSamples(files, w.Outputs.Of(), w.Batch); err != nil {
			return target.Inputs{}, err
		}
	}
	return target.Inputs{Batch: batch, Seed: uint64(r.point.Seed), Dims: w.Shape.Of(), Samples: r.samples, Tolerance: w.Tolerance}, nil
}

// asker returns a function that makes requests for a model that describes itself.
func (r *serving) asker(ctx context.Context, servers []string, expect []byte, private map[string]string) (func(target.Inputs) (*target.Question, error), error) {
	w := r.point.Workload.Serve
	if w.Target == study.Process {
		m, _, err := r.openLocal(ctx) // ends with this process
		if err != nil {
			return nil, err
		}
		return func(in target.Inputs) (*target.Question, error) { return target.InProcess(m, in) }, nil
	}
	name := w.Model
	if r.point.Framework != "command" && w.Target != study.URL {
		name = framework.ServedModel
	}
	patience, stop := context.WithTimeout(ctx, time.Duration(w.Startup))
	defer stop()
	model, err := target.Find(patience, servers, name, private)
	if err != nil {
		return nil, err
	}
	model.Token = r.token()
	return func(in target.Inputs) (*target.Question, error) {
		// The first answers are slow: some servers compile the model for each new size.
		return model.Ask(ctx, in, expect, time.Now().Add(time.Duration(w.Startup)))
	}, nil
}

// An exchanged has the functions to query a service, and to query a null server with answers of the
// same size.
type exchanged struct {
	null   []string // options of scalebench-worker null
	scheme string   // scheme of its URL
	dial   func(server string) func() (loadtest.Sender, error)
}

// overHTTP returns the exchange after sending each replica two more requests.
func (r *serving) overHTTP(h *target.HTTP, deadline time.Time) (exchanged, error) {
	e := exchanged{scheme: "http://", dial: func(server string) func() (loadtest.Sender, error) { return h.Like(server).Dial }}
	switch answer := h.Warm(deadline); {
	case !h.Streams:
		e.null = []string{"--answer", strconv.Itoa(answer)}
	case answer > 0:
		e.null = []string{"--tokens", strconv.Itoa(answer)}
	}
	if h.FewConnections() && len(r.asked) == 0 { // not for each batch
		return e, r.warn(target.FewConnections)
	}
	return e, nil
}

// overGRPC is like overHTTP, for gRPC.
func overGRPC(g *target.GRPC, deadline time.Time) exchanged {
	return exchanged{scheme: "grpc://", null: []string{"--grpc", "--answer", strconv.Itoa(g.Warm(deadline))},
		dial: func(server string) func() (loadtest.Sender, error) { return g.Like(server).Dial }}
}

// null starts a null server on this rank's CPUs, and returns how to connect to it with the
// same requests. end stops it.
func (r *serving) null(ctx context.Context, batch int) (dial func() (loadtest.Sender, error), end func(), err error) {
	asked, ok := r.asked[batch]
	if !ok {
		return nil, nil, errors.New("nothing was asked yet")
	}
	if asked.null == nil {
		return nil, nil, errors.New("the first answer was no stream")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	ip := net.IPv4(127, 0, 0, 1)
	port, err := world.FreePort(ip)
	if err != nil {
		return nil, nil, err
	}
	address := net.JoinHostPort(ip.String(), strconv.Itoa(port))
	server, err := target.StartReplica(target.ReplicaOptions{Arguments: append([]string{self, "null", "--listen", address}, asked.null...), Log: os.Stderr})
	if err != nil {
		return nil, nil, err
	}
	if err := server.Ready(ctx, func(ctx context.Context) error { return target.Accepts(ctx, address) }, 10*time.Second); err != nil {
		server.End()
		return nil, nil, err
	}
	return asked.dial(asked.scheme + address + "/"), server.End, nil
}
