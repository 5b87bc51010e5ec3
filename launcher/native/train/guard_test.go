package train

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// guarded serves twoNumbers within limits, and returns its address.
func guarded(t *testing.T, o ServerLimits) string {
	t.Helper()
	address, _ := guardedServer(t, o)
	return address
}

func guardedServer(t *testing.T, o ServerLimits) (string, *connGuard) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewModelServer(ServeHandler(&netspec.Trained{Model: "tiny", Classes: 2, Height: 2, Width: 2, Channels: 1}, twoNumbers{}, "v1"), o)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String(), s.Handler.(*connGuard)
}

// callServer opens a connection and sends text.
func callServer(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(time.Minute)) // for a test that would hang
	}
	if err == nil {
		_, err = io.WriteString(c, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const rightBody = `{"inputs":[{"name":"images","shape":[1,2,2,1],"datatype":"FP32","data":[1.5,2,3,4]}]}`

// postText returns a request for logits that announces a body of this length and sends only text.
func postText(length int, text string, headers ...string) string {
	return fmt.Sprintf("POST /v2/models/tiny/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", length, strings.Join(append(headers, ""), "\r\n"), text)
}

func readStatus(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Only requests with the token are read; descriptions need no token.
func TestToken(t *testing.T) {
	address := guarded(t, ServerLimits{Token: "right"})
	for name, c := range map[string]struct {
		request string
		want    int
	}{
		"right":            {postText(len(rightBody), rightBody, "Authorization: Bearer right"), 200},
		"none":             {postText(len(rightBody), rightBody), 403},
		"another":          {postText(len(rightBody), rightBody, "Authorization: Bearer Right"), 403},
		"another scheme":   {postText(len(rightBody), rightBody, "Authorization: Basic right"), 403},
		"the start of it":  {postText(len(rightBody), rightBody, "Authorization: Bearer righ"), 403},
		"before any body":  {postText(60<<20, ""), 403}, // immediately, without waiting for the body
		"by another word":  {strings.Replace(postText(len(rightBody), rightBody), "POST", "PUT", 1), 403},
		"its description":  {"GET /v2/models/tiny HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		"whether it lives": {"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		"a long header":    {"GET /v2 HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("x", 1<<17) + "\r\n\r\n", 431},
	} {
		if got, text := readStatus(t, callServer(t, address, c.request)); got != c.want {
			t.Errorf("%s: status %d, want %d: %.200s", name, got, c.want, text)
		}
	}
	if got, text := readStatus(t, callServer(t, guarded(t, ServerLimits{}), postText(len(rightBody), rightBody))); got != 200 {
		t.Errorf("without a token: status %d: %s", got, text)
	}
}

// Connections without the token that exceed the limit close each other, regardless of what they
// have sent, but never a connection that has shown the token.
func TestStrangersPushEachOtherOut(t *testing.T) {
	const most = 8
	address := guarded(t, ServerLimits{Token: "right", Connections: most})
	ours := callServer(t, address, postText(len(rightBody), rightBody, "Authorization: Bearer right"))
	if got, text := readStatus(t, ours); got != 200 {
		t.Fatalf("status %d: %s", got, text)
	}
	half := []string{"", "P", "POST /v2/models/tiny/infer HTTP/1.1\r\nHost: x\r\n", postText(1000, "{", "Authorization: Bearer wrong"), "GET /v2 HTTP/1.1\r\n"}
	var strangers []net.Conn
	for i := range 10 * most {
		strangers = append(strangers, callServer(t, address, half[i%len(half)]))
	}
	for i, c := range strangers[:most] { // each was closed because of a later one
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("stranger %d: %v", i, err)
		}
	}
	for range 3 {
		if _, err := io.WriteString(ours, postText(len(rightBody), rightBody, "Authorization: Bearer right")); err != nil {
			t.Fatal(err)
		}
		if got, text := readStatus(t, ours); got != 200 {
			t.Errorf("among strangers: status %d: %s", got, text)
		}
	}
}

// Without tokens, connections that never got an answer are closed before those that did.
func TestAnsweredStayLonger(t *testing.T) {
	const most = 4
	address, g := guardedServer(t, ServerLimits{Connections: most})
	silent := callServer(t, address, "")
	asking := callServer(t, address, "")
	for range most - 2 {
		callServer(t, address, "POST /v2/models/tiny/infer HTTP/1.1\r\n")
	}
	for known := 0; known < most; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		known = g.order.Len()
		g.mu.Unlock()
	}
	if _, err := io.WriteString(asking, postText(len(rightBody), rightBody)); err != nil {
		t.Fatal(err)
	}
	if got, text := readStatus(t, asking); got != 200 {
		t.Fatalf("status %d: %s", got, text)
	}
	for range most - 1 {
		callServer(t, address, "x")
	}
	if _, err := io.Copy(io.Discard, silent); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent one stays: %v", err)
	}
	if _, err := io.WriteString(asking, postText(len(rightBody), rightBody)); err != nil {
		t.Fatal(err)
	}
	if got, text := readStatus(t, asking); got != 200 {
		t.Errorf("status %d: %s", got, text)
	}
}

// Unfinished bodies use memory for the received part, not for the announced length, and
// together at most the limit. The server answers again when they are closed.
func TestBodies(t *testing.T) {
	const most = 1 << 20
	address, g := guardedServer(t, ServerLimits{Bodies: most})
	part := strings.Repeat(" ", most/4)
	var strangers []net.Conn
	for range 3 { // three quarters
		strangers = append(strangers, callServer(t, address, postText(mostBody, part)))
	}
	for g.held.Load() < 3*most/4 {
		time.Sleep(time.Millisecond)
	}
	// The server asks for no more than fits: what it has not read, it refuses with the
	// connection, so the part that comes is just over the rest.
	got, text := readStatus(t, callServer(t, address, postText(mostBody, strings.Repeat(" ", most/4+1))))
	if got != 503 || !strings.Contains(text, "the server already holds 1 MiB of requests") {
		t.Errorf("status %d: %s", got, text)
	}
	for _, c := range strangers {
		_ = c.Close()
	}
	for g.held.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	if got, text = readStatus(t, callServer(t, address, postText(most/2, rightBody+strings.Repeat(" ", most/2-len(rightBody))))); got != 200 {
		t.Errorf("afterwards: status %d: %s", got, text)
	}
}

// An announced body or a list of many tensors uses no memory before it is
// received.
func TestAnnouncements(t *testing.T) {
	announced := func() {
		r, err := http.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = mostBody
		if body, err := readBody(nil, r); err != nil || !bytes.Equal(body, []byte("{}")) {
			t.Errorf("%q, %v", body, err)
		}
	}
	if r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			announced()
		}
	}); r.AllocedBytesPerOp() > 4*firstRead {
		t.Errorf("%d bytes for a body of 2", r.AllocedBytesPerOp())
	}
	url := newServer(t) + "/v2/models/tiny/infer"
	for _, list := range []string{strings.Repeat("null,", 1<<20) + "null", strings.Repeat("{},", 1<<10) + "{}", strings.Repeat(`{"name":"[\"],"},`, 1<<10) + "{}"} {
		if got, _, text := askServer(t, http.MethodPost, url, `{"inputs":[`+list+`]}`); got != 400 || !strings.Contains(text, "more than 1024 tensors") {
			t.Errorf("%.20s: status %d: %s", list, got, text)
		}
	}
	var few oip.Tensors
	if err := few.UnmarshalJSON([]byte("[" + strings.Repeat(`{"name":"a,b\\","data":[1,2]},`, 1<<10-1) + "{}]")); err != nil || len(few) != 1<<10 {
		t.Errorf("%d tensors: %v", len(few), err)
	}
}
