package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The question of the looks is read from the same options as those of `decide`.
func TestQuestionOf(t *testing.T) {
	w, err := questionOf(map[string]string{"deadline": "2h0m0s", "min-efficiency": "0.5", "measure": "score", "target": "0.75"})
	if err != nil || w.Options.Deadline != 2*time.Hour.Seconds() || w.Options.MinEfficiency != 0.5 || w.Measure != "score" || w.Options.Target == nil || w.Options.Target.Value != 0.75 {
		t.Errorf("%+v: %v", w, err)
	}
	// Prices that the looks had apply again, if their file still exists.
	site := filepath.Join(t.TempDir(), "prices.toml")
	if err := os.WriteFile(site, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := untilOptions{}
	o.wish.wish.Options.Budget, o.wish.wish.Site = 5, site
	asked := o.question()
	if w, err = questionOf(asked); err != nil || w.Site != site || w.Options.Budget != 5 {
		t.Errorf("%v: %+v, %v", asked, w, err)
	}
	if w, err = questionOf(map[string]string{"budget": "5", "site": site + ".gone"}); err != nil || w.Site != "" {
		t.Errorf("a file that is gone: %+v, %v", w, err)
	}
	if _, err := questionOf(map[string]string{"rate": "many"}); err == nil {
		t.Error("a rate of many is accepted")
	}
}

// The command prints an address at which the study's page is, and ends with its context.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	db, csv := filepath.Join(dir, "db"), filepath.Join(dir, "runs.csv")
	if err := os.WriteFile(csv, []byte("workers,throughput\n1,100\n2,180\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	args := []string{appName, "--db", db, "--runs", dir, "import", csv, "--from", "csv", "--set", "study=small", "--set", "framework=pytorch", "--set", "workload.scaling=weak"}
	if err := run(t.Context(), &session{stdout: &told, stderr: &told}, args); err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, &session{stdout: write, stderr: io.Discard}, []string{appName, "--db", db, "--runs", dir, "serve", "small"})
	}()
	address, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	page := ""
	for !strings.Contains(page, "Highest throughput with 2 workers: 180") { // the first page may come before the results
		if page != "" {
			time.Sleep(20 * time.Millisecond)
		}
		answer, err := http.Get(strings.TrimSpace(address) + "study/small/index.html")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if page = string(text); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %v", answer.Status, page, err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
