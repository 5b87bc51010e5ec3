//go:build slurm

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// After a plain submit, a job that waits for the study's jobs sends the messages; with --wait the command does. Each
// message is sent once, also if both see the same end.
func TestSlurmNotify(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	b := newBench(t, c)
	messages := filepath.Join(b.dir, "messages")
	b.write("tell", "#!/bin/sh\n{ echo \"subject: $1\"; cat; } >>"+messages+"\n")
	if err := os.Chmod(filepath.Join(b.dir, "tell"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("study.toml", `
[study]
name = "told"
[command]
run = ["sh", "-c", "until [ -e `+b.dir+`/go ]; do sleep 0.2; done; exit {code}"]
extract = ["time"]
[parameters]
code = 0
[resources]
time = "5m"
[policy]
packing = "array"
[notify]
command = ["./tell", "{subject}"]
[sweep]
code = [0, 3]
framework = ["command"]
workers = [1]
`)
	subjects := func() (list []string) {
		text, _ := os.ReadFile(messages)
		for line := range strings.Lines(string(text)) {
			if subject, ok := strings.CutPrefix(line, "subject: scalebench: "); ok {
				list = append(list, strings.TrimSpace(subject))
			}
		}
		return list
	}
	received := func(when string, want ...string) {
		t.Helper()
		for end := time.Now().Add(longest); !slices.Equal(subjects(), want); time.Sleep(time.Second) {
			if time.Now().After(end) {
				log, _ := os.ReadFile(filepath.Join(b.dir, "runs/told/follow.log"))
				t.Fatalf("messages after %s: %q\n%s\n%s", when, subjects(), log, b.logs())
			}
		}
	}
	pair := []string{"told: a run failed", "told ended, 1 of 2 runs good"}

	// The command that waits takes the message of the end before the jobs, which wait for the file, can end.
	_, said, code := b.run("submit", "study.toml")
	if code != 0 || !strings.Contains(said, "sends a message when these have ended") {
		t.Fatalf("submit: exit code %d\n%s", code, said)
	}
	waited := make(chan string)
	go func() {
		_, said, code := b.run("submit", "study.toml", "--wait", "--interval", "1s")
		waited <- fmt.Sprintf("exit code %d\n%s", code, said)
	}()
	for end := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(b.dir, "runs/told/notified.json.end")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("submit --wait does not wait for the end")
		}
	}
	b.write("go", "")
	if said := <-waited; !strings.HasPrefix(said, fmt.Sprintf("exit code %d\n", exitRunsFailed)) {
		t.Fatalf("submit --wait: %s", said)
	}
	b.emptied(c)
	received("submit and submit --wait", pair...)
	text, _ := os.ReadFile(messages)
	report := filepath.Join(b.dir, "runs/told/report.html")
	if _, err := os.Stat(report); err != nil || !strings.Contains(string(text), "Report: "+report) || !strings.Contains(string(text), "exit code 3") {
		t.Errorf("the message says (%v):\n%s", err, text)
	}
	b.must(0, nil, "collect", "told")
	b.must(0, nil, "notify", "told")
	received("notify", pair...)

	// submit begins the failed run again; then only the job waits for it.
	b.must(0, nil, "submit", "study.toml")
	received("submit", slices.Repeat(pair, 2)...)
	if _, err := os.Stat(filepath.Join(b.dir, "scalebench.db-journal")); err == nil {
		t.Error("the job opened the user's database")
	}
	if _, said, code := b.run("submit", "study.toml", "--wait", "--interval", "1s", "--again"); code != exitRunsFailed {
		t.Fatalf("submit --again --wait: exit code %d\n%s", code, said)
	}
	received("submit --again --wait", slices.Repeat(pair, 3)...)
}
