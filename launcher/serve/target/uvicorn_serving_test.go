//go:build serving

package target

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/serve/loadtest"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// application answers every request with "ok".
const application = `
async def app(scope, receive, send):
    while scope["type"] == "lifespan":
        event = await receive()
        await send({"type": event["type"] + ".complete"})
        if event["type"] == "lifespan.shutdown":
            return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
`

// single is Python's http.server, which serves one connection at a time. Each answer takes 20 ms.
const single = `
import sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.02)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`

// counted prints what pyarrow reads from a file of requests.
const counted = `
import sys, pyarrow.parquet as pq
t = pq.read_table(sys.argv[1])
print(t.num_rows, sorted(set(t["result"].to_pylist())), min(t["latency"].to_pylist()) > 0, t.schema.field("itl").type)
`

// pythonWith makes an environment with packages from PyPI and returns its interpreter.
func pythonWith(t *testing.T, packages ...string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "environment")
	python := filepath.Join(folder, "bin", "python")
	for _, arguments := range [][]string{{"python3", "-m", "venv", folder}, append([]string{python, "-m", "pip", "install", "--quiet"}, packages...)} {
		if out, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", arguments, err, out)
		}
	}
	return python
}

// uvicorn closes connections that are idle for a second. At one request in two seconds it closes most of them before
// the next request. That is no error. pyarrow reads the exported requests.
func TestServingUvicorn(t *testing.T) {
	python, folder := pythonWith(t, "uvicorn==0.54.0", "pyarrow"), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "service.py"), []byte(application), 0o600); err != nil {
		t.Fatal(err)
	}
	h := serving(t, folder, func(port string) *exec.Cmd {
		return exec.Command(python, "-m", "uvicorn", "service:app", "--port", port, "--timeout-keep-alive", "1")
	})
	table := filepath.Join(folder, "requests.parquet")
	errs, quiet := -1.0, func(string) error { return nil }
	s := &loadtest.Service{Seed: 1, Sleep: time.Sleep, Phase: quiet, Warn: quiet,
		Dial: func(int) (func() (loadtest.Sender, error), error) { return h.Dial, nil },
		Export: func(_, format string) (io.WriteCloser, error) {
			return os.Create(strings.TrimSuffix(table, "parquet") + format)
		},
		Figure: func(f metrics.Figure) error {
			if f.Name == measure.Errors {
				errs = f.Value
			}
			return nil
		},
	}
	w := study.Serve{Batch: []int{1}, Rate: []float64{0.5}, Arrivals: study.Poisson, MaxConcurrency: 8, Duration: study.Duration(time.Minute), Timeout: study.Duration(10 * time.Second)}
	if err := s.Measure(t.Context(), w); err != nil || errs != 0 {
		t.Errorf("errors %v, %v", errs, err)
	}
	lines, err := os.ReadFile(strings.TrimSuffix(table, "parquet") + "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(python, "-c", counted, table).CombinedOutput()
	want := fmt.Sprintf("%d ['ok'] True list<element: double not null>\n", strings.Count(string(lines), "\n"))
	if err != nil || string(got) != want {
		t.Errorf("pyarrow: %v, %q, want %q", err, got, want)
	}
}

// serving starts a server on a free port and returns requests to it.
func serving(t *testing.T, folder string, command func(port string) *exec.Cmd) *HTTP {
	t.Helper()
	port := fmt.Sprint(freePorts(t, 1)[0])
	server := command(port)
	server.Dir = folder
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	address := net.JoinHostPort("127.0.0.1", port)
	for Accepts(context.Background(), address) != nil {
		time.Sleep(50 * time.Millisecond)
	}
	h := &HTTP{URLs: []string{"http://" + address + "/"}, Expect: []byte("ok")}
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	return h
}

// A server of one connection at a time answers every request, in both loops, although the load generator usually
// keeps its connections open.
func TestServingHTTPServer(t *testing.T) {
	h := serving(t, t.TempDir(), func(port string) *exec.Cmd { return exec.Command("python3", "-c", single, port) })
	if h.Warm(soon()); !h.FewConnections() {
		t.Error("it is not found to serve few connections at once")
	}
	schedule := loadtest.Poisson(10, 10*time.Second, 1)
	for _, o := range []loadtest.Options{{Schedule: schedule}, {InFlight: 3, Duration: 5 * time.Second}} {
		o.Dial, o.Timeout = h.Dial, time.Minute
		r, err := loadtest.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if total := loadtest.Merge(r.Windows); total.Good < 20 || total.Errors() > 0 {
			t.Errorf("%d right answers, errors %v: %v", total.Good, total.Errors(), r.FirstError)
		}
	}
}
