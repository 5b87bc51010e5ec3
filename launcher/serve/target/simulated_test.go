package target

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// No text arrives before its time, and the service counts the tokens. How much later a text arrives depends on
// the machine.
func TestSimulated(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := Simulated{Tokens: 4, First: 10 * time.Millisecond, PerToken: 3 * time.Millisecond}
	go func() { ended <- p.Serve(ctx, l) }()
	h := &HTTP{URLs: []string{fmt.Sprintf("http://%s/v1/completions", l.Addr())}, Bodies: [][]byte{[]byte(`{"stream": true}`)}, ContentType: "application/json", Streams: true}
	sender, err := h.Dial()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := sender.Send(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		s, ok := sender.(loadtest.Streamer).Streamed()
		if !ok || s.Tokens != 4 || !s.Counted || len(s.Gaps) != 3 || s.First < p.First || s.Last < p.First+3*p.PerToken {
			t.Errorf("%v %+v", ok, s)
		}
	}
	if err := sender.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
