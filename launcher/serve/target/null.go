package target

import (
	"net"

	"github.com/valyala/fasthttp"
)

// Null answers every request at once with so many bytes, for as long as the listener
// is open: what a client measures against it is the client itself, and the network.
func Null(l net.Listener, answer int) error {
	body := make([]byte, answer)
	s := &fasthttp.Server{
		Handler:                      func(c *fasthttp.RequestCtx) { c.SetBody(body) },
		Name:                         "scalebench-null",
		MaxRequestBodySize:           mostAnswer,
		NoDefaultDate:                true,
		StreamRequestBody:            false,
		DisableKeepalive:             false,
		DisablePreParseMultipartForm: true,
	}
	return s.Serve(l)
}
