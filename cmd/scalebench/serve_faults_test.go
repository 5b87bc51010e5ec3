//go:build slurm

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var serveFaultCount = flag.Int("serve-faults", 0, "faults that TestServeFaults fires; 0: one of each class; 100 are the full suite")

// faultyService is the name under which this program is a service that has a fault.
const faultyService = "faulty-service"

func init() { disguises[faultyService] = beFaulty }

// beFaulty runs the service with the arguments ADDRESS PORT FOLDER CLASS AFTER SHARE. For each
// right answer that a replica begins, it appends a byte to FOLDER/answers.
func beFaulty() {
	listen, folder, class := net.JoinHostPort(os.Args[1], os.Args[2]), os.Args[3], os.Args[4]
	after, _ := time.ParseDuration(os.Args[5])
	share, _ := strconv.ParseFloat(os.Args[6], 64)
	first := once(filepath.Join(folder, "first"))
	switch class {
	case "ends at once":
		fmt.Println("no such model")
		os.Exit(7)
	case "slow to start", "never ready":
		time.Sleep(after)
	case "port taken":
		if first { // the test uses the port by then
			if err := os.WriteFile(filepath.Join(folder, "wanted"), []byte(listen+"\n"), 0o600); err != nil {
				panic(err)
			}
			waitFor(filepath.Join(folder, "taken"))
			fmt.Println("address already in use")
			os.Exit(1)
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	answers, err := os.OpenFile(filepath.Join(folder, "answers"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	var begun atomic.Int64 // when the load began
	faulty := func() bool {
		now := time.Now().UnixNano()
		begun.CompareAndSwap(0, now)
		return time.Duration(now-begun.Load()) > after
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" {
			return
		}
		hit := rand.Float64() < share
		if faulty() {
			switch class {
			case "killed", "one of two killed":
				if class == "killed" || first {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
			case "exits":
				os.Exit(9)
			case "hangs":
				select {}
			}
		}
		switch {
		case class == "wrong answers" && hit:
			_, _ = io.WriteString(w, "no")
			return
		case class == "bursts of 503" && time.Now().UnixMilli()/100%4 == 0:
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		case class == "half an answer" && hit:
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nright")
				_ = c.Close()
			}
			return
		case class == "half open" && hit:
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil { // neither answer nor close the connection
				time.AfterFunc(time.Minute, func() { _ = c.Close() })
			}
			return
		case class == "closes each":
			w.Header().Set("Connection", "close")
		}
		_, _ = answers.Write([]byte{1})
		_, _ = io.WriteString(w, "right")
	}
	if class == "ignores SIGTERM" {
		signal.Ignore(syscall.SIGTERM)
	}
	_ = (&http.Server{Handler: http.HandlerFunc(serve)}).Serve(l)
}

// waitFor waits until the file ends with a complete line and returns it; it gives up after a while.
func waitFor(path string) string {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, _ := os.ReadFile(path); bytes.HasSuffix(text, []byte("\n")) {
			return strings.TrimSpace(string(text))
		}
	}
	return ""
}

// once reports whether this process is the first to call it.
func once(path string) bool {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// A serveFault is a fault of a service, and how a run may end because of it.
type serveFault struct {
	class string
	// fails is a text in the cause; "": the run is done.
	fails string
	// errors: some requests have no right answer, and the run says so.
	errors bool
	// never: no load has a rate.
	never bool
	act   func(t *testing.T, dir string, run *exec.Cmd, r *rand.Rand)
}

var serveFaults = []serveFault{
	{class: "ends at once", fails: "exited with code 7 before it was ready"},
	{class: "never ready", fails: "not ready after"},
	{class: "slow to start"},
	{class: "killed", fails: "killed"},
	{class: "one of two killed", fails: "killed"},
	{class: "exits", fails: "exited with code 9"},
	{class: "hangs", errors: true, never: true},
	{class: "wrong answers", errors: true},
	{class: "bursts of 503", errors: true},
	{class: "half an answer", errors: true},
	{class: "half open", errors: true},
	{class: "closes each"},
	{class: "port taken", act: func(t *testing.T, dir string, _ *exec.Cmd, _ *rand.Rand) {
		l, err := net.Listen("tcp", waitFor(filepath.Join(dir, "wanted")))
		if err == nil {
			t.Cleanup(func() { l.Close() })
			err = os.WriteFile(filepath.Join(dir, "taken"), []byte("\n"), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}},
	{class: "ignores SIGTERM"},
	{class: "client killed", fails: "killed", act: func(t *testing.T, dir string, _ *exec.Cmd, r *rand.Rand) {
		killRank(t, dir, 0, r)
	}},
	{class: "replica's rank killed", fails: "killed", act: func(t *testing.T, dir string, _ *exec.Cmd, r *rand.Rand) {
		killRank(t, dir, 1, r)
	}},
	{class: "interrupted", fails: "signal terminated", act: func(t *testing.T, dir string, run *exec.Cmd, r *rand.Rand) {
		underLoad(t, dir)
		time.Sleep(time.Duration(r.Float64() * float64(time.Second)))
		_ = run.Process.Signal(os.Interrupt)
	}},
}

// TestServeFaults injects faults into services under load. Each run ends with a good result or
// a stated cause, and no process is left. No load counts more right answers than the service
// gave, or has a rate for a time without answers.
func TestServeFaults(t *testing.T) {
	n := *serveFaultCount
	if n == 0 {
		n = len(serveFaults)
	}
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	scalebench, worker := program(t, "scalebench"), buildWorker(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f := serveFaults[i%len(serveFaults)]
		t.Run(fmt.Sprintf("%s-%d", f.class, i/len(serveFaults)), func(t *testing.T) {
			t.Parallel()
			fireAtService(t, f, rand.New(rand.NewPCG(seed, uint64(i))), scalebench, worker, self)
		})
	}
}

func fireAtService(t *testing.T, f serveFault, r *rand.Rand, scalebench, worker, self string) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(dir, faultyService)); err != nil {
		t.Fatal(err)
	}
	const duration = 2 * time.Second
	after, replicas := time.Duration((0.2+0.5*r.Float64())*float64(duration)), 1
	switch f.class {
	case "never ready":
		after = time.Hour
	case "one of two killed":
		replicas = 2
	}
	write("site.toml", fmt.Sprintf("worker = %q\n", worker))
	write("study.toml", fmt.Sprintf(`[study]
name = "s"
[workload]
kind = "serve"
path = "/"
ready = "/ready"
expect = "right"
startup = %q
timeout = %q
threads = [%d]
duration = %q
[command]
run = [%q, "{address}", "{port}", %q, %q, %q, "%.3f"]
[sweep]
framework = ["command"]
replicas = [%d]
`, map[bool]string{true: "2s", false: "1m"}[f.class == "never ready"], map[bool]string{true: "300ms", false: "30s"}[f.errors], 1+r.IntN(4), duration, filepath.Join(dir, faultyService), dir, f.class, after, 0.05+0.3*r.Float64(), replicas))
	run := exec.Command(scalebench, "run", "study.toml", "--site", "site.toml", "--oversubscribe")
	run.Dir = dir
	run.Env = append(os.Environ(), "HOME="+dir, "SCALEBENCH_DB="+filepath.Join(dir, "db"), "NO_COLOR=1")
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	if f.act != nil {
		f.act(t, dir, run, r)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		_ = run.Process.Kill()
		<-ended
		t.Fatalf("it does not end:\n%s", &said)
	}
	code := run.ProcessState.ExitCode()
	if code == 2 {
		t.Fatal(&said)
	}
	status, detail, loads := shownService(t, run, scalebench)
	switch {
	case f.fails == "" && (code != 0 || status != "done"):
		t.Errorf("exit code %d, %s: %s\n%s", code, status, detail, &said)
	case f.fails != "" && (code == 0 || status == "done" || !strings.Contains(detail, f.fails)):
		t.Errorf("exit code %d, %s: %q, want %q\n%s", code, status, detail, f.fails, &said)
	}
	if left := processesOf(dir, 30*time.Second); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	given, err := os.ReadFile(filepath.Join(dir, "answers"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if f.fails == "" && len(loads) != 1 {
		t.Errorf("%d loads, want 1\n%s", len(loads), &said)
	}
	for _, load := range loads {
		if f.errors && !(load.Errors > 0) || !f.errors && load.Errors > 0 && f.fails == "" {
			t.Errorf("a share of %g had no right answer\n%s", load.Errors, &said)
		}
		// A rate covers at least half of the time; the rest may be a slower warm-up.
		if load.Rate*duration.Seconds()/2 > float64(len(given)) {
			t.Errorf("%g answers/s for %v; the service gave %d", load.Rate, duration, len(given))
		}
		if f.never && load.Rate > 0 {
			t.Errorf("a rate of %g although no steady state can be\n%s", load.Rate, &said)
		}
	}
}

type servedLoad struct {
	Errors float64 `json:"errors"`
	Rate   float64 `json:"requests_per_second"`
}

// shownService returns how the study's one run ended, as a user sees it.
func shownService(t *testing.T, run *exec.Cmd, scalebench string) (status, detail string, loads []servedLoad) {
	t.Helper()
	ask := func(into any, arguments ...string) {
		t.Helper()
		c := exec.Command(scalebench, arguments...)
		c.Dir, c.Env = run.Dir, run.Env
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%q: %v", arguments, err)
		}
		if err := json.Unmarshal(out, into); err != nil {
			t.Fatalf("%q: %v\n%s", arguments, err, out)
		}
	}
	var runs []struct{ Run, Status, Detail string }
	ask(&runs, "status", "s", "--format", "json")
	if len(runs) != 1 {
		t.Fatalf("%d runs, want 1: %+v", len(runs), runs)
	}
	var shown struct {
		Loads []servedLoad `json:"by_batch_rate_threads"`
	}
	ask(&shown, "show", runs[0].Run, "--format", "json")
	return runs[0].Status, runs[0].Detail, shown.Loads
}

// underLoad waits until the load generator says that it measures.
func underLoad(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		logs, _ := filepath.Glob(filepath.Join(dir, "runs/s/*/rank-00000.log"))
		for _, log := range logs {
			if text, _ := os.ReadFile(log); bytes.Contains(text, []byte("measuring ")) {
				return
			}
		}
	}
	t.Error("it never got under load")
}

// killRank kills the process of a rank while it is under load.
func killRank(t *testing.T, dir string, rank int, r *rand.Rand) {
	t.Helper()
	underLoad(t, dir)
	time.Sleep(time.Duration(r.Float64() * float64(time.Second)))
	for _, p := range serviceProcesses(dir) {
		if slices.Contains(p.arguments, "serve") && p.rank == strconv.Itoa(rank) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
			return
		}
	}
	t.Errorf("no process of rank %d", rank)
}

type serviceProcess struct {
	pid       int
	arguments []string
	rank      string
}

// serviceProcesses returns the processes whose arguments or environment name the folder.
func serviceProcesses(dir string) []serviceProcess {
	var list []serviceProcess
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		arguments, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(folder, "environ"))
		if pid == os.Getpid() || !bytes.Contains(arguments, []byte(dir)) && !bytes.Contains(environ, []byte(dir)) {
			continue
		}
		p := serviceProcess{pid: pid, arguments: strings.Split(strings.TrimRight(string(arguments), "\x00"), "\x00")}
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if rank, ok := strings.CutPrefix(entry, "RANK="); ok {
				p.rank = rank
			}
		}
		list = append(list, p)
	}
	return list
}

// processesOf returns the processes that still exist after the given time.
func processesOf(dir string, patience time.Duration) []string {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var left []string
		for _, p := range serviceProcesses(dir) {
			left = append(left, fmt.Sprint(p.pid, " ", strings.Join(p.arguments, " ")))
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}
