package store

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

const secret = "s3cr3tVALUE99MORE" // as long as a token

// Secrets that a program wrote are not in the file, nor are those in older records.
func TestSecretsAreNotStored(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "history.db")
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := metrics.Run{ID: "study/p-r1-a1", Study: "study", Point: "p", Repeat: 1, Attempt: 1, Kind: "train", Framework: "command", Workers: 1,
		Status: metrics.Failed, Detail: "refused " + secret, Secrets: []string{secret},
		Parameters: map[string]any{"api_token": secret + "1", "command.run": []any{"x", "--password=" + secret + "2"}, "workload.batch": int64(3), "label": "hf_" + secret}}
	file := metrics.EventFile{Path: filepath.Join(t.TempDir(), "rank-00000-0.jsonl"), Writer: "rank"}
	text := lines(start(0, 1, 0),
		metrics.Event{Environment: &metrics.Environment{Variables: map[string]string{"SLURM_vault_token": "x" + secret, "OMP_X": secret, "OMP_NUM_THREADS": "2"}}},
		metrics.Event{Time: 1, Note: &metrics.Note{Text: "with " + secret}},
		metrics.Event{Time: 1, Figure: &metrics.Figure{Name: "f", Value: 1, Note: secret, At: map[string]any{"at": "https://u:" + secret + "@h"}}},
		metrics.Event{Time: 2, Error: &metrics.Error{Where: "train", Message: "no " + secret}},
		metrics.Event{Time: 3, Stop: &metrics.Stop{Status: metrics.StopFailed, Cause: secret}}) + "not an event: " + secret + "\n"
	if err := os.WriteFile(file.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ingest(ctx, run, []metrics.EventFile{file}); err != nil {
		t.Fatal(err)
	}
	inFile := func() int {
		t.Helper()
		n := 0
		paths, err := filepath.Glob(path + "*")
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, p := range paths {
			content, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(content, []byte(secret))
		}
		return n
	}
	if n := inFile(); n > 0 {
		t.Errorf("the secret is in the database %d times", n)
	}
	var notes, errors int
	if err := s.write.QueryRow("SELECT (SELECT count(*) FROM note WHERE text = 'with withheld'), (SELECT count(*) FROM error WHERE message = 'no withheld')").Scan(&notes, &errors); err != nil || notes != 1 || errors != 1 {
		t.Errorf("%d notes, %d errors, %v", notes, errors, err)
	}

	// As stored by an older version.
	for _, query := range []string{`UPDATE run_parameter SET value = '["' || ?1 || '"]' WHERE key = 'command.run'`,
		"UPDATE every_run SET facts = 'of ' || ?1"} {
		if _, err := s.write.Exec(query, secret); err != nil {
			t.Fatal(err)
		}
	}
	if inFile() == 0 {
		t.Fatal("there is nothing to remove")
	}
	if _, err := s.Ingest(ctx, run, []metrics.EventFile{file}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := inFile(); n > 0 {
		t.Errorf("collected again, the secret is in the database %d times", n)
	}
}

// Secrets stay out of the run's results even if its events are generated again for each
// iteration.
func TestSecretsOfRegeneratedEvents(t *testing.T) {
	s := openStore(t)
	run, events, from := importedRun()
	again := func(yield func(metrics.Event) bool) {
		for _, e := range events {
			if !yield(e) {
				return
			}
		}
		yield(metrics.Event{Note: &metrics.Note{Text: "started with --token ghp_0123456789abcdefghijABCDEFGHIJ012345"}})
	}
	if _, err := importAll(t, s, Imported{Run: run, Events: again, From: from}); err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "SELECT count(*) FROM result WHERE warnings LIKE '%started with%'"); got != "1" {
		t.Fatalf("%s results have the note", got)
	}
	if text := dump(t, s); strings.Contains(text, "ghp_0123") {
		t.Error("the secret is stored")
	}
}
