package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asServer makes the test binary act as a server that behaves as the variable's value says.
const asServer = "SCALEBENCH_TEST_SERVER"

func serve(how, address, child string) {
	ready := http.StatusOK
	switch how {
	case "ends":
		fmt.Println("no such model")
		os.Exit(3)
	case "leaves":
		os.Exit(0)
	case "loads":
		ready = http.StatusServiceUnavailable
	case "ignores":
		signal.Ignore(syscall.SIGTERM)
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		if err := os.WriteFile(child, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			panic(err)
		}
	case "silent":
		l, err := net.Listen("tcp", address)
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Hour) // the kernel accepts the connections
		_ = l.Close()
	}
	panic(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(ready)
		fmt.Fprint(w, "loading the model")
	})))
}

func started(t *testing.T, how string) (r *Replica, url, child string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child = filepath.Join(t.TempDir(), "child")
	log, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	r, err = StartReplica(ReplicaOptions{Arguments: []string{self, address, child}, Environ: []string{asServer + "=" + how}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.End)
	return r, "http://" + address, child
}

func answersOf(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := Get(ctx, url+"/ready", nil)
		return err
	}
}

func accepts(url string) func(context.Context) error {
	return func(ctx context.Context) error { return Accepts(ctx, strings.TrimPrefix(url, "http://")) }
}

func TestReplicaReady(t *testing.T) {
	for how, want := range map[string]string{
		"serves": "",
		"ends":   "the server exited with code 3 before it was ready: no such model",
		"leaves": "exited with code 0 by itself before it was ready",
		"loads":  `not ready after 2s: http://127.0.0.1:`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			within := 2 * time.Second
			if how != "loads" {
				within = time.Minute
			}
			r, url, _ := started(t, how)
			err := r.Ready(context.Background(), answersOf(url), within)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v, want %q", err, want)
			}
			if how == "loads" && !strings.Contains(err.Error(), `answers 503: "loading the model"`) {
				t.Errorf("the error lacks the last answer: %v", err)
			}
		})
	}
}

// Without a path to query, a port that accepts connections is enough.
func TestReadyByPort(t *testing.T) {
	r, url, _ := started(t, "silent")
	if err := r.Ready(context.Background(), accepts(url), time.Minute); err != nil {
		t.Error(err)
	}
}

// Cancelling the context ends the wait even if the server never answers.
func TestReadyEnds(t *testing.T) {
	r, url, _ := started(t, "silent")
	if err := r.Ready(context.Background(), accepts(url), time.Minute); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("cancelled")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	if err := r.Ready(ctx, answersOf(url), time.Minute); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

// End removes a server that ignores SIGTERM, and its children.
func TestEnd(t *testing.T) {
	r, url, child := started(t, "ignores")
	if err := r.Ready(context.Background(), answersOf(url), time.Minute); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(child)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	r.End()
	r.End() // a second call does nothing
	if r.Why() == nil {
		t.Error("Why returned nil")
	}
	// The child may remain as a zombie, because no process waits for it.
	for deadline := time.Now().Add(time.Minute); running(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("process %d, which the server started, still runs", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return state[0] != 'Z'
}

func TestNotStarted(t *testing.T) {
	if _, err := StartReplica(ReplicaOptions{Arguments: []string{"/does/not/exist"}}); err == nil || !strings.Contains(err.Error(), "the server cannot be started") {
		t.Errorf("%v", err)
	}
}
