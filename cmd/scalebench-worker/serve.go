//go:build !training

package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

func init() {
	programs = append(programs, &cli.Command{Name: "serve", Usage: "one rank of a service, as run starts it: its load, or a replica", Action: serveReplicas})
}

// serveReplicas runs one rank of a service. Rank 0 generates the load; the last ranks, one per worker, run the
// replicas; ranks in between keep the load generator's node free.
func serveReplicas(c *cli.Context) error {
	return runMember(c, "serve", overTCP, func(ctx context.Context, m *member) (err error) {
		r := &serving{member: m, asked: map[int]exchanged{}}
		if r.framework, err = framework.Find(m.point.Framework); err != nil {
			return err
		}
		versions := map[string]string{}
		maps.Copy(versions, r.framework.ServerVersions(ctx, os.Getenv(framework.PythonVariable)))
		if v := r.onnxruntimeVersion(ctx); v != "" {
			versions["onnxruntime"] = v
		}
		if err := r.environment(r.cores(), versions); err != nil {
			return err
		}
		return r.run(ctx)
	})
}

// serving is one rank of a service.
type serving struct {
	*member
	framework framework.Framework
	server    *target.Replica   // the server that a replica's rank started; nil on the load generator
	asked     map[int]exchanged // how the load generator queries the service, by batch
	samples   *oip.SampleSet    // content of workload.inputs; nil: random numbers are sent
}

// loads reports whether this rank is the load generator.
func (r *serving) loads() bool { return r.world.Rank == 0 }

// replica returns which replica this rank runs, 0-based; -1 if none.
func (r *serving) replica() int {
	if !r.point.Workload.Serve.Starts() {
		return -1
	}
	return max(r.world.Rank-(r.world.Size-r.point.Workers), -1)
}

// warn records a warning with the run, and prints it to the log.
func (r *serving) warn(text string) error {
	fmt.Fprintln(r.log, text)
	return r.note(text)
}

// latencies creates the log of a load's latencies.
func (r *serving) latencies(load string) (io.WriteCloser, error) {
	return create(r.program.run.Latencies(load, r.world.Restart))
}

// run starts the replicas, loads them, and stops them.
func (r *serving) run(ctx context.Context) (err error) {
	starts := r.point.Workload.Serve.Starts()
	if starts {
		if r.hasModel() {
			if err := r.phase("measuring the model alone"); err != nil {
				return err
			}
			if err := r.together(ctx, r.alone); err != nil {
				return err
			}
		}
		if err := r.phase("starting the replicas"); err != nil {
			return err
		}
	}
	begun := time.Now()
	address := ""
	defer func() {
		if r.server != nil {
			r.server.End()
		}
	}()
	err = r.together(ctx, func(ctx context.Context) (err error) {
		if r.replica() >= 0 {
			address, err = r.start(ctx)
		}
		return err
	})
	if err != nil {
		return err
	}
	startup := time.Since(begun)
	addresses, err := exchange(ctx, r.group, address)
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // "" if unknown
	hosts, err := exchange(ctx, r.group, host[:min(len(host), room)])
	if err != nil {
		return err
	}
	err = r.together(ctx, func(ctx context.Context) error {
		if r.loads() {
			return r.load(ctx, addresses, hosts, startup)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !starts {
		return nil
	}
	return r.phase("drained; ending the replicas")
}

// tick is the interval at which ranks tell each other that they are alive.
const tick = time.Second

// together does work on every rank. It returns when all have finished, or with the first
// error of any. It also watches each replica.
func (r *serving) together(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	finished := false
	end := func(err error) error {
		stop(err)
		if !finished {
			<-done
		}
		return err
	}
	for {
		var ended <-chan struct{}
		if finished && r.server != nil { // while the work runs, it watches the server itself
			ended = r.server.Ended()
		}
		if !finished {
			select {
			case err := <-done:
				if finished = true; err != nil {
					return r.cause(ctx, err)
				}
			case <-time.After(tick):
			}
		} else {
			select {
			case <-ended:
				return fmt.Errorf("replica %d: %w", r.replica(), r.server.Why())
			case <-time.After(tick / 20):
			case <-ctx.Done():
			}
		}
		state := []int64{0}
		if finished {
			state[0] = 1
		}
		if err := r.group.AllReduceInt64(ctx, state); err != nil {
			return end(err)
		}
		if state[0] == int64(r.world.Size) {
			return nil
		}
	}
}

// cause returns the underlying cause of an error of this rank. If a replica ends, the load
// generator first sees broken connections, and the reason arrives a moment later; cause waits for
// it.
func (r *serving) cause(ctx context.Context, err error) error {
	if !r.loads() {
		return err
	}
	for range 4 {
		time.Sleep(tick / 4)
		if told := r.group.AllReduceInt64(ctx, []int64{0}); told != nil {
			return told
		}
	}
	return err
}

// attempts is the number of times that a replica is started if its port was taken meanwhile.
const attempts = 3

// start starts this rank's replica and waits until it is ready.
func (r *serving) start(ctx context.Context) (address string, err error) {
	ip := net.IPv4(127, 0, 0, 1)
	if r.world.Nodes > 1 {
		if ip, err = world.RoutableAddress(r.world.Interface); err != nil {
			return "", err
		}
	}
	w := r.point.Workload.Serve
	for try := 1; ; try++ {
		ports, err := freePorts(ip)
		if err != nil {
			return "", err
		}
		arguments, err := r.serverProgram(ip, ports)
		if err != nil {
			return "", err
		}
		fmt.Printf("# replica %d on port %d\n", r.replica(), ports.Of(w.Target))
		if r.server, err = target.StartReplica(target.ReplicaOptions{Arguments: arguments, Environ: r.environ(), Log: os.Stdout}); err != nil {
			return "", err
		}
		address = net.JoinHostPort(ip.String(), strconv.Itoa(ports.Of(w.Target)))
		if err = r.awaitReady(ctx, address); err == nil {
			return address, nil
		}
		taken := false
		select {
		case <-r.server.Ended():
			taken = slices.ContainsFunc([]int{ports.HTTP, ports.GRPC, ports.Metrics}, func(port int) bool { return busy(ip, port) })
		default:
		}
		if !taken || try == attempts {
			return "", fmt.Errorf("replica %d: %w", r.replica(), err)
		}
		r.server.End()
	}
}

// awaitReady waits until this rank's replica is ready, and has its model.
func (r *serving) awaitReady(ctx context.Context, address string) error {
	w, begun := r.point.Workload.Serve, time.Now()
	private, err := privateHeaders(w)
	if err != nil {
		return err
	}
	if r.framework.Language && w.Ready == study.ReadyPath {
		w.Ready = framework.LanguageReady
	}
	err = r.server.Ready(ctx, isReady(w, address, private), time.Duration(w.Startup))
	if err != nil || !r.framework.Server {
		return err
	}
	// Some servers report that they are ready before they have loaded their model.
	has := modelIsReady(w, address, private)
	if r.framework.Language {
		has = lists("http://"+address+framework.LanguageModels, private)
	}
	return r.server.Ready(ctx, has, time.Duration(w.Startup)-time.Since(begun))
}

// isReady asks a replica whether it is ready, over the protocol of the load.
func isReady(w study.Serve, address string, headers map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		switch {
		case w.Ready == "":
			return target.Accepts(ctx, address)
		case w.Target == study.GRPC:
			return target.ServerReady(ctx, "grpc://"+address)
		}
		body, err := target.Get(ctx, "http://"+address+w.Ready, headers)
		if err == nil && target.IsListing(w.Ready) {
			err = target.Lists(body, "")
		}
		return err
	}
}

// modelIsReady asks a replica whether its model is ready.
func modelIsReady(w study.Serve, address string, headers map[string]string) func(context.Context) error {
	scheme := "http://"
	if w.Target == study.GRPC {
		scheme = "grpc://"
	}
	return func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		_, err := target.Find(ctx, []string{scheme + address}, framework.ServedModel, headers)
		return err
	}
}

// lists asks a server of language models whether it lists its model.
func lists(url string, headers map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		body, err := target.Get(ctx, url, headers)
		if err != nil {
			return err
		}
		return target.Lists(body, framework.ServedModel)
	}
}

// freePorts returns the ports for a replica.
func freePorts(ip net.IP) (framework.Ports, error) {
	var free []int
	for len(free) < 3 {
		port, err := world.FreePort(ip)
		if err != nil {
			return framework.Ports{}, err
		}
		if !slices.Contains(free, port) {
			free = append(free, port)
		}
	}
	return framework.Ports{HTTP: free[0], GRPC: free[1], Metrics: free[2]}, nil
}

// busy reports whether a port is in use.
func busy(ip net.IP, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(port)))
	if err == nil {
		_ = l.Close()
	}
	return err != nil
}

// serverProgram returns the command line of a replica.
func (r *serving) serverProgram(ip net.IP, ports framework.Ports) ([]string, error) {
	run := rundir.Folder(os.Getenv(framework.RunVariable))
	f := r.framework
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if f.UserProgram || f.Server {
		return f.Command(framework.Rank{Point: r.point, Run: run, World: r.world, Worker: self, Python: os.Getenv(framework.PythonVariable), Listen: ip.String(), Ports: ports}), nil
	}
	return []string{self, "model-server", "--model", r.point.Workload.Serve.Model, "--name", framework.ServedModel, "--listen", net.JoinHostPort(ip.String(), strconv.Itoa(ports.HTTP)),
		"--threads", strconv.Itoa(r.point.Resources.CPUsPerWorker)}, nil
}

// environ returns the variables of a replica in addition to this process's.
func (r *serving) environ() []string {
	list := r.devices()
	if token := r.token(); token != "" {
		list = append(list, tokenVariable+"="+token)
	}
	return list
}

// token returns the token that the load generator sends to the native server, so that the server answers no
// other caller; "" for other servers, which do not support it. It is derived from the run's nonce, which is
// never sent.
func (r *serving) token() string {
	if f := r.framework; f.UserProgram || f.Server || !r.point.Workload.Serve.Starts() {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(r.nonce))
	mac.Write([]byte("scalebench serve"))
	return hex.EncodeToString(mac.Sum(nil))
}

// devices assigns each replica of a node a separate GPU.
func (r *serving) devices() []string {
	if r.point.Resources.Device != "gpu" {
		return nil
	}
	const variable = "CUDA_VISIBLE_DEVICES"
	local := r.replica() % r.point.WorkersPerNode
	if list := strings.Split(os.Getenv(variable), ","); len(list) > local && list[0] != "" {
		return []string{variable + "=" + list[local]}
	}
	return []string{variable + "=" + strconv.Itoa(local)}
}

// room is the number of bytes that each rank contributes to an exchange.
const room = 64

// exchange sends this rank's text to all ranks, and returns the texts of all ranks, by rank.
func exchange(ctx context.Context, g *collective.Group, text string) ([]string, error) {
	if len(text) > room {
		return nil, fmt.Errorf("%q is longer than %d bytes", text, room)
	}
	all := make([]int64, room*g.Size())
	for i := range len(text) {
		all[g.Rank()*room+i] = int64(text[i])
	}
	if err := g.AllReduceInt64(ctx, all); err != nil {
		return nil, err
	}
	list := make([]string, g.Size())
	for rank := range list {
		var bytes []byte
		for _, b := range all[rank*room : (rank+1)*room] {
			if b != 0 {
				bytes = append(bytes, byte(b))
			}
		}
		list[rank] = string(bytes)
	}
	return list, nil
}
