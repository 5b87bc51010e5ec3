package target

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/serve/prompts"
	"github.com/scalebench/scalebench/launcher/study"
)

// A model answers each prompt with its number of words, and records what it was asked.
type languageModel struct {
	*httptest.Server
	mu      sync.Mutex
	prompts []string
	headers []http.Header
	hold    chan struct{} // requests wait for it; nil: they do not
}

func newLanguageModel(t *testing.T, stream bool) *languageModel {
	m := &languageModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Messages []struct{ Role, Content string }
		}
		_ = json.Unmarshal(body, &request)
		var said []string
		for _, message := range request.Messages {
			said = append(said, message.Role+": "+message.Content)
		}
		m.mu.Lock()
		m.prompts, m.headers = append(m.prompts, strings.Join(said, " | ")), append(m.headers, r.Header.Clone())
		hold := m.hold
		m.mu.Unlock()
		if hold != nil {
			<-hold
		}
		usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":1}`, len(strings.Fields(strings.Join(said, " "))))
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"answer\"},\"finish_reason\":\"stop\"}],%s}\n\ndata: [DONE]\n\n", usage)
			return
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"answer"}}],%s}`, usage)
	}))
	t.Cleanup(m.Close)
	return m
}

func source(t *testing.T, p study.Prompts) *prompts.Source {
	t.Helper()
	s, err := prompts.Open(p, []byte(`{"messages": []}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A session's second turn repeats the first and the service's answer to it, whether answers are streamed or not.
func TestPromptsOverHTTP(t *testing.T) {
	for _, stream := range []bool{false, true} {
		m := newLanguageModel(t, stream)
		h := &HTTP{URLs: []string{m.URL}, ContentType: "application/json", Streams: stream, Prompts: source(t, "isl=3|osl=1|turns=2|think=1s")}
		c, err := h.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var more []bool
		for range 3 {
			if err := c.Send(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			think, ok := c.(loadtest.Converser).More()
			if more = append(more, ok); think != time.Second {
				t.Errorf("thinks for %v", think)
			}
		}
		first, second, third := m.prompts[0], m.prompts[1], m.prompts[2]
		if !slices.Equal(more, []bool{true, false, true}) || !strings.HasPrefix(second, first+" | assistant: answer | user: ") || strings.Contains(third, "|") || third == first {
			t.Errorf("stream %v: more %v\n%s\n%s\n%s", stream, more, first, second, third)
		}
		if n, err := h.Like(m.URL).InputTokens(time.Now().Add(time.Minute)); err != nil || n != 4 { // with "user:"
			t.Errorf("stream %v: %d input tokens, %v", stream, n, err)
		}
	}
}

// asked returns how many requests each of the models has received.
func asked(models []*languageModel) (list []int) {
	for _, m := range models {
		m.mu.Lock()
		list = append(list, len(m.prompts))
		m.mu.Unlock()
	}
	return list
}

// Twelve requests of sessions of three turns to three replicas. "sticky" keeps a session's turns together, and
// round robin does not.
func TestRouting(t *testing.T) {
	for routing, check := range map[string]func(counts []int, together bool) bool{
		"":               func(n []int, together bool) bool { return slices.Equal(n, []int{4, 4, 4}) && !together },
		study.RoundRobin: func(n []int, together bool) bool { return slices.Equal(n, []int{4, 4, 4}) && !together },
		study.Sticky:     func(n []int, together bool) bool { return slices.Equal(n, []int{6, 3, 3}) && together },
		study.Random:     func(n []int, _ bool) bool { return n[0]+n[1]+n[2] == 12 },
		study.LeastBusy:  func(n []int, _ bool) bool { return n[0]+n[1]+n[2] == 12 },
	} {
		var models []*languageModel
		h := &HTTP{ContentType: "application/json", Prompts: source(t, "isl=3|turns=3"), Routing: routing}
		for range 3 {
			m := newLanguageModel(t, false)
			models, h.URLs = append(models, m), append(h.URLs, m.URL)
		}
		c, err := h.Dial()
		if err != nil {
			t.Fatal(err)
		}
		together := true
		for i := range 12 {
			if err := c.Send(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if at := c.(loadtest.Chooser).Asked(); i%3 > 0 && at != i/3%3 {
				together = false
			}
		}
		_ = c.Close()
		if counts := asked(models); !check(counts, together) {
			t.Errorf("%q: %v requests, sessions together: %v", routing, counts, together)
		}
	}
}

// Of three replicas one holds its requests. The least busy of the others get the rest.
func TestLeastBusy(t *testing.T) {
	var models []*languageModel
	h := &HTTP{ContentType: "application/json", Prompts: source(t, "isl=3"), Routing: study.LeastBusy}
	release := make(chan struct{})
	for i := range 3 {
		m := newLanguageModel(t, false)
		if i == 0 {
			m.hold = release
		}
		models, h.URLs = append(models, m), append(h.URLs, m.URL)
	}
	var all sync.WaitGroup
	for range 40 { // most of the first three wait at replica 0
		c, err := h.Dial()
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		all.Go(func() {
			sent <- c.Send(time.Now().Add(time.Minute))
			_ = c.Close()
		})
		for waiting := true; waiting; {
			select {
			case err := <-sent:
				if err != nil {
					t.Error(err)
				}
				waiting = false
			case <-time.After(time.Millisecond):
				waiting = asked(models)[0] == 0 || h.inFlight[1].Load()+h.inFlight[2].Load() > 0
			}
		}
	}
	counts := asked(models)
	close(release)
	all.Wait()
	if counts[0] != 1 || counts[1]+counts[2] != 39 {
		t.Errorf("%v requests; want 1 at the replica that does not answer", counts)
	}
}

// Headers of the study reach its servers, but not the calibration server, and errors do not show them.
func TestPrivateHeaders(t *testing.T) {
	m := newLanguageModel(t, false)
	h := &HTTP{URLs: []string{m.URL}, Private: map[string]string{"Authorization": "Bearer sk-1234567", "X-Tenant": "a"}}
	send := func(h *HTTP) error {
		c, err := h.Dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Send(time.Now().Add(time.Minute))
	}
	if err := errors.Join(send(h), send(h.Like(m.URL))); err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]string{{"Bearer sk-1234567", "a"}, {"", ""}} {
		if got := [2]string{m.headers[i].Get("Authorization"), m.headers[i].Get("X-Tenant")}; got != want {
			t.Errorf("request %d has the headers %q, want %q", i, got, want)
		}
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "unknown key "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), http.StatusUnauthorized)
	}))
	defer echo.Close()
	h = &HTTP{URLs: []string{echo.URL}, Private: h.Private}
	if err := send(h); err == nil || !strings.Contains(err.Error(), "status 401") || strings.Contains(err.Error(), "1234567") {
		t.Errorf("the error is %v", err)
	}
}

func TestLists(t *testing.T) {
	for body, want := range map[string]string{
		`{"data": [{"id": "a"}, {"id": "m"}]}`: "",
		`{"data": [{"id": "a"}]}`:              `model "m" is not among those listed: ["a"]`,
		`{"data": []}`:                         "the list of models is empty",
		`loading`:                              "the answer is not a list of models",
	} {
		err := Lists([]byte(body), "m")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	if err := Lists([]byte(`{"data": [{"id": "a"}]}`), ""); err != nil || !IsListing("/v1/models") || IsListing("/health") {
		t.Error(err)
	}
}

// vLLM's, llama.cpp's and SGLang's text: several labels, a histogram, and a gauge without a type.
func TestScrape(t *testing.T) {
	const text = `# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} 5.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{model_name="m"} 1.2e+03
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1"} 3
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 4
vllm:time_to_first_token_seconds_sum 0.7
vllm:time_to_first_token_seconds_count 4
llamacpp:requests_deferred 1
`
	served := text
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, served)
	}))
	defer s.Close()
	key := map[string]string{"Authorization": "Bearer k"}
	got, raw, err := Scrape(context.Background(), s.URL, key)
	if err != nil || string(raw) != text {
		t.Fatalf("%v, %q", err, raw)
	}
	want := loadtest.ServerMetrics{"vllm:num_requests_waiting": {Sum: 7, N: 2}, "vllm:prefix_cache_hits_total": {Sum: 1200, N: 1},
		"vllm:time_to_first_token_seconds_sum": {Sum: 0.7, N: 1}, "vllm:time_to_first_token_seconds_count": {Sum: 4, N: 1}, "llamacpp:requests_deferred": {Sum: 1, N: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := Scrape(context.Background(), s.URL, nil); err == nil || !strings.Contains(err.Error(), "answers 401") {
		t.Errorf("without the key: %v", err)
	}
	served = "<html>"
	if _, _, err := Scrape(context.Background(), s.URL, key); err == nil || !strings.Contains(err.Error(), "not metrics in Prometheus' text format") {
		t.Errorf("of a page: %v", err)
	}
}

// Strangers' metrics give finite sums of counted values, or an error.
func FuzzMetrics(f *testing.F) {
	f.Add("# TYPE a gauge\na{b=\"c\"} 1\na{b=\"d\"} NaN\n")
	f.Add("a_bucket{le=\"1\"} 3\na_sum 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseMetrics([]byte(text))
		for name, v := range values {
			if err != nil || v.N < 1 || name == "" || math.IsNaN(v.Sum) {
				t.Errorf("%q: %+v with %v", name, v, err)
			}
		}
	})
}

// The simulated service counts words and makes the requested number of tokens.
func TestSimulatedCounts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Simulated{Tokens: 9, Counts: true}.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()
	answer, err := http.Post(url, "application/json", strings.NewReader(`{"messages": [{"content": "a b"}, {"content": "c"}], "max_tokens": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := readStream(bufio.NewReader(answer.Body), time.Now())
	if err != nil || s.Input != 3 || s.Tokens != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	_ = answer.Body.Close()
	body, err := Get(ctx, url+"/v1/models", nil)
	if err == nil {
		err = Lists(body, "model")
	}
	values, _, err2 := Scrape(ctx, url+"/metrics", nil)
	if err != nil || err2 != nil || !slices.Equal(slices.Collect(maps.Keys(values)), []string{"vllm:num_requests_waiting"}) {
		t.Errorf("%v, %v: %v", err, err2, values)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
