package target

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// serveGRPC starts a server that answers calls by method, and returns its address.
func serveGRPC(t *testing.T, answer func(method string, request []byte) ([]byte, error)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		reply, err := answer(strings.TrimPrefix(method, service), request)
		if err != nil {
			return err
		}
		return stream.SendMsg(mem.SliceBuffer(reply))
	}))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "grpc://" + l.Addr().String()
}

// message encodes fields, given as pairs of number and value (string, bytes or int).
func message(fields ...any) (b []byte) {
	for i := 0; i < len(fields); i += 2 {
		number := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case string:
			b = appendText(b, number, v)
		case []byte:
			b = appendBytes(b, number, v)
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
		}
	}
	return b
}

// sizes encodes a packed shape.
func sizes(list ...int) (b []byte) {
	for _, v := range list {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return b
}

func floats(list ...float32) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func int64s(list ...int64) (b []byte) {
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// awaitGRPC waits while a server is loading, and returns the model that it describes.
func TestReadyGRPC(t *testing.T) {
	var asked []string
	at := serveGRPC(t, func(method string, request []byte) ([]byte, error) {
		asked = append(asked, method)
		if method != "ServerMetadata" && !slices.Equal(request, message(1, "m")) {
			t.Errorf("%s: %q", method, request)
		}
		switch {
		case len(asked) == 1:
			return nil, status.Error(codes.Unavailable, "loading")
		case len(asked) == 2: // false: the default is left out of the message
			return nil, nil
		}
		return map[string][]byte{
			"ModelReady":     message(1, 1),
			"ServerMetadata": message(1, "s", 2, "9", 3, "x", 3, "binary_tensor_data"),
			"ModelMetadata": message(1, "m", 2, "1", 3, "p", 4, message(1, "x", 2, "FP32", 3, sizes(-1, 2)),
				5, message(1, "y", 2, "FP32", 3, -1, 3, 2), // a list need not be packed
				5, message(1, "n", 2, "INT64", 3, sizes(-1))),
		}[method], nil
	})
	m, err := awaitGRPC(t.Context(), []string{at}, "m")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(model(t), m); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ModelReady", "ModelReady", "ModelReady", "ServerMetadata", "ModelMetadata"}, asked); diff != "" {
		t.Errorf("-want +asked\n%s", diff)
	}
	for address, want := range map[string]string{"http://h:1": "one is grpc://HOST:PORT", "grpc://h": "one is grpc://HOST:PORT", "grpc://u:secret@h:1": "one is grpc://HOST:PORT", "grpc://h:1/x": "one is grpc://HOST:PORT"} {
		if _, err := awaitGRPC(t.Context(), []string{address}, "m"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v", address, err)
		}
	}
}

// rightMessage returns an answer to a batch of 2 with raw contents.
func rightMessage() []byte {
	return message(1, "m", 3, "scalebench", 5, message(1, "y", 2, "FP32", 3, sizes(2, 2)), 5, message(1, "n", 2, "INT64", 3, sizes(2)), 6, floats(0.5, 1.5, 2, -10), 6, int64s(3, 4))
}

// answeringGRPC returns a target whose server gives a list of answers; the last one repeats.
func answeringGRPC(t *testing.T, answers ...func() ([]byte, error)) *GRPC {
	t.Helper()
	var calls atomic.Int64
	at := serveGRPC(t, func(method string, _ []byte) ([]byte, error) {
		if method != "ModelInfer" {
			t.Errorf("asked for %s", method)
		}
		return answers[min(int(calls.Add(1)), len(answers))-1]()
	})
	g, err := newGRPC([]string{at}, model(t), Inputs{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func always(reply []byte) func() ([]byte, error) {
	return func() ([]byte, error) { return reply, nil }
}

func askGRPC(g *GRPC) error {
	s, err := g.Dial()
	if err != nil {
		return err
	}
	return errors.Join(s.Send(soon()), s.Close())
}

// The request follows the protocol, and answers that differ only in irrelevant details are right.
func TestGRPC(t *testing.T) {
	var request []byte
	at := serveGRPC(t, func(_ string, r []byte) ([]byte, error) { request = r; return rightMessage(), nil })
	g, err := newGRPC([]string{at}, model(t), Inputs{Batch: 2, Seed: 3})
	if err == nil {
		err = g.Learn(soon())
	}
	if err != nil || g.Varies {
		t.Fatal(err)
	}
	p, err := model(t).Payload(Inputs{Batch: 2, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	raw := p.Bodies[0][p.JSONLength:] // the same numbers as over HTTP
	if diff := cmp.Diff(message(1, "m", 3, "scalebench", 5, message(1, "x", 2, "FP32", 3, sizes(2, 2)), 7, raw), request); diff != "" || len(raw) != 16 {
		t.Errorf("-want +sent\n%s", diff)
	}
	contents := func(fields ...any) []byte { return message(fields...) }
	var unpacked []byte
	for _, v := range []float32{0.5, 1.5, 2, -10} {
		unpacked = protowire.AppendFixed32(protowire.AppendTag(unpacked, 6, protowire.Fixed32Type), math.Float32bits(v))
	}
	for name, again := range map[string][]byte{
		"the same":    rightMessage(),
		"another id":  slices.Concat(rightMessage(), message(3, "2")),
		"contents":    message(1, "m", 5, message(1, "y", 2, "FP32", 3, sizes(2, 2), 5, contents(6, floats(0.5, 1.5, 2, -10))), 5, message(1, "n", 2, "INT64", 3, sizes(2), 5, contents(3, sizes(3, 4)))),
		"unpacked":    message(1, "m", 5, message(1, "y", 2, "FP32", 3, sizes(2, 2), 5, unpacked), 5, message(1, "n", 2, "INT64", 3, sizes(2), 5, contents(3, 3, 3, 4))),
		"other order": message(5, message(1, "y", 2, "FP32", 3, sizes(2, 2)), 5, message(1, "n", 2, "INT64", 3, sizes(2)), 6, floats(0.501, 1.499, 2.009, -10), 6, int64s(3, 4)),
	} {
		g := answeringGRPC(t, always(rightMessage()), always(rightMessage()), always(again))
		if err := g.Learn(soon()); err != nil {
			t.Fatal(err)
		}
		if err := askGRPC(g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each case is an answer that is wrong in one way.
func TestGRPCWrongAnswers(t *testing.T) {
	y, n := message(1, "y", 2, "FP32", 3, sizes(2, 2)), message(1, "n", 2, "INT64", 3, sizes(2))
	numbers, counts := floats(0.5, 1.5, 2, -10), int64s(3, 4)
	for name, tt := range map[string]struct {
		wrong func() ([]byte, error)
		want  string
		later bool // wrong only compared with a known answer
	}{
		"refused":        {func() ([]byte, error) { return nil, status.Error(codes.InvalidArgument, "unexpected shape") }, "unexpected shape", false},
		"crashed":        {func() ([]byte, error) { return nil, status.Error(codes.Internal, "out of memory") }, "out of memory", false},
		"empty":          {always(nil), "the answer has no outputs", false},
		"rubbish":        {always([]byte("x")), "the answer is not a message of the Open Inference Protocol", false},
		"cut off":        {always(rightMessage()[:40]), "the answer is not a message", false},
		"another model":  {always(message(1, "k", 5, y, 5, n, 6, numbers, 6, counts)), `the answer is of model "k"; want "m"`, false},
		"missing output": {always(message(1, "m", 5, y, 6, numbers)), "the answer has no output n; it has y", false},
		"batch":          {always(message(5, message(1, "y", 2, "FP32", 3, sizes(1, 2)), 5, n, 6, floats(0.5, 1.5), 6, counts)), "output y is FP32 [1 2]; want FP32 [2 2]", false},
		"datatype":       {always(message(5, message(1, "y", 2, "INT32", 3, sizes(2, 2)), 5, n, 6, numbers, 6, counts)), "output y is INT32 [2 2]; want FP32 [2 2]", false},
		"too few":        {always(message(5, y, 5, n, 6, floats(0.5, 1.5, 2), 6, counts)), "output y: its shape [2 2] has 4 elements, but 3 came", false},
		"no numbers":     {always(message(5, y, 5, n)), "output y: its shape [2 2] has 4 elements, but 0 came", false},
		"one is missing": {always(message(5, y, 5, n, 6, numbers)), "2 outputs, but the numbers of 1", false},
		"both":           {always(message(5, slices.Concat(y, message(5, message(6, numbers))), 5, n, 6, numbers, 6, counts)), "output y: it has numbers both in its contents and as raw bytes", false},
		"other contents": {always(message(5, slices.Concat(y, message(5, message(7, numbers))), 5, n)), `output y: its contents are of another datatype than "FP32"`, false},
		"not a number":   {always(message(5, y, 5, n, 6, floats(0.5, 1.5, float32(math.Inf(1)), -10), 6, counts)), "output y: element 2 is +Inf", false},
		"a number":       {always(message(5, y, 5, n, 6, floats(0.5, 1.6, 2, -10), 6, counts)), "element 1 of output y is 1.60", true},
		"an integer":     {always(message(5, y, 5, n, 6, numbers, 6, int64s(3, 5))), "element 1 of output n is", true},
	} {
		t.Run(name, func(t *testing.T) {
			later := answeringGRPC(t, always(rightMessage()), always(rightMessage()), tt.wrong)
			if err := later.Learn(soon()); err != nil {
				t.Fatal(err)
			}
			if err := askGRPC(later); err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("later: error %v, want %q", err, tt.want)
			}
			if tt.later {
				return
			}
			if err := answeringGRPC(t, tt.wrong).Learn(soon()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("at first: error %v, want %q", err, tt.want)
			}
		})
	}
}

// A late answer is a timeout, a lost connection is not reopened, and errors say whether nothing listens or the
// listener is not a gRPC service.
func TestGRPCFailures(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	g := answeringGRPC(t, func() ([]byte, error) { <-hang; return nil, nil })
	s, err := g.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(time.Now().Add(50 * time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v is not late", err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return stream.SendMsg(mem.SliceBuffer(rightMessage()))
	}))
	defer server.Stop()
	calls := &accepted{Listener: l, connections: make(chan net.Conn, 2)}
	go func() { _ = server.Serve(calls) }()
	g, err = newGRPC([]string{"grpc://" + l.Addr().String()}, model(t), Inputs{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err = g.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(soon()); err != nil {
		t.Error(err)
	}
	_ = (<-calls.connections).Close()
	if err := s.Send(soon()); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a lost connection: %v", err)
	}
	if len(calls.connections) > 0 {
		t.Error("it was made again")
	}
	server.Stop()
	if _, err := g.Dial(); err == nil || !strings.Contains(err.Error(), l.Addr().String()+" does not answer: ") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

// accepted is a listener that passes on its connections.
type accepted struct {
	net.Listener
	connections chan net.Conn
}

func (l *accepted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.connections <- c
	}
	return c, err
}

// All connections together query the replicas in turn.
func TestGRPCReplicas(t *testing.T) {
	var calls [3]atomic.Int64
	var servers []string
	for i := range calls {
		servers = append(servers, serveGRPC(t, func(string, []byte) ([]byte, error) { calls[i].Add(1); return rightMessage(), nil }))
	}
	g, err := newGRPC(servers, model(t), Inputs{Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	asksInTurns(t, g.Dial, &calls)
}

// For each datatype, typed contents decode to the same bytes as raw contents.
func TestContents(t *testing.T) {
	negative := uint64(0xffffffffffffff85) // −123
	for datatype, tt := range map[string]struct{ message, want []byte }{
		"BOOL":   {message(1, sizes(1, 0)), []byte{1, 0}},
		"INT8":   {message(2, protowire.AppendVarint(nil, negative)), []byte{0x85}},
		"INT32":  {message(2, protowire.AppendVarint(nil, negative)), []byte{0x85, 0xff, 0xff, 0xff}},
		"INT64":  {message(3, -123), []byte{0x85, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		"UINT16": {message(4, sizes(0x1234)), []byte{0x34, 0x12}},
		"UINT64": {message(5, sizes(1)), []byte{1, 0, 0, 0, 0, 0, 0, 0}},
		"FP32":   {message(6, floats(1.5)), floats(1.5)},
		"FP64":   {message(7, int64s(int64(math.Float64bits(2.5)))), int64s(int64(math.Float64bits(2.5)))},
		"BYTES":  {message(8, "ab", 8, ""), []byte{2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0}},
	} {
		if got, err := fromContents(datatype, tt.message); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: % x, %v; want % x", datatype, got, err, tt.want)
		}
	}
	if _, err := fromContents("FP16", message(6, floats(1))); err == nil || !strings.Contains(err.Error(), "comes as raw bytes only") {
		t.Errorf("FP16: %v", err)
	}
}

// Any answer parses or returns an error, and never panics.
func FuzzGRPCAnswer(f *testing.F) {
	f.Add(rightMessage())
	f.Add(message(5, message(1, "s", 2, "BYTES", 3, sizes(1), 5, message(8, "ab"))))
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = readServer(body)
		_, _ = readModel(body)
		_, _ = readReady(body)
		a, err := readInfer(body, newShare())
		if err != nil {
			return
		}
		for _, o := range a.outputs {
			if n, ok := oip.Elements(o.Shape); !ok || n != len(o.numbers)+len(o.exact) {
				t.Errorf("%+v", o)
			}
		}
	})
}

// The client is calibrated with the same requests, against a server that answers at once with as many bytes;
// their content does not matter.
func TestNullGRPC(t *testing.T) {
	d := &doubler{}
	at := serveGRPC(t, func(_ string, request []byte) (reply []byte, err error) {
		d.Lock()
		defer d.Unlock()
		d.begun = append(d.begun, float32(len(request)))
		return rightMessage(), nil
	})
	g, err := newGRPC([]string{at, at}, model(t), Inputs{Batch: 2000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if n := g.Warm(soon()); n != len(rightMessage()) || len(d.begun) != 2 || d.begun[1] < 16000 {
		t.Errorf("the answer has %d bytes, want %d; requests of %v", n, len(rightMessage()), d.begun)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NullGRPC(ctx, l, 12345) }()
	alone := g.Like("grpc://" + l.Addr().String() + "/")
	s, err := alone.Dial()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Send(soon()); err != nil {
			t.Error(err)
		}
	}
	if n := len(s.(*grpcSender).answer); n != 12345 {
		t.Errorf("%d bytes came", n)
	}
	_ = s.Close()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
