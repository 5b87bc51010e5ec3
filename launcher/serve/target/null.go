package target

import (
	"context"
	"errors"
	"net"

	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// Null answers every request at once with answer bytes, until the listener is closed. Measured against it, only
// the client and the network take time.
func Null(l net.Listener, answer int) error {
	body := make([]byte, answer)
	s := &fasthttp.Server{
		Handler:                      func(c *fasthttp.RequestCtx) { c.SetBody(body) },
		Name:                         "scalebench-null",
		MaxRequestBodySize:           mostRequest + 1<<20, // plus its JSON
		NoDefaultDate:                true,
		StreamRequestBody:            false,
		DisableKeepalive:             false,
		DisablePreParseMultipartForm: true,
	}
	return s.Serve(l)
}

// NullGRPC runs a gRPC server that answers every request at once with the same answer, until the
// context ends or the listener fails.
func NullGRPC(ctx context.Context, l net.Listener, answer int) error {
	reply := mem.SliceBuffer(make([]byte, answer))
	s := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.MaxRecvMsgSize(mostRequest+1<<20), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		return stream.SendMsg(reply)
	}))
	defer context.AfterFunc(ctx, s.Stop)()
	if err := s.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
