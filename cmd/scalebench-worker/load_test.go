package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/target"
	"github.com/scalebench/scalebench/metrics/clean"
)

// The load command runs a closed and an open loop against a service that takes 5 ms and gives one
// wrong answer in ten. Only results that do not depend on the machine's speed are
// checked.
func TestLoadByHand(t *testing.T) {
	body := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(body, []byte(`{"x": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	turn := make(chan int, 1)
	turn <- 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond)
		n := <-turn
		turn <- n + 1
		if n%10 == 9 {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("class 3"))
	}))
	defer server.Close()
	arguments := []string{"url=" + server.URL, "path=/", "payload=" + body, "expect=class 3", "threads=[2]", "rate=[50]", "duration=2s", "timeout=1m"}
	rows, _ := loaded(t, append([]string{"--into", filepath.Join(t.TempDir(), "kept")}, arguments...)...)
	if len(rows) != 2 || rows[0]["threads"] != 2.0 || rows[1]["rate"] != 50.0 {
		t.Fatalf("rows %v", rows)
	}
	for _, row := range rows {
		if share, ok := row["errors"].(float64); !ok || share < 0.02 || share > 0.25 {
			t.Errorf("%v of the requests are errors, want 0.1", row["errors"])
		}
		for _, name := range []string{"latency_p50", "latency_p95", "latency_p99"} {
			if p, ok := row[name].(float64); ok && p < 0.005 {
				t.Errorf("%s is %g s, of a service that takes 0.005", name, p)
			}
		}
	}
	// With two requests in flight, the rate is at most what the service allows.
	if answers, _ := rows[0]["requests_per_second"].(float64); answers > 2/0.005 {
		t.Errorf("%g answers/s, at most %g can be", answers, 2/0.005)
	}
	var out, errs strings.Builder
	if code := run(append([]string{"scalebench-worker", "load"}, arguments...), &out, &errs); code != 0 || !strings.Contains(out.String(), "threads  rate") ||
		!strings.Contains(errs.String(), "2 in flight, batch 1: the first request without a right answer in time: ") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// asWorker makes programs that the test starts from its own file, such as the server that the client is measured
// against, be workers instead of tests.
func asWorker(t *testing.T) { t.Setenv("SCALEBENCH_TEST_AS_WORKER", "1") }

// loaded returns the rows that load prints as JSON, and its other output.
func loaded(t *testing.T, arguments ...string) (rows []map[string]any, log string) {
	t.Helper()
	asWorker(t)
	var out, errs strings.Builder
	if code := run(append([]string{"scalebench-worker", "load", "--json"}, arguments...), &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &errs)
	}
	for dec := json.NewDecoder(strings.NewReader(out.String())); dec.More(); {
		var row map[string]any
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows, errs.String()
}

// A load by hand takes the keys of a study: prompts, arrivals, streams and the number of requests.
func TestLoadTakesKeysOfStudies(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- target.Simulated{Tokens: 4, Counts: true}.Serve(ctx, l) }()
	defer func() { stop(); <-served }()
	rows, _ := loaded(t, "url=http://"+l.Addr().String(), "path=/v1/completions", "model=m", "stream=true", "prompts={isl=20,osl=6}",
		"rate=[100]", "arrivals=constant", "requests=50", "duration=10s", "timeout=1m")
	if len(rows) != 1 || rows[0]["errors"] != 0.0 {
		t.Fatalf("rows %v", rows)
	}
	// If the machine is too busy for a steady state, the figures are missing.
	for name, want := range map[string]float64{"input_tokens": 20, "output_tokens": 6} {
		if got, ok := rows[0][name]; ok && got != want {
			t.Errorf("%s is %v, want %g", name, got, want)
		}
	}
}

// If a service answers no request correctly, the error names the loads and the first answer. One
// wrong answer in ten only causes a remark.
func TestLoadFails(t *testing.T) {
	asWorker(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such model", http.StatusNotFound)
	}))
	defer server.Close()
	for _, format := range [][]string{nil, {"--json"}} {
		var out, errs strings.Builder
		arguments := append(append([]string{"scalebench-worker", "load"}, format...), []string{"url=" + server.URL, "path=/", "threads=[1]", "rate=[20]", "duration=1s"}...)
		code := run(arguments, &out, &errs)
		want := "1 in flight, batch 1: none of "
		if code == 0 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "404") {
			t.Errorf("%v: exit code %d, %q; want %q and the status 404", format, code, errs.String(), want)
		}
	}
}

// A server's text has no control characters, neither in the error nor in the rows, and secrets in
// it are hidden.
func TestLoadOfHostileServer(t *testing.T) {
	asWorker(t)
	hostile := "\x1b]0;owned\a\u202ecod.exe\u009b2J token=Zq8x7Kd92LmP4vTs61Wn"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, hostile, http.StatusTeapot)
	}))
	defer server.Close()
	for _, format := range [][]string{nil, {"--json"}} {
		var out, errs strings.Builder
		arguments := append(append([]string{"scalebench-worker", "load"}, format...), "url="+server.URL, "path=/", "threads=[1]", "duration=1s")
		if code := run(arguments, &out, &errs); code == 0 || !strings.Contains(errs.String(), `\u202ecod.exe`) {
			t.Errorf("%v: exit code %d, %q; want the server's words, escaped", format, code, errs.String())
		}
		for name, text := range map[string]string{"errors": errs.String(), "rows": out.String()} {
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && clean.Steers(r) }); i >= 0 {
				t.Errorf("%v: %s have %q raw", format, name, text[i:])
			}
		}
		if strings.Contains(errs.String(), "Zq8x7Kd92LmP4vTs61Wn") {
			t.Errorf("%v: the error has the secret: %s", format, errs.String())
		}
	}
}

func TestLoadRefusals(t *testing.T) {
	asWorker(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "url=http://127.0.0.1:1"
	for name, tt := range map[string]struct {
		arguments []string
		want      string
	}{
		"no load":   {[]string{url, "path=/"}, "workload.threads: no load; set threads = [1, 4, 16]"},
		"list":      {[]string{url, "path=/", "threads=[1,2.5]"}, "threads"},
		"rate":      {[]string{url, "path=/", "rate=[-3]"}, "workload.rate: "},
		"url":       {[]string{"url=127.0.0.1:1", "path=/", "threads=[1]"}, "url"},
		"no key":    {[]string{url, "path=/", "thread=[1]"}, "thread"},
		"two loads": {[]string{url, "path=/", "threads=[1]", "precision=[\"fp32\",\"fp16\"]"}, "2 points"},
		"short":     {[]string{url, "path=/", "threads=[1]", "duration=1ms"}, "workload.duration"},
		"nobody":    {[]string{url, "path=/", "threads=[1]"}, "127.0.0.1:1 does not answer"},
		"no body":   {[]string{url, "path=/", "threads=[1]", "payload=none.json"}, "none.json"},
		"a FIFO":    {[]string{url, "path=/", "threads=[1]", "payload=" + fifo}, "fifo: a FIFO, not a regular file"},
		"endless":   {[]string{url, "path=/", "threads=[1]", "payload=/dev/zero"}, "/dev/zero: a device, not a regular file"},
		"folder":    {[]string{"--into", t.TempDir(), url, "path=/", "threads=[1]"}, "--into: "},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := run(append([]string{"scalebench-worker", "load"}, tt.arguments...), &out, &errs); code == 0 || !strings.Contains(errs.String(), tt.want) {
				t.Errorf("exit code %d, %q; want %q", code, errs.String(), tt.want)
			}
		})
	}
}
