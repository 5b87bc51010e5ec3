package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// GRPC is a model that is queried by the Open Inference Protocol v2 over gRPC, with TLS for grpcs:// URLs.
// Requests go to the replicas in turn, as with HTTP. Learn obtains the answer that later ones are compared
// with.
type GRPC struct {
	Known
	servers []string
	bodies  []mem.SliceBuffer // one per request
	turn    atomic.Uint64
}

// service is the prefix of the protocol's methods.
const service = "/inference.GRPCInferenceService/"

// newGRPC prepares requests with the given inputs to servers (grpc://HOST:PORT).
func newGRPC(servers []string, m *Model, in Inputs) (*GRPC, error) {
	requests, known, err := m.requests(in)
	if err != nil {
		return nil, err
	}
	g := &GRPC{Known: known, servers: servers}
	for _, inputs := range requests {
		g.bodies = append(g.bodies, inferRequest(m.Name, inputs))
	}
	return g, nil
}

// awaitGRPC waits until gRPC servers report that the model is ready, and returns its description.
func awaitGRPC(ctx context.Context, servers []string, model string) (*Model, error) {
	if len(servers) == 0 {
		return nil, errors.New("no URL")
	}
	for _, server := range servers {
		if _, err := addressOf(server); err != nil {
			return nil, err
		}
	}
	err := await(ctx, servers, model, func(ctx context.Context, server, model string) error {
		return readyGRPC(ctx, server, "ModelReady", nameRequest(model))
	})
	if err != nil {
		return nil, err
	}
	m := &Model{}
	text, err := askOnce(ctx, servers[0], "ServerMetadata", nil)
	if err == nil {
		m.Server, err = readServer(text)
	}
	if err == nil {
		text, err = askOnce(ctx, servers[0], "ModelMetadata", nameRequest(model))
	}
	if err == nil {
		m.Model, err = readModel(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", servers[0], err)
	}
	return m, nil
}

// ServerReady returns nil if the server (grpc://HOST:PORT) reports that it is ready.
func ServerReady(ctx context.Context, server string) error {
	return readyGRPC(ctx, server, "ServerReady", nil)
}

func readyGRPC(ctx context.Context, server, method string, request []byte) error {
	answer, err := askOnce(ctx, server, method, request)
	if err != nil {
		return err
	}
	if ready, err := readReady(answer); err != nil || !ready {
		return errors.Join(errNotReady, err)
	}
	return nil
}

// addressOf returns the HOST:PORT of grpc://HOST:PORT.
func addressOf(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if !overGRPC(server) || u.Port() == "" || u.User != nil || u.Path != "" && u.Path != "/" {
		return "", fmt.Errorf("%q is not the address of a gRPC service; one is grpc://HOST:PORT, or grpcs://HOST:PORT with TLS", u.Redacted())
	}
	return u.Host, nil
}

// bytesCodec passes messages on as raw bytes.
type bytesCodec struct{}

var _ encoding.CodecV2 = bytesCodec{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{v.(mem.SliceBuffer)}, nil
}

// Unmarshal replaces *v with the message.
func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	into := v.(*[]byte)
	if n := data.Len(); cap(*into) < n {
		*into = make([]byte, n)
	} else {
		*into = (*into)[:n]
	}
	data.CopyTo(*into)
	return nil
}

// telling records why a TLS handshake failed, which gRPC does not report.
type telling struct {
	credentials.TransportCredentials
	failure *atomic.Value
}

func (t telling) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := t.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		t.failure.Store(err)
	}
	return c, info, err
}

func (t telling) Clone() credentials.TransportCredentials {
	return telling{t.TransportCredentials.Clone(), t.failure}
}

// dialGRPC makes one connection. It does not reconnect if the connection is lost: no latency may include the
// time for that.
func dialGRPC(ctx context.Context, server string) (*grpc.ClientConn, error) {
	address, err := addressOf(server)
	if err != nil {
		return nil, err
	}
	var dialled atomic.Bool
	var failure atomic.Value
	secure := insecure.NewCredentials()
	if strings.HasPrefix(server, "grpcs:") {
		secure = telling{credentials.NewTLS(trusting("")), &failure}
	}
	c, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(secure), grpc.WithNoProxy(), grpc.WithDisableRetry(), grpc.WithUserAgent("scalebench"),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(mostAnswer)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if dialled.Swap(true) {
				return nil, errors.New("the connection was lost")
			}
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				failure.Store(err)
				return nil, err
			}
			return newMetered(connection, answers), nil
		}))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c.Connect()
	for state := c.GetState(); state != connectivity.Ready; state = c.GetState() {
		if state == connectivity.TransientFailure || !c.WaitForStateChange(ctx, state) {
			err, ok := failure.Load().(error)
			if !ok {
				err = errors.Join(errors.New("no gRPC service there"), ctx.Err())
			}
			_ = c.Close()
			return nil, fmt.Errorf("%s does not answer: %w", address, err)
		}
	}
	return c, nil
}

// askOnce makes one call over a new connection.
func askOnce(ctx context.Context, server, method string, request []byte) ([]byte, error) {
	c, err := dialGRPC(ctx, server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var answer []byte
	if err := c.Invoke(ctx, service+method, mem.SliceBuffer(request), &answer, grpc.MaxCallRecvMsgSize(mostMetadata)); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return answer, nil
}

// Dial connects to every replica.
func (g *GRPC) Dial() (loadtest.Sender, error) {
	s := &grpcSender{of: g, requests: len(g.bodies)}
	for _, server := range g.servers {
		c, err := dialGRPC(context.Background(), server)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.connections = append(s.connections, c)
	}
	return s, nil
}

// Warm sends one request to each replica and returns the size of the last answer in bytes. It ignores errors:
// the requests that follow report them.
func (g *GRPC) Warm(deadline time.Time) (answer int) {
	for _, at := range g.servers {
		connection, err := g.Like(at).Dial()
		if err != nil {
			continue
		}
		s := connection.(*grpcSender)
		if s.Send(deadline) == nil {
			answer = len(s.answer)
		}
		_ = s.Close() // unusable: the error is not of interest
	}
	return answer
}

// Like returns the same requests to other servers, without checking their answers.
func (g *GRPC) Like(servers ...string) *GRPC { return &GRPC{servers: servers, bodies: g.bodies} }

// Learn queries every replica twice and remembers the first answer; see Known.
func (g *GRPC) Learn(deadline time.Time) error {
	return g.learn(g.servers, deadline, func(at string) (loadtest.Sender, error) {
		c, err := dialGRPC(context.Background(), at)
		if err != nil {
			return nil, err
		}
		return &grpcSender{of: g, requests: 1, connections: []*grpc.ClientConn{c}}, nil
	})
}

// A grpcSender holds one connection to each replica.
type grpcSender struct {
	of          *GRPC
	requests    int // number of requests, sent in turn
	connections []*grpc.ClientConn
	turn        int // replica asked last
	answer      []byte
}

// Asked implements loadtest.Chooser.
func (s *grpcSender) Asked() int { return among(s.turn, len(s.connections)) }

// Send queries the next replica.
func (s *grpcSender) Send(deadline time.Time) error {
	turn, request := next(&s.of.turn, len(s.connections), s.requests)
	s.turn = turn
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if err := s.connections[turn].Invoke(ctx, service+"ModelInfer", s.of.bodies[request], &s.answer); err != nil {
		if status.Code(err) == codes.DeadlineExceeded {
			err = os.ErrDeadlineExceeded
		}
		return fmt.Errorf("no answer: %w", err)
	}
	if s.of.first == nil {
		return nil // no known answer: accept any
	}
	return s.of.right(request, s.answer, func(room *share) (answer, error) { return readInfer(s.answer, room) })
}

func (s *grpcSender) Close() error {
	var err error
	for _, c := range s.connections {
		err = errors.Join(err, c.Close())
	}
	return err
}
