package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// doubleService is a model server of the Open Inference Protocol over gRPC at ADDRESS:PORT,
// with an HTTP server on another port, like Triton. Its model "double" answers y = 2x, for
// x of N×3 numbers. It reports that it is ready from the second query on. With FILE, both use TLS with a
// certificate that it writes there.
func doubleService() {
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: double-service ADDRESS:PORT ADDRESS:PORT [FILE]")
		os.Exit(2)
	}
	var listeners [2]net.Listener
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", os.Args[i+1]); err != nil {
			panic(err)
		}
	}
	http.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	l, security, letter := listeners[0], insecure.NewCredentials(), ""
	if len(os.Args) == 4 {
		secure := &tls.Config{Certificates: []tls.Certificate{ownCertificate(os.Args[3])}}
		security, letter = credentials.NewTLS(secure), "s"
		listeners[1] = tls.NewListener(listeners[1], secure)
	}
	go func() { panic(http.Serve(listeners[1], nil)) }()
	fmt.Printf("grpc%s://%s\n", letter, l.Addr())
	fmt.Printf("http%s://%s\n", letter, listeners[1].Addr())
	var asked atomic.Int64
	s := grpc.NewServer(grpc.Creds(security), grpc.ForceServerCodecV2(rawMessages{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		var reply []byte
		switch strings.TrimPrefix(method, "/inference.GRPCInferenceService/") {
		case "ServerReady":
			if asked.Add(1) > 1 {
				reply = []byte{1<<3 | byte(protowire.VarintType), 1}
			}
		case "ModelReady":
			reply = []byte{1<<3 | byte(protowire.VarintType), 1}
		case "ServerMetadata":
			reply = field(nil, 1, "double-service")
		case "ModelMetadata":
			reply = field(field(field(reply, 1, "double"), 4, port("x", -1)), 5, port("y", -1))
		case "ModelInfer":
			x := contents(request)
			y := make([]byte, len(x))
			for i := 0; i < len(x); i += 4 {
				v := math.Float32frombits(binary.LittleEndian.Uint32(x[i:]))
				binary.LittleEndian.PutUint32(y[i:], math.Float32bits(2*v))
			}
			reply = field(field(field(reply, 1, "double"), 5, port("y", len(x)/12)), 6, string(y))
		default:
			return status.Error(codes.Unimplemented, method)
		}
		return stream.SendMsg(reply)
	}))
	panic(s.Serve(l))
}

// ownCertificate creates a self-signed certificate for this host, valid for an hour, and
// writes it to a file.
func ownCertificate(file string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	text, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}), 0o600)
	}
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}

// field appends a field with a string, bytes or a message to a message.
func field(b []byte, number protowire.Number, content string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// port returns the description of a tensor of rows×3 numbers.
func port(name string, rows int) string {
	shape := protowire.AppendVarint(protowire.AppendVarint(nil, uint64(rows)), 3)
	return string(field(field(field(nil, 1, name), 2, "FP32"), 3, string(shape)))
}

// contents returns the raw_input_contents of a ModelInferRequest with one input.
func contents(request []byte) []byte {
	for len(request) > 0 {
		number, kind, n := protowire.ConsumeTag(request)
		if n < 0 {
			return nil
		}
		request = request[n:]
		if number == 7 {
			content, _ := protowire.ConsumeBytes(request)
			return content
		}
		if n = protowire.ConsumeFieldValue(number, kind, request); n < 0 {
			return nil
		}
		request = request[n:]
	}
	return nil
}

// rawMessages is a gRPC codec that passes messages as raw bytes.
type rawMessages struct{}

func (rawMessages) Name() string { return "proto" }

func (rawMessages) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawMessages) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
