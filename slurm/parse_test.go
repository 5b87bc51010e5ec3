package slurm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseState(t *testing.T) {
	for _, tt := range []struct {
		word            string
		want            State
		known, terminal bool
	}{
		{"COMPLETED", Completed, true, true},
		{"CANCELLED by 1000", Cancelled, true, true},
		{"CANCELLED+", Cancelled, true, true},
		{"OUT_OF_MEMORY", OutOfMemory, true, true},
		{"TIMEOUT", Timeout, true, true},
		{"NODE_FAIL", NodeFail, true, true},
		{"BOOT_FAIL", BootFail, true, true},
		{"DEADLINE", Deadline, true, true},
		{"FAILED", Failed, true, true},
		{"PREEMPTED", Preempted, true, true},
		{"REVOKED", Revoked, true, true},
		{"COMPLETING", Completing, true, false},
		{"RUNNING", Running, true, false},
		{"SUSPENDED", Suspended, true, false},
		{"CONFIGURING", Configuring, true, false},
		{"STAGE_OUT", StageOut, true, false},
		{"REQUEUED", Requeued, true, false},
		{"PENDING", Pending, true, false},
		{"FLYING by 3", "FLYING by 3", false, false},
		{"completed", "completed", false, false},
		{"", "", false, false},
	} {
		got := ParseState(tt.word)
		if got != tt.want || got.Known() != tt.known || got.Terminal() != tt.terminal {
			t.Errorf("%q: %q, known %t, terminal %t", tt.word, got, got.Known(), got.Terminal())
		}
	}
}

// row returns a line of an answer with the fields separated by bars in the text.
func row(fields string) string { return strings.ReplaceAll(fields, "|", separator) + "\n" }

func TestParseQueueKeepsWhatItCanRead(t *testing.T) {
	out := "CLUSTER: bench\n" + row("1|two\nlines|main|RUNNING|None|n[1-2]|100|110|200|(null)") +
		row("2|bad|main|RUNNING|None|n[1-|100|110|200|") +
		row("3|late|main|RUNNING|None|n1|2026-11-21T00:00:00|110|200|") +
		row("95_[4-9%2]|array|main|PENDING|Resources, or more||100|300|400|why not") +
		row("4|new|main|LEVITATING|None|n3|100|N/A|N/A|")
	got, err := ParseQueue([]byte(out))
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	want := []Job{
		{ID: "1", Name: "two\nlines", Partition: "main", State: Running, Word: "RUNNING", Nodes: []string{"n1", "n2"}, Submit: at(100), Start: at(110)},
		{ID: "95_[4-9%2]", Name: "array", Partition: "main", State: Pending, Word: "PENDING", Reason: "Resources, or more", Submit: at(100), Comment: "why not"},
		{ID: "4", Name: "new", Partition: "main", State: "LEVITATING", Word: "LEVITATING", Nodes: []string{"n3"}, Submit: at(100)},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var odd *UnreadableError
	if !errors.As(err, &odd) || len(odd.Lines) != 2 || !strings.Contains(odd.Error(), `job "2": node list`) || !strings.Contains(odd.Error(), "and 1 more") {
		t.Fatalf("error: %v", err)
	}
	if err := odd.Of("late", ""); err == nil || !strings.Contains(err.Error(), `job "3": time`) {
		t.Errorf("of the job named late: %v", err)
	}
	if err := odd.Of("another", "2"); err == nil || !strings.Contains(err.Error(), `job "2": node list`) {
		t.Errorf("of job 2: %v", err)
	}
	if err := odd.Of("two", "1"); err != nil {
		t.Errorf("of a job that can be read: %v", err)
	}
}

// A line that is truncated, too long, or not about a job affects no other line.
func TestParseQueueLosesOnlyTheBadLine(t *testing.T) {
	good := func(id string) string { return row(id + "|n" + id + "|main|RUNNING|None|n1|100|110|200|") }
	for name, bad := range map[string]string{
		"greeting":         "Welcome to the cluster!\n",
		"cut short":        row("7|cut"),
		"only an id":       row("7"),
		"too long":         row("7|long|main|RUNNING|None|n1|100|110|200||more"),
		"no id":            row("|name|main|RUNNING|None|n1|100|110|200|"),
		"cut short, twice": row("7|cut") + row("8|cut|main"),
	} {
		got, err := ParseQueue([]byte(good("1") + bad + good("2") + good("3")))
		var ids []string
		for _, j := range got {
			ids = append(ids, j.ID)
		}
		if d := cmp.Diff([]string{"1", "2", "3"}, ids); d != "" || err == nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
}

func TestParseAccountingForms(t *testing.T) {
	got, err := ParseAccounting([]byte(row("48+0|het|bench|main|COMPLETED|None|0:0|3:0|None assigned|100|110|120|") +
		row("49|kill|bench|main|FAILED|None|0:9|0:9|n1|100|110|120|c") + row("50|run|bench|main|RUNNING|None|0:0|0:0|n1|100|110|Unknown|")))
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if j := got[0]; j.ID != "48+0" || j.Nodes != nil || *j.DerivedExit != (ExitCode{3, 0}) || !j.ExitCode.Success() {
		t.Errorf("%+v", j)
	}
	if j := got[1]; *j.ExitCode != (ExitCode{0, 9}) || j.ExitCode.String() != "0:9" {
		t.Errorf("%+v", j)
	}
	if j := got[2]; j.ExitCode != nil || j.DerivedExit != nil {
		t.Errorf("a running job has an exit code: %+v", j)
	}
}

func TestParsersNameTheLine(t *testing.T) {
	for name, parse := range map[string]func([]byte) ([]Job, error){"squeue": ParseQueue, "sacct": ParseAccounting, "scontrol": ParseShow} {
		jobs, err := parse([]byte("nonsense\n"))
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "nonsense") || jobs != nil {
			t.Errorf("%s: %+v, %v", name, jobs, err)
		}
	}
}

func TestParseSubmission(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Submission
	}{
		{"162\n", Submission{ID: "162"}},
		{"162;bench\n", Submission{ID: "162", Cluster: "bench"}},
		{"Welcome to the cluster!\n162\n", Submission{ID: "162"}},
		{"--> quota 3 at 82.76% ...OK\n162;bench\nThis job is charged to demo (99% left)\n", Submission{ID: "162", Cluster: "bench"}},
		{"Submitted batch job 162", Submission{ID: "162"}},
		{"\nSubmitted batch job 162 on cluster nautilus\r\nbye\n", Submission{ID: "162", Cluster: "nautilus"}},
		{"sbatch: Submitted batch job 162\n162\n", Submission{ID: "162"}},
	} {
		if got, err := parseSubmission([]byte(tt.in)); err != nil || got != tt.want {
			t.Errorf("%q: %+v, %v", tt.in, got, err)
		}
	}
	for _, in := range []string{"", "\n", "Submitted batch job", "-1", "162;", "162 163", "2026\n162\n", "job 162 submitted", "9999999999999999999999"} {
		if got, err := parseSubmission([]byte(in)); !errors.Is(err, ErrNoJobID) || got.ID != "" {
			t.Errorf("%q: %+v", in, got)
		}
	}
}

func TestScrub(t *testing.T) {
	got := Scrub([]string{"HOME=/h", "SLURM_JOB_ID=1", "SBATCH_PARTITION=x", "SLURM_CONF=/c", "SQUEUE_FORMAT=%i", "SLURM_TIME_FORMAT=relative",
		"SLURM_JWT=t", "MY_SLURM_NOTES=x", "SLURMD_NODENAME=n", "SACCT_FEDERATION=1"})
	want := []string{"HOME=/h", "SLURM_CONF=/c", "SLURM_JWT=t", "MY_SLURM_NOTES=x", "SLURMD_NODENAME=n"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestChunks(t *testing.T) {
	var ids []string
	for range 30_000 {
		ids = append(ids, "1234567")
	}
	parts := chunks(ids)
	n := 0
	for _, p := range parts {
		n += len(p)
		if size := len(strings.Join(p, ",")); size > chunkBytes {
			t.Errorf("a part of %d bytes", size)
		}
	}
	if n != len(ids) || len(parts) != 3 {
		t.Errorf("%d parts hold %d of %d", len(parts), n, len(ids))
	}
	if chunks(nil) != nil {
		t.Error("no values, but a part")
	}
	if calls := (Filter{User: "ada"}).options(); len(calls) != 1 || calls[0][0] != "--user=ada" {
		t.Errorf("%q", calls)
	}
}

// fuzzJobs checks that a parser neither panics nor invents jobs.
func fuzzJobs(f *testing.F, parse func([]byte) ([]Job, error)) {
	f.Fuzz(func(t *testing.T, out []byte) {
		jobs, err := parse(out)
		if err == nil && len(jobs) == 0 && strings.Contains(string(out), separator) {
			t.Fatalf("%q vanished", out)
		}
		for _, j := range jobs {
			if j.ID == "" || j.Word == "" || j.State != ParseState(j.Word) {
				t.Fatalf("%+v of %q", j, out)
			}
			if j.State.Terminal() && !j.State.Known() {
				t.Fatalf("%q ends a job", j.State)
			}
			if !strings.Contains(string(out), j.ID) && !strings.ContainsAny(j.ID, "_+") || !strings.Contains(string(out), j.Word) {
				t.Fatalf("%+v is not in %q", j, out)
			}
		}
	})
}

func FuzzParseQueue(f *testing.F) {
	f.Add([]byte(row("1|a b|main|PENDING|Resources||100|N/A|N/A|(null)")))
	f.Add([]byte(row("1|two\nlines|main|RUNNING|None|n[1-2]|100|110|200|c")))
	fuzzJobs(f, ParseQueue)
}

func FuzzParseAccounting(f *testing.F) {
	f.Add([]byte(row("48+0|het|bench|main|COMPLETED|None|0:0|3:0|None assigned|100|110|120|")))
	f.Add([]byte(row("4|a|bench|main|CANCELLED by 0|None|0:15|0:0|n1|100|110|120|")))
	fuzzJobs(f, ParseAccounting)
}

func FuzzParseShow(f *testing.F) {
	f.Add([]byte("JobId=5 JobName=a b UserId=root(0) JobState=PENDING Reason=JobHeldUser Dependency=(null) Restarts=0 ExitCode=0:0 SubmitTime=100 StartTime=Unknown EndTime=Unknown Partition=main NodeList= Comment=x y\n"))
	f.Add([]byte("JobId=96 ArrayJobId=95 ArrayTaskId=1 JobName=a UserId=root(0) JobState=RUNNING SubmitTime=100 NodeList=n1\n"))
	fuzzJobs(f, ParseShow)
}

// Wait statuses as squeue 22.05 prints them: exit code 3, exit code 139 of a script whose program received
// SIGSEGV, a job killed by SIGKILL, and a running job.
func TestParseExitCodes(t *testing.T) {
	got, err := parseExitCodes([]byte("8\x1f768\x1f\n13_4\x1f35584\x1f\n14\x1f9\x1f\n15\x1f0\x1f\n"))
	want := map[string]ExitCode{"8": {Status: 3}, "13_4": {Status: 139}, "14": {Signal: 9}, "15": {}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	if _, err := parseExitCodes([]byte("8\x1fx\x1f\n")); err == nil {
		t.Error("x passes for a wait status")
	}
}

// A dead munged means unreachable, not refused: no request was sent. Messages of sbatch 22.05.
func TestMungeIsUnreachable(t *testing.T) {
	bin := t.TempDir()
	text := "#!/bin/sh\necho 'sbatch: error: If munged is up, restart with --num-threads=10\nsbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\nsbatch: error: slurm_send_node_msg: g_slurm_auth_create: REQUEST_SUBMIT_BATCH_JOB has authentication error\nsbatch: error: Batch job submission failed: Protocol authentication error' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	c := &Client{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}}
	_, err := c.Submit(t.Context(), "job.sh")
	var gone *UnreachableError
	if !errors.As(err, &gone) || gone.MaybeQueued {
		t.Fatal(err)
	}
	want := `Slurm cannot be reached: munge, which signs every request, does not answer on this host: Failed to access "/run/munge/munge.socket.2": No such file or directory; start munged, or tell the cluster's administrators`
	if gone.Error() != want {
		t.Errorf("got  %s\nwant %s", gone, want)
	}
}

// A task is named ARRAY_TASK, a component of a heterogeneous job JOB+OFFSET, as commands
// accept them.
func TestParseShowNames(t *testing.T) {
	const rest = " UserId=root(0) JobState=RUNNING Reason=None SubmitTime=100 StartTime=110 EndTime=Unknown Partition=main NodeList=n1\n"
	for head, want := range map[string]string{
		"JobId=96 JobName=a":                                                        "96 a",
		"JobId=96 ArrayJobId=95 ArrayTaskId=7 JobName=a":                            "95_7 a",
		"JobId=96 ArrayJobId=95 ArrayTaskId=4-9%2 JobName=a b":                      "95_4-9%2 a b",
		"JobId=96 HetJobId=90 HetJobOffset=6 JobName=a":                             "90+6 a",
		"JobId=96 HetJobId=90 HetJobOffset=6 HetJobIdSet=90-96 JobName=JobId=3 b=c": "90+6 JobId=3 b=c",
	} {
		jobs, err := ParseShow([]byte(head + rest))
		if err != nil || len(jobs) != 1 || jobs[0].ID+" "+jobs[0].Name != want {
			t.Errorf("%s: %+v, %v; want %s", head, jobs, err, want)
		}
	}
}
