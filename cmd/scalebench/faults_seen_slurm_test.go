//go:build slurm

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSlurmFaultsAreDetected shows that TestSlurmFaults can fail. Its checks detect when one of the
// two mechanisms that prevent an attempt from running twice is disabled, and when any other
// checked property is violated.
func TestSlurmFaultsAreDetected(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		name string
		lane lane
		fire func(*trial) error
		want []string // texts of the expected problems
	}{
		{"noclaim", onCluster, func(tr *trial) error {
			tr.site.unclaimed = true
			tr.files()
			return submissionUnseen(tr)
		}, []string{"was run by jobs"}},
		{"nolookup", onCluster, func(tr *trial) error {
			// A job that has ended is not submitted again, so the first one waits for the second.
			tr.site.setup = fmt.Sprintf("until [ -e %s ]; do sleep 0.1; done", quoted(filepath.Join(tr.dir, "go")))
			tr.files()
			tr.file("kill", "sbatch 1 after\n", 0o644)
			if _, code := tr.finish(tr.start(context.Background(), "submit", "study.toml", "--site", "site.toml")); code != -1 {
				return errors.New("the tool was not killed")
			}
			tr.file("silent", "", 0o644)
			if err := os.Remove(filepath.Join(tr.dir, "kill")); err != nil {
				return err
			}
			tr.submit()
			tr.file("go", "", 0o644)
			return os.Remove(filepath.Join(tr.dir, "silent"))
		}, []string{"was submitted twice"}},
		{"wrongfigures", onThisHost, func(tr *trial) error {
			tr.submit()
			db, err := sql.Open("sqlite3", tr.database())
			if err != nil {
				return err
			}
			_, err = db.Exec(`UPDATE value SET value = CASE (SELECT name FROM measure m WHERE m.id = value.measure)
					WHEN 'throughput' THEN value * 1.000001 WHEN 'end_to_end' THEN value * 0.999
					WHEN 'train_seconds' THEN value + 0.001 WHEN 'final_accuracy' THEN value + 1e-5 ELSE value END
				WHERE run IN (SELECT run FROM result WHERE world = 1);
				UPDATE result SET samples = samples + 1 WHERE world = 2`)
			return errors.Join(err, db.Close())
		}, []string{"throughput is stored as", "end-to-end throughput is stored as", "training time is stored as", "accuracy is stored as", "samples is stored as"}},
		{"leftbehind", onThisHost, func(tr *trial) error {
			left := exec.Command("sleep", "120")
			left.Env = []string{"SCALEBENCH_RUN=" + tr.folder().Run("x", 1, 1).Path()}
			tr.t.Cleanup(func() { _ = left.Process.Kill(); _ = left.Wait() })
			return left.Start()
		}, []string{`"sleep\x00120\x00", is left behind`}},
		{"endless", onThisHost, func(tr *trial) error { // the lease of a living process
			path := filepath.Join(tr.runs, tr.name, "lease")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(holder), 0o600)); err != nil {
				return err
			}
			tr.patience = 3 * time.Second
			tr.submit()
			tr.patience = patience
			return os.Remove(path)
		}, []string{"did not end within 3s"}},
		{"crash", onThisHost, func(tr *trial) error {
			tr.runUnder([]string{"sh", "-c", "printf 'panic: x\n\ngoroutine 1 [running]:\n'; exit 2"}, tr.command()...)
			return nil
		}, []string{"crashed"}},
		{"unsaid", onThisHost, func(tr *trial) error {
			tr.submit()
			tr.collectsTheRest("unreadable-r1-a1", true)
			return nil
		}, []string{"collect does not say with exit code 3 that unreadable-r1-a1 cannot be read"}},
		{"letin", onThisHost, func(tr *trial) error {
			door, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer door.Close()
			go func() { // sends everything to every caller
				if conn, err := door.Accept(); err == nil {
					_, _ = io.WriteString(conn, strings.Repeat("parameters", 1000))
					_ = conn.(*net.TCPConn).CloseWrite()
					_, _ = io.Copy(io.Discard, conn) // closing with unread data would discard what was sent
					conn.Close()
				}
			}()
			s := &strangers{says: "garbage"}
			s.call(context.Background(), address{"tcp", door.Addr().String(), os.Getpid()})
			tr.problems = append(tr.problems, s.letIn()...)
			return nil
		}, []string{"a stranger was told 10000 bytes"}},
		{"overwritten", onThisHost, func(tr *trial) error {
			if err := foreignDatabase(tr.database()); err != nil {
				return err
			}
			same, err := tr.unchanged(tr.database())
			if err != nil {
				return err
			}
			if err := os.Remove(tr.database()); err != nil {
				return err
			}
			tr.submit() // creates one of our databases
			same()
			return nil
		}, []string{"was written to"}},
		{"clock", onThisHost, func(tr *trial) error {
			tr.clock = "0:-946080000"
			tr.submit()
			tr.clock = ""
			var f findings
			for _, a := range tr.attempts(&f) {
				if created := time.Unix(int64(a.Record.CreatedUnix), 0); time.Since(created) > 20*365*24*time.Hour {
					tr.problem("an attempt of long ago")
				}
			}
			return nil
		}, []string{"an attempt of long ago"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := r.trial(tt.name, class{name: tt.name, lane: tt.lane}, rand.New(rand.NewPCG(1, 1)))
			if err := errors.Join(r.calm(), tt.fire(tr)); err != nil {
				t.Fatalf("%v\n%s", err, tr.story())
			}
			tr.settle(20 * time.Second) // without a claim, it may never settle
			if tt.lane != onThisHost {  // a copy may still start until then
				if left, err := tr.emptied(); err != nil {
					t.Errorf("%v: %+v is left behind", err, left)
				}
			}
			f := tr.check()
			found := strings.Join(slices.Concat(f.doubled, f.wrong, f.other), "\n")
			for _, want := range tt.want {
				if !strings.Contains(found, want) {
					t.Errorf("found %q, want %q\n%s", found, want, tr.story())
				}
			}
		})
	}
}
