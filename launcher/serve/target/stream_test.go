package target

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
)

// A step of a scripted answer: what is written how long after the previous step. An empty text closes the
// connection.
type step struct {
	after time.Duration
	write string
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"

// chunked returns text as an HTTP chunk.
func chunked(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// token returns an event with a text.
func token(text string) string {
	return chunked(fmt.Sprintf("data: {\"choices\":[{\"text\":%q,\"finish_reason\":null}]}\n\n", text))
}

// event returns an event with the given JSON.
func event(text string) string { return chunked("data: " + text + "\n\n") }

// end returns the usual end of a stream: finish reason, token count, and [DONE].
func end(tokens int) string {
	text := "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
	if tokens > 0 {
		text += fmt.Sprintf("data: {\"choices\":[],\"usage\":{\"completion_tokens\":%d}}\n\n", tokens)
	}
	return chunked(text+"data: [DONE]\n\n") + chunked("")
}

// play answers each request with the steps, in virtual time.
func play(connection net.Conn, steps []step) {
	in := bufio.NewReader(connection)
	for {
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		for _, s := range steps {
			time.Sleep(s.after)
			if s.write == "" {
				_ = connection.Close()
			}
			if _, err := io.WriteString(connection, s.write); err != nil {
				return
			}
		}
	}
}

// streaming connects to a service that plays the steps.
func streaming(t *testing.T, expect string, steps []step) *sender {
	t.Helper()
	here, there := net.Pipe()
	go play(there, steps)
	t.Cleanup(func() { _ = errors.Join(here.Close(), there.Close()) })
	h := &HTTP{URLs: []string{"http://x/v1/completions"}, Bodies: [][]byte{[]byte(`{"stream":true}`)}, ContentType: "application/json", Streams: true}
	if expect != "" {
		h.Expect = []byte(expect)
	}
	u, err := url.Parse(h.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	r := newReplica(u, h)
	r.use(here)
	return &sender{of: h, replicas: []*replica{r}}
}

// A service plays a schedule in virtual time, and every time is measured to the nanosecond: whether a text is
// an event, an HTTP chunk, half of one or several, and whether or not the service counts tokens.
func TestStreamTimes(t *testing.T) {
	const µs, ms = time.Microsecond, time.Millisecond
	three, length := token("a")+token("b")+token("c"), len(token("a"))
	for name, tt := range map[string]struct {
		steps    []step
		want     loadtest.Stream
		perToken float64 // 0 if unknown
	}{
		"a schedule": {[]step{{0, streamHead}, {120 * ms, token("Once")}, {7 * µs, token(" upon")}, {20 * ms, token(" a")}, {40 * ms, token(" time")}, {3 * ms, end(0)}},
			loadtest.Stream{First: 120 * ms, Last: 180*ms + 7*µs, Gaps: []time.Duration{7 * µs, 20 * ms, 40 * ms}, Tokens: 4},
			(60*ms + 7*µs).Seconds() / 3},
		"counted": {[]step{{5 * ms, streamHead}, {5 * ms, token("Once upon")}, {30 * ms, token(" a time")}, {0, end(7)}},
			loadtest.Stream{First: 10 * ms, Last: 40 * ms, Gaps: []time.Duration{30 * ms}, Tokens: 7, Counted: true}, 0.005},
		"one": {[]step{{0, streamHead}, {1 * ms, token("a")}, {9 * ms, end(1)}},
			loadtest.Stream{First: 1 * ms, Last: 1 * ms, Tokens: 1, Counted: true}, 0},
		"at once": {[]step{{2 * ms, streamHead + three + end(0)}},
			loadtest.Stream{First: 2 * ms, Last: 2 * ms, Gaps: []time.Duration{0, 0}, Tokens: 3}, -1},
		"cut anywhere": {[]step{{0, streamHead[:40]}, {1 * ms, streamHead[40:] + three[:10]}, {1 * ms, three[10 : length-3]}, {1 * ms, three[length-3 : 2*length-20]}, {2 * ms, three[2*length-20:]}, {0, end(0)}},
			// An event is complete with the empty line after it, which ends 2 bytes before its chunk does.
			loadtest.Stream{First: 3 * ms, Last: 5 * ms, Gaps: []time.Duration{2 * ms, 0}, Tokens: 3}, 0.001},
		"chat": {[]step{{0, streamHead + chunked("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")}, {4 * ms, chunked(": a comment\r\n\r\nevent: x\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\r\n\r\n")}, {4 * ms, end(0)}},
			loadtest.Stream{First: 4 * ms, Last: 4 * ms, Tokens: 1}, 0},
		// A reasoning model: 20 and 40 ms between three texts, the last of which is the answer. The first event
		// has no text.
		"reasoning": {[]step{{0, streamHead + event(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":""}}]}`)},
			{120 * ms, event(`{"choices":[{"delta":{"reasoning_content":"Hm"}}]}`)}, {20 * ms, event(`{"choices":[{"delta":{"reasoning":"so"}}]}`)},
			{40 * ms, event(`{"choices":[{"delta":{"content":"Yes"},"finish_reason":"stop"}]}`)},
			{0, event(`{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":5}}}`) + chunked("data: [DONE]\n\n") + chunked("")}},
			loadtest.Stream{First: 120 * ms, FirstOutput: 180 * ms, Last: 180 * ms, Gaps: []time.Duration{20 * ms, 40 * ms}, Tokens: 8, Counted: true, Input: 30, Cached: 20, Reasoning: 5},
			(60 * ms).Seconds() / 7},
		"a tool's call": {[]step{{0, streamHead}, {5 * ms, event(`{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}}]}`)},
			{10 * ms, event(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]}}]}`)},
			{10 * ms, event(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":\"Ulm\"}"}}]},"finish_reason":"tool_calls"}]}`)},
			{0, chunked("data: [DONE]\n\n") + chunked("")}},
			loadtest.Stream{First: 5 * ms, Last: 25 * ms, Gaps: []time.Duration{10 * ms, 10 * ms}, Tokens: 3}, 0.01},
		"in lines": {[]step{{0, streamHead}, {1 * ms, chunked("data: {\"choices\":\n")}, {2 * ms, chunked("data: [{\"text\":\"a\"}]}\n")}, {3 * ms, chunked("\n")}, {0, end(0)}},
			loadtest.Stream{First: 6 * ms, Last: 6 * ms, Tokens: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := streaming(t, "", tt.steps)
				if _, ok := s.Streamed(); ok {
					t.Error("times before the first answer")
				}
				for range 2 { // the connection is reused
					if err := s.Send(time.Now().Add(time.Minute)); err != nil {
						t.Fatal(err)
					}
					got, _ := s.Streamed()
					if tt.want.FirstOutput == 0 { // no reasoning precedes it
						tt.want.FirstOutput = tt.want.First
					}
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Errorf("-want +got\n%s", diff)
					}
				}
				per, ok := tt.want.PerToken()
				if want := max(tt.perToken, 0); per != want || ok != (tt.perToken != 0) {
					t.Errorf("%v s a token, %v; want %v", per, ok, tt.perToken)
				}
			})
		})
	}
}

// A malformed stream is an error, and none of its times are recorded.
func TestWrongStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		steps  []step
		expect string
		want   string
	}{
		"status":     {[]step{{0, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nfull"}}, "", `status 503: "full"`},
		"no stream":  {[]step{{0, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"}}, "", `the answer is "application/json", not a stream; the request needs "stream": true`},
		"closed":     {[]step{{0, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"}, {0, ""}}, "", "it ends without [DONE]"},
		"an error":   {[]step{{0, streamHead + token("a") + chunked("data: {\"error\":{\"message\":\"out of memory\"}}\n\n") + end(0)}}, "", "it breaks off with an error: {\"message\":\"out of memory\"}"},
		"no JSON":    {[]step{{0, streamHead + chunked("data: Once\n\n")}}, "", "an event is not JSON of OpenAI's protocol"},
		"no DONE":    {[]step{{0, streamHead + token("a") + chunked("")}}, "", "it ends without [DONE]"},
		"half":       {[]step{{0, streamHead + token("a") + chunked("data: {\"cho") + chunked("")}}, "", "it ends without [DONE]"},
		"more":       {[]step{{0, streamHead + token("a") + chunked("data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n") + token("b") + chunked("")}}, "", "an event follows [DONE]"},
		"no text":    {[]step{{0, streamHead + end(0)}}, "", "it has no text"},
		"no reason":  {[]step{{0, streamHead + token("a") + chunked("data: [DONE]\n\n") + chunked("")}}, "", "it does not say why it ended"},
		"no tokens":  {[]step{{0, streamHead + token("a") + chunked("data: {\"usage\":{\"completion_tokens\":0},\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n") + chunked("")}}, "", "the answer has text, but the service counts 0 tokens"},
		"several":    {[]step{{0, streamHead + chunked("data: {\"choices\":[{\"text\":\"a\"},{\"text\":\"b\"}]}\n\n")}}, "", `several answers at once; ask for one ("n": 1)`},
		"unexpected": {[]step{{0, streamHead + token("On") + token("ce") + end(0)}}, "Twice", `does not contain the expected text: "Once"`},
		"too long":   {[]step{{0, streamHead + chunked("data: "+strings.Repeat("a", mostLine+1)+"\n\n")}}, "", "an event of over 1048576 bytes"},
		"lost":       {[]step{{0, streamHead + token("a") + "12"}, {0, "\r\n"}, {0, ""}}, "", "EOF"},
		"no length":  {[]step{{0, streamHead + token("a") + "zz\r\n"}}, "", `"zz" is not the length of a chunk`},
		"long chunk": {[]step{{0, streamHead + strings.Replace(token("a"), "\r\n", "x\r\n", 1)}}, "", "is not the length of a chunk"},
		"longer":     {[]step{{0, streamHead + "1\r\nab\r\n"}}, "", "a chunk is longer than it says"},
		"late":       {[]step{{0, streamHead + token("a")}, {2 * time.Minute, end(0)}}, "", "i/o timeout"},
		"late head":  {[]step{{2 * time.Minute, streamHead + token("a") + end(0)}}, "", "i/o timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := streaming(t, tt.expect, tt.steps)
				err := s.Send(time.Now().Add(time.Minute))
				if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, os.ErrDeadlineExceeded) != strings.HasPrefix(name, "late") {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				if got, _ := s.Streamed(); got.Tokens > 0 {
					t.Errorf("times were recorded: %+v", got)
				}
				_ = s.Close()
				time.Sleep(time.Hour) // give the service time to notice the closed connection
			})
		})
	}
}
