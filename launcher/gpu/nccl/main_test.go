package nccl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
	"github.com/scalebench/scalebench/launcher/world"
)

// rankVariable makes this test binary one rank of a scenario.
const rankVariable = "SCALEBENCH_TEST_NCCL_SCENARIO"

func TestMain(m *testing.M) {
	if name := os.Getenv(rankVariable); name != "" {
		os.Exit(beRank(name))
	}
	// nccl.Open and cuda.Open load the fake here.
	os.Exit(gputest.During(nil, func(path string) int {
		os.Setenv(nccl.Variable, path)
		os.Setenv(cuda.Variable, path)
		return m.Run()
	}))
}

// open loads the fakes of NCCL and of the driver.
func open(t testing.TB) (*nccl.Library, *cuda.Driver) {
	t.Helper()
	l, err := nccl.Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	d, err := cuda.Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return l, d
}

// A verdict is the result of one rank.
type verdict struct {
	Checks  int // results compared
	Wrong   []string
	Error   string
	Failure *nccl.Failure // the failure without its Err
	Timeout bool          // the error is ErrTimeout
	Seconds float64       // time until the error
}

// ranks runs a scenario with size processes; environment adds variables for single ranks. The processes must
// end within five minutes.
func ranks(t *testing.T, scenario string, size int, environment map[int][]string) []verdict {
	t.Helper()
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	list, errs := make([]verdict, size), make([]error, size)
	var wait, others sync.WaitGroup                      // the ranks other than 1
	lost := scenario == "killed" || scenario == "frozen" // rank 1 does not end by itself, or fails
	first, end := context.WithCancel(ctx)
	defer end()
	for r := range size {
		w := world.World{Rank: r, Size: size, LocalRank: r, LocalSize: size, Nodes: 1, Address: "127.0.0.1", Port: port}
		run, among := ctx, &others
		if r == 1 && lost {
			run, among = first, &wait
		}
		cmd := exec.CommandContext(run, os.Args[0])
		cmd.Env = append(append(os.Environ(), w.Environ()...), rankVariable+"="+scenario, "CUDA_DOUBLE_GPUS=16")
		cmd.Env = append(cmd.Env, environment[r]...)
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		among.Go(func() {
			if err := cmd.Run(); err != nil {
				errs[r] = fmt.Errorf("%w: %s", err, &complaint)
				return
			}
			errs[r] = json.Unmarshal(out.Bytes(), &list[r])
		})
	}
	others.Wait()
	end()
	wait.Wait()
	for r, err := range errs {
		if err != nil && !(lost && r == 1) {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return list
}

// beRank runs one rank of a scenario.
func beRank(scenario string) int {
	v := verdict{}
	begin := time.Now()
	err := runRank(scenario, &v, &begin)
	if err != nil {
		v.Error, v.Seconds, v.Timeout = err.Error(), time.Since(begin).Seconds(), errors.Is(err, nccl.ErrTimeout)
		if errors.As(err, &v.Failure) {
			v.Failure.Err = nil
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A seat is a rank with its device, stream and communicator.
type seat struct {
	device *cuda.Device
	stream cuda.Stream
	comm   *gpurank.Comm
}

func sit(ctx context.Context, timeout time.Duration) (*seat, error) {
	w, err := world.FromEnviron(os.Getenv)
	if err != nil {
		return nil, err
	}
	l, err := nccl.Open(os.Getenv)
	if err != nil {
		return nil, err
	}
	d, err := cuda.Open(os.Getenv)
	if err != nil {
		return nil, err
	}
	s := &seat{}
	n, err := d.Devices()
	if err != nil {
		return nil, err
	}
	if s.device, err = d.Bind(w.LocalRank % n); err != nil {
		return nil, err
	}
	if s.stream, err = s.device.NewStream(); err != nil {
		return nil, err
	}
	g, err := collective.Join(ctx, w, "nonce", collective.Options{Transport: collective.TCP, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	s.comm, err = gpurank.Join(ctx, l, g, nccl.Options{Stream: uintptr(s.stream), Timeout: timeout,
		Done: func() (bool, error) { return s.device.Done(s.stream) }})
	return s, err
}

func runRank(scenario string, v *verdict, begin *time.Time) error {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	timeout := time.Minute
	if scenario == "hang" || scenario == "frozen" {
		timeout = 5 * time.Second
	}
	s, err := sit(ctx, timeout)
	if err != nil {
		return err
	}
	*begin = time.Now()
	switch scenario {
	case "matrix":
		found, err := gpurank.RunProof(ctx, gpurank.ProofRank{Device: s.device, Stream: s.stream, Comm: s.comm.Comm}, 0)
		v.Checks = found.Checks
		for _, d := range found.Wrong {
			v.Wrong = append(v.Wrong, d.String())
		}
		return errors.Join(err, s.comm.Close(ctx))
	case "group":
		return errors.Join(s.group(ctx, v), s.comm.Close(ctx))
	}
	// The others go through five all-reduces of 1000 floats.
	buffer, err := s.device.Alloc(4000)
	if err != nil {
		return err
	}
	for i := 1; i <= 5; i++ {
		if i == 3 && s.comm.Rank() == 1 {
			switch scenario {
			case "killed":
				os.Exit(3)
			case "frozen":
				if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
					return err
				}
			case "stopped":
				stop(errors.New("signal terminated"))
			case "gives up":
				s.comm.Abort(errors.New("the data is gone"))
			case "mistaken":
				return s.comm.Enqueue(ctx, nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float8E4, Count: 1, Send: uintptr(buffer), Recv: uintptr(buffer)})
			}
		}
		if err := s.comm.Enqueue(ctx, nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float32, Count: 1000, Send: uintptr(buffer), Recv: uintptr(buffer)}); err != nil {
			return err
		}
		if i == 3 && s.comm.Rank() == 0 && scenario == "stopped while it waits" {
			time.AfterFunc(200*time.Millisecond, func() { stop(errors.New("signal terminated")) })
		}
		if err := s.comm.Wait(ctx); err != nil {
			if again := s.comm.Wait(ctx); again != err {
				return fmt.Errorf("a second Wait after a failure: %v", again)
			}
			return err
		}
		v.Checks++
	}
	return s.comm.Close(ctx)
}

// contains reports a text that lacks one of the words.
func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}
