package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/study"
)

// A webhook gets {"text": …}; its URL comes from a file that only its owner can read, or from a variable, and is in
// no error.
func TestWebhook(t *testing.T) {
	var got map[string]string
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body, &got) != nil {
			t.Errorf("%s %s: %s", r.Method, r.Header, body)
		}
		w.WriteHeader(answer)
	}))
	defer server.Close()
	address := server.URL + "/services/t0ken"
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOOK", address)
	m := Message{"s: the study \"x\" ended\nInjected: 1", "Use 8 workers.\n\x1b[31mReport: /r"}
	want := map[string]string{"text": `s: the study "x" ended\nInjected: 1` + "\n\nUse 8 workers.\n" + `\x1b[31mReport: /r`}
	for _, webhook := range []string{file, "$HOOK"} {
		got = nil
		if err := send(t.Context(), study.Notify{Webhook: webhook}, m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", webhook, diff)
		}
	}

	refused := func(webhook, why string) {
		t.Helper()
		err := send(t.Context(), study.Notify{Webhook: webhook}, m)
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v, want %q", webhook, err, why)
		}
	}
	answer = http.StatusForbidden
	refused(file, "403 Forbidden")
	answer = http.StatusFound // a redirection could lead anywhere
	refused(file, "302 Found")
	server.Close()
	refused(file, "connection refused")
	t.Setenv("HOOK", "")
	refused("$HOOK", "HOOK is not set")
	for _, bad := range []string{"not a url/t0ken", "http://[::1/t0ken", "ftp://example.org/t0ken", "/t0ken"} {
		t.Setenv("HOOK", bad)
		refused("$HOOK", "notify.webhook: ")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(file, "can be read by every user")
}

// A command gets the subject where it says so and the text on its standard input, without a shell.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	program, out := filepath.Join(dir, "tell"), filepath.Join(dir, "out")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s|' \"$@\" >"+out+"; cat >>"+out+"; echo no; exit $CODE\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODE", "0")
	to := study.Notify{Command: []string{program, "-s", "{subject}", "$(id)", "{text}"}}
	if err := send(t.Context(), to, Message{`a "b" $(id)`, "text"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if want := `-s|a "b" $(id)|$(id)|{text}|text` + "\n"; err != nil || string(text) != want {
		t.Errorf("%q (%v), want %q", text, err, want)
	}
	t.Setenv("CODE", "3")
	if err := send(t.Context(), to, Message{"s", "t"}); err == nil || !strings.Contains(err.Error(), "exit status 3 no") {
		t.Error(err)
	}
	if err := os.Chmod(program, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), to, Message{"s", "t"}); err == nil || !strings.Contains(err.Error(), "can be written by every user") {
		t.Error(err)
	}
}

// Each event is due once, also if a command sees it several times, and again after new attempts.
func TestDue(t *testing.T) {
	r := record{}
	for i, step := range []struct {
		counts
		want []Event
	}{
		{counts{4, 0, 4, 10, 0}, nil},
		{counts{4, 1, 2, 10, 10}, []Event{Failed}},
		{counts{4, 2, 1, 10, 10}, nil}, // only the first failure
		{counts{4, 2, 0, 10, 10}, []Event{Ended}},
		{counts{4, 2, 0, 10, 10}, nil},
		{counts{6, 2, 2, 20, 10}, nil}, // retried
		{counts{6, 3, 0, 20, 20}, []Event{Failed, Ended}},
		{counts{6, 3, 0, 20, 20}, nil},
		{counts{7, 3, 0, 30, 20}, []Event{Ended}}, // measured more, without a failure
		{counts{3, 0, 0, 30, 0}, nil},             // four are forgotten
		{counts{5, 1, 1, 40, 40}, []Event{Failed}},
		{counts{5, 1, 0, 40, 40}, []Event{Ended}},
		{counts{6, 2, 0, 39, 39}, []Event{Failed, Ended}}, // by a host whose clock is behind
	} {
		got := r.due(step.counts)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		for _, e := range got {
			r = r.sent(e, step.counts)
		}
	}
}
