package slurm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/scalebench/scalebench/slurm"
)

// A transcript is the output of a real command: testdata/transcripts/NAME.txtar, recorded by `make record`.
type transcript struct{ comment, stdout, stderr, exit string }

func readTranscript(t testing.TB, name string) transcript {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "transcripts", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range a.Files {
		files[f.Name] = string(f.Data)
	}
	return transcript{string(a.Comment), files["stdout"], files["stderr"], strings.TrimSpace(files["exit"])}
}

// changing lists what may differ between two recordings of the same form: paths, hosts, times and other
// numbers, and names that Slurm chooses.
var changing = []struct{ is, as string }{
	{`'?/tmp/\S+`, "PATH"},
	{`\b(node|head)\S*`, "HOST"},
	{`\d+`, "0"},
}

var (
	key    = regexp.MustCompile(`(?:^|\s)([A-Z][A-Za-z/:_]*)=`)
	number = regexp.MustCompile(`^[\d:]+$`)
)

// form returns the part of a transcript that a parser or the client relies on: the command line and exit
// status, standard error, and the format of the output.
func (tr transcript) form() string {
	text := tr.comment + tr.stderr
	for _, c := range changing {
		text = regexp.MustCompile(c.is).ReplaceAllString(text, c.as)
	}
	text += "exit " + tr.exit + "\n"
	var lines []string
	for line := range strings.Lines(tr.stdout) {
		var fields []string
		if keys := key.FindAllStringSubmatch(line, -1); keys != nil {
			for _, k := range keys {
				fields = append(fields, k[1])
			}
		} else {
			for f := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "\x1f") {
				switch {
				case number.MatchString(f):
					f = "number"
				case f != "":
					f = "text"
				}
				fields = append(fields, f)
			}
		}
		lines = append(lines, strings.Join(fields, " | "))
	}
	slices.Sort(lines)
	return text + strings.Join(lines, "\n")
}

// TestFormSeesChanges checks that form detects changes that a later Slurm might make.
func TestFormSeesChanges(t *testing.T) {
	for _, tt := range []struct{ name, old, new string }{
		{"squeue-mixed", "\x1fmain\x1f", "\x1f"},                       // one field fewer
		{"squeue-mixed", "1795228262", "2026-11-21T02:31:02"},          // another time format
		{"sacct-mixed", "3:0", "exit 3"},                               // another exit code format
		{"scontrol-show-held", "Reason=", "StateReason="},              // another key
		{"sbatch-refused", "Batch job submission failed: ", "Sorry: "}, // another message
		{"sbatch-accepted", "\n", " submitted\n"},
	} {
		was := readTranscript(t, tt.name)
		is := was
		is.stdout, is.stderr = strings.Replace(is.stdout, tt.old, tt.new, 1), strings.Replace(is.stderr, tt.old, tt.new, 1)
		if was.form() == is.form() {
			t.Errorf("%s: %q for %q is not seen", tt.name, tt.new, tt.old)
		}
	}
}

// A fact states what the job must have done, which the test knows beforehand.
type fact struct {
	Name           string
	State          slurm.State
	Exit           string // "-" means unknown
	Reason         string // "*" means any
	Nodes          int
	Started, Ended bool
	Comment        string
}

// The jobs of the transcripts by name, as squeue and sacct must report them. Asked by name, sacct leaves out
// the held job; and this cluster does not store comments.
var comment = `spaces, commas | bars and "quotes"`

var queueFacts = []fact{
	{"t-cancelled", slurm.Cancelled, "-", "*", 1, true, true, ""},
	{"t-fails", slurm.Failed, "-", "NonZeroExitCode", 1, true, true, ""},
	{"t-held", slurm.Pending, "-", "JobHeldUser", 0, false, false, comment},
	{"t-ok", slurm.Completed, "-", "", 2, true, true, ""},
	{"t-requeued", slurm.Completed, "-", "", 1, true, true, ""},
	{"t-running", slurm.Running, "-", "", 2, true, false, ""},
}

var accountingFacts = []fact{
	{"t-cancelled", slurm.Cancelled, "*", "", 1, true, true, ""},
	{"t-fails", slurm.Failed, "3:0", "*", 1, true, true, ""},
	{"t-ok", slurm.Completed, "0:0", "", 2, true, true, ""},
	{"t-requeued", slurm.Completed, "0:0", "*", 1, true, true, ""},
	{"t-requeued", slurm.Requeued, "-", "*", 1, true, true, ""},
	{"t-running", slurm.Running, "-", "", 2, true, false, ""},
}

// mark is a suffix for job names if TestTranscripts runs again in one process (-count): jobs are looked up by
// name, and the cluster still knows the first ones.
var mark string

func checkFacts(t *testing.T, jobs []slurm.Job, want []fact) {
	t.Helper()
	var got []fact
	for _, j := range jobs {
		f := fact{strings.TrimSuffix(j.Name, mark), j.State, "-", j.Reason, len(j.Nodes), !j.Start.IsZero(), !j.End.IsZero(), j.Comment}
		if j.ExitCode != nil {
			f.Exit = j.ExitCode.String()
		}
		if j.ID == "" || j.Partition != "main" || j.Submit.IsZero() || !strings.HasPrefix(j.Word, string(j.State)) ||
			f.Started && j.Start.Before(j.Submit) || f.Ended && j.End.Before(j.Start) {
			t.Errorf("job %+v", j)
		}
		got = append(got, f)
	}
	slices.SortFunc(got, func(a, b fact) int {
		return strings.Compare(a.Name+string(a.State), b.Name+string(b.State))
	})
	if len(got) == len(want) {
		for i, w := range want {
			if w.Exit == "*" {
				got[i].Exit = "*"
			}
			if w.Reason == "*" {
				got[i].Reason = "*"
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
}

func TestParseTranscripts(t *testing.T) {
	jobs, err := slurm.ParseQueue([]byte(readTranscript(t, "squeue-mixed").stdout))
	if err != nil {
		t.Error(err)
	}
	checkFacts(t, jobs, queueFacts)

	jobs, err = slurm.ParseAccounting([]byte(readTranscript(t, "sacct-mixed").stdout))
	if err != nil {
		t.Error(err)
	}
	checkFacts(t, jobs, accountingFacts)
	for _, j := range jobs {
		if j.Cluster != "bench" {
			t.Errorf("cluster of %+v", j)
		}
		if j.Name == "t-fails" && (j.DerivedExit == nil || j.DerivedExit.Status != 3) {
			t.Errorf("derived exit of %+v", j)
		}
	}

	jobs, err = slurm.ParseShow([]byte(readTranscript(t, "scontrol-show-running").stdout))
	if err != nil {
		t.Error(err)
	}
	checkFacts(t, jobs, []fact{{"t-running", slurm.Running, "-", "", 2, true, false, ""}})

	jobs, err = slurm.ParseShow([]byte(readTranscript(t, "scontrol-show-held").stdout))
	if err != nil {
		t.Error(err)
	}
	checkFacts(t, jobs, []fact{{"t-held", slurm.Pending, "-", "JobHeldUser", 0, false, false, comment}})
	if len(jobs) == 1 && (jobs[0].Restarts == nil || *jobs[0].Restarts != 0) {
		t.Errorf("restarts of %+v", jobs[0])
	}
}

// TestTranscriptsReplayed runs the client on fakes that print the recorded output.
func TestTranscriptsReplayed(t *testing.T) {
	ctx := t.Context()
	replay := func(name string) *slurm.Client {
		command, _, _ := strings.Cut(name, "-")
		tr := readTranscript(t, name)
		dir := t.TempDir()
		for file, text := range map[string]string{
			"out": tr.stdout, "err": tr.stderr,
			command: "#!/bin/sh\ncat " + dir + "/out; cat " + dir + "/err >&2; exit " + tr.exit + "\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return &slurm.Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
	}
	if s, err := replay("sbatch-accepted").Submit(ctx, "job.sh"); err != nil || s.ID == "" || s.Notice != "" {
		t.Errorf("accepted: %+v, %v", s, err)
	}
	_, err := replay("sbatch-refused").Submit(ctx, "job.sh")
	if r, ok := err.(*slurm.RefusedError); !ok || r.Exit != 1 || !strings.Contains(err.Error(), "job.sh: sbatch: error: ") ||
		!strings.HasSuffix(r.Message, "Batch job submission failed: Invalid partition name specified") {
		t.Errorf("refused: %#v", err)
	}
	if jobs, err := replay("squeue-unknown").Queue(ctx, slurm.Filter{IDs: []string{"999999"}}); err != nil || jobs != nil {
		t.Errorf("squeue of an unknown job: %+v, %v", jobs, err)
	}
	if jobs, err := replay("sacct-unknown").Accounting(ctx, time.Now(), slurm.Filter{IDs: []string{"999999"}}); err != nil || jobs != nil {
		t.Errorf("sacct of an unknown job: %+v, %v", jobs, err)
	}
}
