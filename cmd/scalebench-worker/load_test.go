package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	arguments := []string{"scalebench-worker", "load", "--url", server.URL, "--body", body, "--expect", "class 3", "--in-flight", "2", "--rate", "50", "--duration", "2s", "--timeout", "1m"}
	var out, errs strings.Builder
	if code := run(append(arguments, "--json"), &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &errs)
	}
	var rows []loadRow
	for dec := json.NewDecoder(strings.NewReader(out.String())); dec.More(); {
		var row loadRow
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) != 2 || rows[0].InFlight != 2 || rows[1].Rate != 50 {
		t.Fatalf("rows %+v", rows)
	}
	for _, row := range rows {
		if row.Errors < 0.02 || row.Errors > 0.25 {
			t.Errorf("%.3g of the requests are errors, want 0.1", row.Errors)
		}
		for _, p := range []*float64{row.P50, row.P95, row.P99} {
			if p != nil && *p < 0.005 {
				t.Errorf("a latency of %g s, of a service that takes 0.005", *p)
			}
		}
	}
	// With two requests in flight, the rate is at most what the service allows.
	if most := 2 / 0.005; rows[0].Answers > most {
		t.Errorf("%g answers/s, at most %g can be", rows[0].Answers, most)
	}
	out.Reset()
	if code := run(arguments, &out, &errs); code != 0 || !strings.Contains(out.String(), "in flight  rate asked  answers/s") ||
		!strings.Contains(out.String(), "2 in flight: the first request without a right answer in time: ") {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// If a service answers no request correctly, the error names the loads and the first answer. One
// wrong answer in ten only causes a remark.
func TestLoadFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such model", http.StatusNotFound)
	}))
	defer server.Close()
	for _, format := range [][]string{nil, {"--json"}} {
		var out, errs strings.Builder
		arguments := append([]string{"scalebench-worker", "load", "--url", server.URL, "--in-flight", "1", "--rate", "20", "--duration", "500ms"}, format...)
		code := run(arguments, &out, &errs)
		want := "1 in flight, 20 requests/s: no request had a right answer in time; the first: "
		if code == 0 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "404") {
			t.Errorf("%v: exit code %d, %q; want %q and the status 404", format, code, errs.String(), want)
		}
		if strings.Count(out.String(), "\n") < 2 {
			t.Errorf("%v: a row for each load is missing:\n%s", format, out.String())
		}
	}
}

// A server's text has no control characters, neither in the error nor in the rows, and secrets in
// it are hidden.
func TestLoadOfHostileServer(t *testing.T) {
	hostile := "\x1b]0;owned\a\u202ecod.exe\u009b2J token=Zq8x7Kd92LmP4vTs61Wn"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, hostile, http.StatusTeapot)
	}))
	defer server.Close()
	for _, format := range [][]string{nil, {"--json"}} {
		var out, errs strings.Builder
		arguments := append([]string{"scalebench-worker", "load", "--url", server.URL, "--in-flight", "1", "--duration", "500ms"}, format...)
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
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		arguments []string
		want      string
	}{
		"no load": {[]string{"--url", "http://127.0.0.1:1/"}, "no load: give --in-flight 1,2,4, --rate 50,100, or both"},
		"list":    {[]string{"--url", "http://127.0.0.1:1/", "--in-flight", "1,2.5"}, `--in-flight: "2.5" is not valid`},
		"rate":    {[]string{"--url", "http://127.0.0.1:1/", "--rate", "-3"}, `--rate: "-3" is not valid`},
		"url":     {[]string{"--url", "127.0.0.1:1", "--in-flight", "1"}, "--url: "},
		"short":   {[]string{"--url", "http://127.0.0.1:1/", "--in-flight", "1", "--duration", "1ms"}, "--duration 1ms"},
		"nobody":  {[]string{"--url", "http://127.0.0.1:1/", "--in-flight", "1"}, "127.0.0.1:1 does not answer"},
		"no body": {[]string{"--url", "http://127.0.0.1:1/", "--in-flight", "1", "--body", "none.json"}, "none.json"},
		"a FIFO":  {[]string{"--url", "http://127.0.0.1:1/", "--in-flight", "1", "--body", fifo}, "fifo: a FIFO, not a regular file"},
		"endless": {[]string{"--url", "http://127.0.0.1:1/", "--in-flight", "1", "--body", "/dev/zero"}, "/dev/zero: a device, not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			if code := run(append([]string{"scalebench-worker", "load"}, tt.arguments...), &out, &errs); code == 0 || !strings.Contains(errs.String(), tt.want) {
				t.Errorf("exit code %d, %q; want %q", code, errs.String(), tt.want)
			}
		})
	}
}
