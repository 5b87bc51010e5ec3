package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/scalebench/scalebench/launcher/serve/oip"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func ports(datatype string, shapes ...[]int) (list []oip.Port) {
	for i, shape := range shapes {
		list = append(list, oip.Port{Name: fmt.Sprintf("x%d", i), Datatype: datatype, Shape: shape})
	}
	return list
}

// A server's metadata cannot make the client allocate more than a request may have: the error names the input,
// its size and the limit. 256 MiB are 2²⁸ bytes.
func TestHugeInputs(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		inputs []oip.Port
		in     Inputs
		want   string
	}{
		"as found":       {ports("FP64", []int{-1, 1 << 29}, []int{-1, 1 << 29}, []int{-1, 1 << 29}), Inputs{Batch: 1}, "input x0 of model m: FP64 [1 536870912] takes 4096 MiB, 256 MiB are left of the 256 MiB"},
		"by the batch":   {ports("FP32", []int{-1, 1 << 20}), Inputs{Batch: 65}, "input x0 of model m: FP32 [65 1048576] takes 260 MiB"},
		"by dims":        {ports("INT8", []int{-1, -1}), Inputs{Batch: 1, Dims: map[string][]int{"x0": {257 * mib}}}, "input x0 of model m: INT8 [1 269484032] takes 257 MiB"},
		"together":       {ports("UINT8", []int{-1, mib}, []int{-1, 256 * mib}), Inputs{Batch: 1}, "input x1 of model m: UINT8 [1 268435456] takes 256 MiB, 255 MiB are left"},
		"overflow of 64": {ports("FP64", []int{-1, 1 << 30, 1 << 30, 1 << 30}), Inputs{Batch: 1}, "input x0 of model m: its shape is [-1 1073741824 1073741824 1073741824], which has over 1073741824 elements"},
		"overflow to 0":  {ports("FP64", []int{-1, 1 << 32, 1 << 32}), Inputs{Batch: 1}, "input x0 of model m: its shape is [-1 4294967296 4294967296], which has over"},
		"texts":          {ports("BYTES", []int{-1, 27 * mib}), Inputs{Batch: 1}, "input x0 of model m: BYTES [1 28311552] takes 270 MiB"},
	} {
		m := &Model{Model: oip.Model{Name: "m", Inputs: c.inputs}, Server: oip.Server{Extensions: []string{oip.BinaryExtension}}}
		var err error
		used := allocated(func() { _, err = m.Payload(c.in) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if most := uint64(8 * mib); used > most {
			t.Errorf("%s: %d MiB were allocated", name, used/mib)
		}
	}
}

// A JSON request counts with the length of its text.
func TestHugeInJSON(t *testing.T) {
	m := &Model{Model: oip.Model{Name: "m"}}
	for _, c := range []struct {
		datatype string
		elements int
		want     string
	}{
		{"FP32", 12 << 20, "input x of model m as JSON: FP32 [12582912] takes 288 MiB, 256 MiB are left"},
		{"BOOL", 43 << 20, "BOOL [45088768] takes 258 MiB"},
		{"FP64", 11 << 20, "FP64 [11534336] takes 275 MiB"},
	} {
		_, err := new(Payload).body(m, []drawn{{Port: oip.Port{Name: "x", Datatype: c.datatype, Shape: []int{c.elements}}}}, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// talk answers the first request on every connection with text, then keeps sending more until the client
// closes.
func talk(t *testing.T, text, more string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = c.Read(make([]byte, 4096))
				_, err := io.WriteString(c, text)
				for err == nil && more != "" {
					_, err = io.WriteString(c, more)
				}
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

// An answer that announces too many bytes or never ends is refused, and gives back what it had reserved.
func TestHugeAnswers(t *testing.T) {
	had := answers
	defer func() { answers = had }()
	answers = &budget{most: 8 << 20, each: 4 << 20}
	mebibyte := strings.Repeat("x", 1<<20)
	chunk := "100000\r\n" + mebibyte + "\r\n"
	text := strings.Repeat("x", 1<<16)
	for name, c := range map[string]struct {
		text, more string
		streams    bool
		want       string
	}{
		"announced":        {"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n", "", false, "the answer has over 4 MiB"},
		"just over":        {"HTTP/1.1 200 OK\r\nContent-Length: 5242881\r\n\r\n", "", false, "the answer has over 4 MiB"},
		"over int":         {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "", false, "no answer"},
		"endless chunks":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk, false, "no answer"},
		"one huge chunk":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n", "", false, "no answer"},
		"no length":        {"HTTP/1.1 200 OK\r\n\r\n", mebibyte, false, "no answer"},
		"interim answers":  {"", "HTTP/1.1 102 Processing\r\n\r\n", false, "over 16 interim answers"},
		"endless headers":  {"HTTP/1.1 200 OK\r\n", "A: " + text + "\r\n", false, "no answer"},
		"a stream of text": {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Sprintf("%x\r\ndata: {\"choices\":[{\"text\":\"%s\"}]}\n\n\r\n", len(text)+len(`data: {"choices":[{"text":""}]}`)+2, text), true, "the answer has over 4 MiB"},
	} {
		h := &HTTP{URLs: []string{talk(t, c.text, c.more)}, Streams: c.streams}
		if c.streams {
			h.Bodies = [][]byte{[]byte("{}")}
		}
		s, err := h.Dial()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(time.Now().Add(time.Minute)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v, want %q", name, err, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if used := answers.used.Load(); used != 0 {
			t.Errorf("%s: %d bytes are still reserved", name, used)
		}
	}
}

// Answers that are each small enough share the budget of the process.
func TestAnswersShareTheBudget(t *testing.T) {
	of := &budget{most: 3 * meterStep, each: 8 * meterStep}
	small := newMetered(nil, of)
	if err := small.reserve(2 * meterStep); err != nil {
		t.Fatal(err)
	}
	large := newMetered(nil, of)
	if err := large.reserve(4 * meterStep); err == nil || !strings.Contains(err.Error(), "the answers in flight need more than 3 MiB") {
		t.Errorf("next to a small one: %v", err)
	}
	small.begin()
	if err := large.reserve(4 * meterStep); err != nil {
		t.Errorf("alone: %v", err)
	}
	if large.give(); of.used.Load() != 0 {
		t.Errorf("%d bytes are still reserved", of.used.Load())
	}
}

// An output's shape must match the number of elements received; the check precedes the allocation.
func TestHugeOutputs(t *testing.T) {
	tensor := func(datatype, data string, shape ...int) oip.Tensor {
		y := oip.Tensor{Name: "y", Datatype: datatype, Shape: shape}
		if data != "" {
			y.Data = []byte(data)
		}
		return y
	}
	for name, c := range map[string]struct {
		tensor oip.Tensor
		raw    []byte
		want   string
	}{
		"integers":     {tensor("INT8", "[1]", 23<<20), nil, "INT8 [24117248] needs 552 MiB; at most 512 MiB of an answer are read"},
		"numbers":      {tensor("FP32", "[1]", 65<<20), nil, "FP32 [68157440] needs 520 MiB"},
		"bytes":        {tensor("FP32", "", 64<<20), []byte{0, 0, 0, 0}, "67108864 elements, but 1 came"},
		"overflow":     {tensor("FP32", "[1]", 1<<32, 1<<32), nil, "which is not valid"},
		"many texts":   {tensor("BYTES", "", 1), make([]byte, 4<<20), "1 elements, but more came"},
		"a long list":  {tensor("FP32", "["+strings.Repeat("0,", 1<<20)+"0]", 2), nil, "2 elements, but more came"},
		"a deep list":  {tensor("FP32", strings.Repeat("[", 1<<16), 1), nil, "it has no data"},
		"a list, then": {tensor("FP32", "[1]", 2), nil, "2 elements, but 1 came"},
	} {
		room := newShare()
		var err error
		used := allocated(func() { _, err = newOutput(c.tensor, c.raw, room) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if room.end(); used > 16<<20 || answers.used.Load() != 0 {
			t.Errorf("%s: %d bytes were allocated, %d are still reserved", name, used, answers.used.Load())
		}
	}
}

// Metadata is limited to some thousand bytes and must come from the server that was named.
func TestHugeMetadata(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ready":true}`) }))
	defer elsewhere.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"long":            {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) }, "the answer has over 1048576 bytes"},
		"redirected away": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "it redirects to another host"},
		"redirect loop":   {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "it redirects more than 3 times"},
		"wrong type":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ready":1e999}`) }, "cannot unmarshal"},
	} {
		s := httptest.NewServer(c.answer)
		if err := ready(nil)(t.Context(), s.URL, "m"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v, want %q", name, err, c.want)
		}
		s.Close()
	}
	at := serveGRPC(t, func(string, []byte) ([]byte, error) {
		return protowire.AppendBytes(protowire.AppendTag(nil, 9, protowire.BytesType), make([]byte, mostMetadata)), nil
	})
	if _, err := askOnce(t.Context(), at, "ModelMetadata", nil); err == nil || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("over gRPC: %v", err)
	}
}

// A signal interrupts waiting for a server that never answers the first request.
func TestAskIsInterrupted(t *testing.T) {
	silent := talk(t, "", "")
	m := &Served{servers: []string{silent}, model: &Model{Model: oip.Model{Name: "m", Inputs: ports("FP32", []int{-1, 2})}}}
	ctx, stop := context.WithCancelCause(t.Context())
	signal := errors.New("signal")
	stop(signal)
	if _, err := m.Ask(ctx, Inputs{Batch: 1}, nil, time.Now().Add(time.Hour)); !errors.Is(err, signal) {
		t.Errorf("%v", err)
	}
}
