//go:build serving

package target

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/oip"
	"github.com/scalebench/scalebench/launcher/world"
)

// built runs a script of launcher/framework/locks and returns the last line it prints: the path of an
// interpreter or model.
func built(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	cmd := exec.Command("../../framework/locks/"+script, arguments...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// freePorts returns unused ports of this host.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}

// startServer starts a program in the environment of a lock. Cleanup ends its whole process group.
func startServer(t *testing.T, family string, arguments ...string) {
	t.Helper()
	python := built(t, "environment.sh", family)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(python, append([]string{"-B"}, arguments...)...)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Triton outlives its launcher
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s said:\n%s", family, text)
		}
		_ = log.Close()
	})
}

// Model servers give the same answers as onnxruntime, over HTTP with JSON and binary tensors, and over gRPC.
func TestServingONNX(t *testing.T) {
	model := built(t, "onnx-model.sh")
	var http, rpc []string
	for _, name := range []string{"triton", "mlserver", "kserve"} {
		ports := freePorts(t, 2)
		startServer(t, name, "../../framework/programs/serve_"+name+".py", "--model", model, "--batch", "5",
			"--listen", fmt.Sprintf("127.0.0.1:%d", ports[0]), "--grpc-port", strconv.Itoa(ports[1]))
		http, rpc = append(http, fmt.Sprintf("http://127.0.0.1:%d", ports[0])), append(rpc, fmt.Sprintf("grpc://127.0.0.1:%d", ports[1]))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	in := Inputs{Batch: 5, Seed: 7, Dims: map[string][]int{"x": {3, 48, 192}}}
	var want *output
	var set oip.SampleSet // the same five images and Python's answers
	hold := func(how string, known *Known) {
		t.Helper()
		if known.Varies || len(known.first[0].Load().outputs) != 1 {
			t.Fatalf("%s: varies %v, outputs %+v", how, known.Varies, known.first[0].Load().outputs)
		}
		if err := compare(known.first[0].Load().outputs, []output{*want}, 0); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	for i := range http {
		m, err := awaitV2(ctx, http[i:i+1], "model", nil)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			inputs, _, err := m.draw(in)
			if err != nil {
				t.Fatal(err)
			}
			alone := exec.Command(built(t, "environment.sh", "mlserver"), "testdata/onnx_alone.py", model, "5", "3", "48", "192")
			alone.Stdin, alone.Stderr = bytes.NewReader(inputs[0].raw), os.Stderr
			raw, err := alone.Output()
			if err != nil {
				t.Fatal(err)
			}
			o, err := newOutput(oip.Tensor{Name: m.Outputs[0].Name, Datatype: "FP32", Shape: []int{5, 2}}, raw, newShare())
			if err != nil {
				t.Fatal(err)
			}
			want = &o
			set.Inputs = map[string]oip.SampleFile{"x": {File: "x.npy", Datatype: "FP32", Shape: []int{5, 3, 48, 192}, Bytes: inputs[0].raw}}
			set.Outputs = map[string]oip.SampleFile{o.Name: {File: "y.npy", Datatype: "FP32", Shape: []int{5, 2}, Bytes: raw}}
		}
		apart := Inputs{Batch: 1, Samples: &set}
		for _, in.JSON = range []bool{false, true} {
			p, err := m.Payload(in)
			if err != nil {
				t.Fatal(err)
			}
			target := newV2(http[i:i+1], m, p)
			if err := target.Learn(soon()); err != nil {
				t.Fatal(err)
			}
			hold(fmt.Sprintf("%s, JSON %v", m.Server.Name, in.JSON), &target.Known)
			apart.JSON = in.JSON
			if p, err = m.Payload(apart); err != nil {
				t.Fatal(err)
			}
			inTurn(t, newV2(http[i:i+1], m, p).Dial)
		}
		in.JSON = false
		over, err := awaitGRPC(ctx, rpc[i:i+1], "model")
		if err != nil {
			t.Fatal(err)
		}
		target, err := newGRPC(rpc[i:i+1], over, in)
		if err == nil {
			err = target.Learn(soon())
		}
		if err != nil {
			t.Fatal(err)
		}
		hold(m.Server.Name+", gRPC", &target.Known)
		if target, err = newGRPC(rpc[i:i+1], over, apart); err != nil {
			t.Fatal(err)
		}
		inTurn(t, target.Dial)
	}
	// Answers to other images are wrong.
	wrong := set.Outputs[want.Name]
	wrong.Bytes = slices.Concat(wrong.Slice(4, 1), wrong.Slice(0, 4))
	m, err := awaitV2(ctx, http[:1], "model", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Payload(Inputs{Batch: 1, Tolerance: 1e-6, Samples: &oip.SampleSet{Inputs: set.Inputs, Outputs: map[string]oip.SampleFile{want.Name: wrong}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newV2(http[:1], m, p).Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(soon()); err == nil || !strings.Contains(err.Error(), "in y.npy it is") {
		t.Errorf("the answer to another image: %v", err)
	}
}

// inTurn sends each of five samples with known answers twice.
func inTurn(t *testing.T, dial func() (loadtest.Sender, error)) {
	t.Helper()
	s, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 10 {
		if err := s.Send(soon()); err != nil {
			t.Errorf("sample %d: %v", i%5, err)
		}
	}
}

// Real servers are queried over HTTP, with binary tensors if they accept them and with JSON, and over gRPC.
// Their answers match what the model computes.
func TestServing(t *testing.T) {
	t.Run("triton", func(t *testing.T) {
		http, rpc, m := askServer(t, "triton", true)
		// It accepts batches up to 16.
		in := Inputs{Batch: 17}
		p, err := m.Payload(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := newV2(http, m, p).Learn(soon()); err == nil || !strings.Contains(err.Error(), "status 400") {
			t.Errorf("a batch of 17 over HTTP: %v", err)
		}
		target, err := newGRPC(rpc, m, in)
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Learn(soon()); err == nil || !strings.Contains(err.Error(), "InvalidArgument") {
			t.Errorf("a batch of 17 over gRPC: %v", err)
		}
	})
	t.Run("mlserver", func(t *testing.T) { askServer(t, "mlserver", false) })
}

// askServer starts a server and queries it in each way that it supports.
func askServer(t *testing.T, name string, binary bool) (http, rpc []string, m *Model) {
	t.Helper()
	ports := freePorts(t, 3)
	startServer(t, name, filepath.Join("testdata", name+"_server.py"), strconv.Itoa(ports[0]), strconv.Itoa(ports[1]), strconv.Itoa(ports[2]))
	http, rpc = []string{fmt.Sprintf("http://127.0.0.1:%d", ports[0])}, []string{fmt.Sprintf("grpc://127.0.0.1:%d", ports[1])}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := awaitV2(ctx, http, "double", nil)
	if err != nil {
		t.Fatal(err)
	}
	over, err := awaitGRPC(ctx, rpc, "double")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Model{m, over} {
		if m.Server.Name != name || m.Binary() != binary || fmt.Sprint(m.Inputs, m.Outputs) != "[{x FP32 [-1 3]}] [{y FP32 [-1 3]} {n INT64 [-1 1]}]" {
			t.Errorf("its metadata: %+v", m)
		}
	}
	in := Inputs{Batch: 4, Seed: 2}
	inputs, _, err := m.draw(in)
	if err != nil {
		t.Fatal(err)
	}
	x, err := newOutput(oip.Tensor{Name: "x", Datatype: "FP32", Shape: []int{4, 3}}, inputs[0].raw, newShare())
	if err != nil {
		t.Fatal(err)
	}
	// check sends ten more requests and checks the known answer.
	check := func(name string, known *Known, dial func() error) {
		t.Helper()
		for range 10 {
			if err := dial(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if known.Varies || len(known.first[0].Load().outputs) != 2 {
			t.Fatalf("%s: varies %v, outputs %+v", name, known.Varies, known.first[0].Load().outputs)
		}
		for _, o := range known.first[0].Load().outputs {
			if o.Name != "y" {
				continue
			}
			for i, v := range o.numbers {
				if v != 2*x.numbers[i] {
					t.Errorf("%s: y[%d] is %g, x is %g", name, i, v, x.numbers[i])
				}
			}
		}
	}
	for _, in.JSON = range []bool{false, true} {
		p, err := m.Payload(in)
		if err != nil {
			t.Fatal(err)
		}
		target := newV2(http, m, p)
		if err := target.Learn(soon()); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("HTTP, JSON %v", in.JSON), &target.Known, func() error { return ask(target) })
	}
	in.JSON = false
	target, err := newGRPC(rpc, over, in)
	if err == nil {
		err = target.Learn(soon())
	}
	if err != nil {
		t.Fatal(err)
	}
	check("gRPC", &target.Known, func() error { return askGRPC(target) })
	return http, rpc, m
}
