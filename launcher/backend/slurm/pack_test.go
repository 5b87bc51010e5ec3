package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// packer returns a backend whose sbatch records its calls and prints answer.
func packer(t *testing.T, packing, answer string) *Backend {
	t.Helper()
	bin := t.TempDir()
	for name, text := range map[string]string{
		"sbatch":   "echo \"$*\" >>" + bin + "/calls\n" + answer + "\n",
		"scontrol": "echo 'MaxArraySize            = 4'\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &Backend{
		Creator: launcher.Creator{Folder: rundir.OpenStudy(t.TempDir(), "packed"), Worker: "/opt/scalebench-worker", Scripted: true,
			Site: &study.Site{Partitions: []study.Partition{{Name: "a", MaxTime: study.Duration(3 * time.Hour)}, {Name: "b"}}}},
		Client:  &slurm.Client{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}},
		packing: packing, limits: launcher.Limits{InFlight: 2},
	}
}

func calls(t *testing.T, b *Backend) int {
	t.Helper()
	bin, _, _ := strings.Cut(strings.TrimPrefix(b.Client.Env[0], "PATH="), ":")
	text, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

// planned returns a run of the given number of workers, at most two per node.
func planned(partition string, workers, repeat, cpus int) launcher.Todo {
	p := study.Point{ID: fmt.Sprintf("native-w%d", workers), Study: "packed", Framework: "native", Workers: workers, Repeat: repeat,
		Nodes: (workers + 1) / 2, WorkersPerNode: min(workers, 2)}
	p.Resources = study.Resources{Device: "cpu", CPUsPerWorker: cpus, Memory: 1 << 30, Time: study.Duration(30 * time.Minute)}
	return launcher.Todo{Planned: study.Planned{Point: p, Partition: partition, Exclusive: workers == 1}, Number: 1}
}

func names(loads [][]launcher.Todo) (list []string) {
	for _, load := range loads {
		name := ""
		for _, t := range load {
			name += fmt.Sprintf(" %s%d.%d", t.Partition, t.Point.Workers, t.Point.Repeat)
		}
		list = append(list, strings.TrimSpace(name))
	}
	return list
}

func TestLoads(t *testing.T) {
	var todo []launcher.Todo
	for _, workers := range []int{1, 2, 4} {
		for repeat := 1; repeat <= 5; repeat++ {
			if repeat == 1 || workers == 2 {
				todo = append(todo, planned("a", workers, repeat, 1))
			}
		}
	}
	todo = append(todo, planned("b", 2, 6, 1), planned("a", 4, 2, 1), planned("a", 2, 7, 3))
	away := planned("a", 4, 3, 1)
	away.Exclude = []string{"node7"} // its job asks for something else
	todo = append(todo, away)
	again := func(repeat int, pack *launcher.Member) launcher.Todo {
		t := planned("a", 1, repeat, 1)
		t.Again = &launcher.Attempt{Record: launcher.Record{Pack: pack}}
		return t
	}
	x := &launcher.Member{Name: "array-x", Packing: study.PackArray}
	todo = append(todo, again(8, x), again(9, nil), again(10, x))

	for packing, want := range map[string][]string{
		study.PackJob: {"a1.1", "a2.1", "a2.2", "a2.3", "a2.4", "a2.5", "a4.1", "b2.6", "a4.2", "a2.7", "a4.3", "a1.8 a1.10", "a1.9"},
		// MaxArraySize is 4.
		study.PackArray:      {"a1.1", "a2.1 a2.2 a2.3 a2.4", "a2.5", "a4.1 a4.2", "b2.6", "a2.7", "a4.3", "a1.8 a1.10", "a1.9"},
		study.PackAllocation: {"a1.1 a2.1 a2.2 a2.3 a2.4 a2.5 a4.1 a4.2 a2.7 a4.3", "b2.6", "a1.8 a1.10", "a1.9"},
	} {
		loads, err := packer(t, packing, "").Loads(t.Context(), todo)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, names(loads)); d != "" {
			t.Errorf("%s:\n%s", packing, d)
		}
	}
	// In blocks, the repeats of a point are in different jobs.
	b := packer(t, study.PackAllocation, "")
	b.blocks = true
	loads, err := b.Loads(t.Context(), todo)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a1.1 a2.1 a4.1", "a2.2 a4.2", "a2.3 a4.3", "a2.4", "a2.5", "b2.6", "a2.7", "a1.8 a1.10", "a1.9"}, names(loads)); d != "" {
		t.Errorf("blocks:\n%s", d)
	}
}

func TestPackIsRecordedBeforeSubmission(t *testing.T) {
	for packing, want := range map[string][]string{
		study.PackArray:      {"95_0", "95_1"},
		study.PackAllocation: {"95", "95"},
	} {
		// sbatch finds everything in place.
		b := packer(t, packing, `d=${2%/job.sh}; test "$(wc -l <"$d/runs.list")" = 2 && cut -f3 "$d/runs.list" | while read -r r; do test -e "$r/attempt.json" || exit 1; done && echo 95`)
		begun, err := launcher.Begin(t.Context(), b, []launcher.Todo{planned("a", 4, 1, 1), planned("a", 4, 2, 1)})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := launcher.Attempts(b.Folder)
		if err != nil || len(stored) != 2 {
			t.Fatalf("%d attempts, %v", len(stored), err)
		}
		for i, a := range stored {
			if d := cmp.Diff(begun[i], a); d != "" {
				t.Errorf("the attempt begun and the one on disk:\n%s", d)
			}
			if a.Submission == nil || a.Submission.JobID != want[i] || a.Record.JobName != "packed/"+a.Record.Pack.Name {
				t.Errorf("%s: attempt %d has %+v, %+v", packing, i, a.Submission, a.Record)
			}
		}
	}
}

// If the answer to a pack's submission was lost, or sbatch never got it, the pack is submitted again completely
// and under the same name.
func TestPackIsResubmitted(t *testing.T) {
	b := packer(t, study.PackArray, "kill -9 $$")
	load := []launcher.Todo{planned("a", 4, 1, 1), planned("a", 4, 2, 1), planned("a", 4, 3, 1)}
	_, err := launcher.Begin(t.Context(), b, load)
	var gone *slurm.UnreachableError
	if !errors.As(err, &gone) || !gone.MaybeQueued {
		t.Fatalf("%v", err)
	}
	first, err := launcher.Attempts(b.Folder)
	if err != nil || len(first) != 3 || first[0].Submission != nil {
		t.Fatalf("%+v, %v", first, err)
	}
	script, err := os.ReadFile(first[0].Script())
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		if lost { // the command ended before the pack's folder was there
			if err := os.RemoveAll(filepath.Dir(first[0].Script())); err != nil {
				t.Fatal(err)
			}
		}
		// The plan may hold fewer of them by now.
		before := calls(t, b)
		again := load[1]
		again.Again = first[1]
		if _, err := launcher.Begin(t.Context(), b, []launcher.Todo{again}); !errors.As(err, &gone) {
			t.Fatalf("%v", err)
		}
		if n := calls(t, b) - before; n != 1 {
			t.Errorf("sbatch was called %d times", n)
		}
		now, err := launcher.Attempts(b.Folder)
		if d := cmp.Diff(first, now); d != "" || err != nil {
			t.Errorf("%v\n%s", err, d)
		}
		text, err := os.ReadFile(first[0].Script())
		if d := cmp.Diff(string(script), string(text)); d != "" || err != nil {
			t.Errorf("%v\n%s", err, d)
		}
	}
}

func TestPackRefused(t *testing.T) {
	b := packer(t, study.PackAllocation, "echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1")
	begun, err := launcher.Begin(t.Context(), b, []launcher.Todo{planned("a", 4, 1, 1), planned("a", 2, 1, 1)})
	if err != nil || len(begun) != 2 {
		t.Fatalf("%d attempts, %v", len(begun), err)
	}
	for _, a := range begun {
		if a.Verdict == nil || a.Verdict.Status != metrics.Failed || !strings.Contains(a.Verdict.Detail, "Invalid qos specification") {
			t.Errorf("%+v", a.Verdict)
		}
	}
}

// If another command has started one of the runs, the others are indexed without a
// gap.
func TestPackSkipsRunsOfAnotherCommand(t *testing.T) {
	b := packer(t, study.PackArray, "echo 95")
	load := []launcher.Todo{planned("a", 4, 1, 1), planned("a", 4, 2, 1), planned("a", 4, 3, 1)}
	if _, err := b.Create(load[1], b.record(load[1], ""), nil); err != nil {
		t.Fatal(err)
	}
	begun, err := launcher.Begin(t.Context(), b, load)
	if err != nil || len(begun) != 2 || begun[1].Submission.JobID != "95_1" || begun[1].Point.Repeat != 3 {
		t.Fatalf("%+v, %v", begun, err)
	}
	if begun, err = launcher.Begin(t.Context(), b, load); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%+v, %v", begun, err)
	}
}

func TestAllocationIsSizedForTheLargest(t *testing.T) {
	b := packer(t, study.PackAllocation, "")
	var attempts []*launcher.Attempt
	for i, todo := range []launcher.Todo{planned("a", 6, 1, 1), planned("a", 2, 1, 3), planned("a", 1, 1, 2)} {
		a := b.Draft(todo.Planned)
		a.Record.Exclude = []string{fmt.Sprintf("node%d", 9-i)}
		a.Record.Pack = &launcher.Member{Name: "allocation-x", Packing: study.PackAllocation, Index: i}
		a.Record.JobName = "packed/allocation-x"
		attempts = append(attempts, a)
	}
	s, list, err := b.packed(*attempts[0].Record.Pack, attempts)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range s.Directives() {
		got[o.Name] = o.Value
	}
	dir := filepath.Join(b.Folder.Path(), "allocation-x")
	// 3 nodes for 6 workers, 2 tasks of 3 CPUs, 3 times 30 minutes and a margin.
	want := map[string]string{"job-name": "packed/allocation-x", "partition": "a", "nodes": "3", "ntasks-per-node": "2", "cpus-per-task": "3",
		"mem": "2048M", "time": "01:32:00", "exclusive": "", "output": dir + "/job.log", "no-requeue": "", "signal": "B:USR1@90", "exclude": "node7,node8,node9"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if lines := strings.Split(string(list), "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], "3\t--nodes=1 --ntasks=2 --ntasks-per-node=2 --cpus-per-task=3 --time=30 --job-name=native-w2-r1-a1\t") {
		t.Errorf("%s", list)
	}
	var text bytes.Buffer
	if err := b.render(&text, s); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("bash", "-n")
	check.Stdin = &text
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for range 20 {
		attempts = append(attempts, attempts[2])
	}
	if s, _, _ := b.packed(*attempts[0].Record.Pack, attempts); s.Time != 3*time.Hour {
		t.Errorf("23 runs ask for %v, and the partition allows 3 hours", s.Time)
	}
}

func TestPickInArrays(t *testing.T) {
	jobs := []slurm.Job{
		{ID: "95_[1-2%2]", Name: "x", State: slurm.Pending},
		{ID: "95_0", Name: "x", State: slurm.Running},
		{ID: "97_[0-2]", Name: "x", State: slurm.Pending}, // a second copy
		{ID: "99_[1,3,...]", Name: "cut", State: slurm.Pending},
		{ID: "32", Name: "ended", State: slurm.Cancelled}, // while all of it waited
		{ID: "12", Name: "all", State: slurm.Running},
	}
	dir := t.TempDir()
	member := func(name, packing string, index int) *launcher.Attempt {
		run := rundir.Folder(filepath.Join(dir, fmt.Sprintf("%s-r%d-a1", name, index)))
		return &launcher.Attempt{Run: run, Record: launcher.Record{JobName: name, Pack: &launcher.Member{Name: name, Packing: packing, Index: index}}}
	}
	owned := member("x", study.PackArray, 0)
	owned.Run = runIn(t, dir, "95_0")
	over := member("cut", study.PackArray, 8) // which squeue has forgotten
	over.Run = runIn(t, filepath.Join(dir, "over"), "99_8")
	attempts := []*launcher.Attempt{over, owned, member("x", study.PackArray, 2), member("x", study.PackArray, 3),
		member("cut", study.PackArray, 7), member("ended", study.PackArray, 0), member("ended", study.PackArray, 1),
		member("all", study.PackAllocation, 5)}
	got := pick(attempts, jobs)
	for i, want := range []string{"", "95_0", "97_2", "", "99_[1,3,...]", "32", "32", "12"} {
		id := ""
		if j := got[attempts[i].Run]; j != nil {
			id = j.ID
		}
		if id != want {
			t.Errorf("attempt %d is job %q, want %q", i, id, want)
		}
	}
}

// Finding one task means that the whole array was submitted.
func TestAdoptArray(t *testing.T) {
	b := packer(t, study.PackArray, "kill -9 $$")
	if _, err := launcher.Begin(t.Context(), b, []launcher.Todo{planned("a", 4, 1, 1), planned("a", 4, 2, 1)}); err == nil {
		t.Fatal("no error")
	}
	attempts, err := launcher.Attempts(b.Folder)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := adopt(attempts, map[rundir.Folder]*slurm.Job{attempts[1].Run: {ID: "95_1"}}); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	again, err := launcher.Attempts(b.Folder)
	if d := cmp.Diff(attempts, again); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for i, a := range again {
		if want := fmt.Sprintf("95_%d", i); a.Submission == nil || a.Submission.JobID != want {
			t.Errorf("attempt %d: %+v, want job %s", i, a.Submission, want)
		}
	}
}

// One job runs all runs of an allocation. It is cancelled only if all of them are cancelled. For
// a single run, its step is cancelled if it has begun; otherwise the job skips the run.
func TestCancelAllocation(t *testing.T) {
	b := packer(t, study.PackAllocation, "echo 95")
	begun, err := launcher.Begin(t.Context(), b, []launcher.Todo{planned("a", 4, 1, 1), planned("a", 4, 2, 1), planned("a", 2, 1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	bin, _, _ := strings.Cut(strings.TrimPrefix(b.Client.Env[0], "PATH="), ":")
	row := strings.Join([]string{"95", begun[0].Record.JobName, "a", "RUNNING", "None", "node1", "1795228241", "1795228241", "N/A", ""}, "\x1f")
	steps := "95.batch\x1fbatch\n95.3\x1f" + begun[0].Run.Name()
	for name, text := range map[string]string{"squeue": "case $1 in --steps) echo '" + steps + "';; *) echo '" + row + "';; esac", "sacct": "true", "scancel": "echo $* >>" + bin + "/cancelled"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := begun[0].Run.TakeClaim(0, "95"); err != nil { // the run has begun
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		runs []*launcher.Attempt // runs to cancel
		what string
		told string // arguments of scancel
	}{
		{begun[2:], "job 95 continues with 2 other runs and skips this one", ""},
		{begun[:1], "asked Slurm to end step 95.3; job 95 continues with 1 other run", "--signal=TERM 95.3\n"},
		{begun[:2], "asked Slurm to end job 95", "--signal=TERM 95.3\n95\n"},
	} {
		states, err := launcher.SurveyWith(t.Context(), b, c.runs)
		if err != nil {
			t.Fatal(err)
		}
		endings, err := launcher.Cancel(t.Context(), states)
		if err != nil || len(endings) != len(c.runs) {
			t.Fatalf("%d endings of %d: %v", len(endings), len(c.runs), err)
		}
		for _, e := range endings {
			if !e.Asked || e.What != c.what {
				t.Errorf("asked %v, %q, want %q", e.Asked, e.What, c.what)
			}
		}
		if told, err := os.ReadFile(filepath.Join(bin, "cancelled")); string(told) != c.told || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("scancel was called with %q, want %q; %v", told, c.told, err)
		}
	}
}

func TestJudgeTurn(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	job := func(state slurm.State, ended time.Duration) *slurm.Job {
		j := &slurm.Job{State: state, Word: string(state)}
		if state.Terminal() {
			j.End = now.Add(-ended)
		}
		return j
	}
	exit := func(code int, signal string, seconds float64) *launcher.Exit {
		return &launcher.Exit{ExitCode: code, Signal: signal, StartUnix: 999_000, EndUnix: 999_000 + seconds}
	}
	good := launcher.Traces{Begun: true, Exit: exit(0, "", 60), Done: 1, Stopped: 1}
	begun := launcher.Traces{Begun: true}
	for name, c := range map[string]struct {
		traces launcher.Traces
		job    *slurm.Job
		want   metrics.Status
		detail string
	}{
		"queued":                      {launcher.Traces{}, job(slurm.Pending, 0), metrics.Pending, ""},
		"waits its turn":              {launcher.Traces{}, job(slurm.Running, 0), metrics.Pending, "turn"},
		"its turn":                    {begun, job(slurm.Running, 0), metrics.Running, ""},
		"done, others go on":          {good, job(slurm.Running, 0), metrics.Done, ""},
		"done, another failed":        {good, job(slurm.Failed, time.Hour), metrics.Done, ""},
		"done, then the node failed":  {good, job(slurm.NodeFail, time.Hour), metrics.Done, ""},
		"failed, others go on":        {launcher.Traces{Begun: true, Exit: exit(3, "", 60)}, job(slurm.Running, 0), metrics.Failed, "exit code 3"},
		"over its own limit":          {launcher.Traces{Begun: true, Exit: exit(143, "", 660)}, job(slurm.Running, 0), metrics.TimedOut, ""},
		"warned":                      {launcher.Traces{Begun: true, Exit: exit(1, "USR1", 60)}, job(slurm.Failed, time.Hour), metrics.TimedOut, "in order"},
		"cut short, may go on":        {launcher.Traces{Begun: true, Exit: exit(143, "TERM", 60)}, job(slurm.Pending, 0), metrics.Requeued, ""},
		"cut short":                   {launcher.Traces{Begun: true, Exit: exit(143, "TERM", 60)}, job(slurm.Cancelled, time.Hour), metrics.Cancelled, ""},
		"under it the node failed":    {begun, job(slurm.NodeFail, time.Hour), metrics.NodeFailed, ""},
		"time was over":               {begun, job(slurm.Timeout, time.Hour), metrics.TimedOut, ""},
		"no time for it":              {launcher.Traces{}, job(slurm.Timeout, time.Hour), metrics.Cancelled, "nothing was run"},
		"no sign of it yet":           {launcher.Traces{}, job(slurm.Completed, 5*time.Second), metrics.Running, ""},
		"none of it after the others": {launcher.Traces{}, job(slurm.Completed, time.Hour), metrics.Cancelled, "nothing was run"},
	} {
		got, detail := judgeJob(jobEvidence{Evidence: launcher.Evidence{Ranks: 1, Limit: 10 * time.Minute, Now: now, Traces: c.traces},
			Shared: true, Asked: true, Submitted: true, Created: now.Add(-2 * time.Hour), Job: c.job})
		if got != c.want || !strings.Contains(detail, c.detail) {
			t.Errorf("%s: %s %q, want %s with %q", name, got, detail, c.want, c.detail)
		}
	}
}

func TestEnclosing(t *testing.T) {
	for name, c := range map[string]struct {
		env  string
		want *launcher.Allocation
		err  string
	}{
		"none": {"SLURM_CONF=/etc/slurm.conf", nil, ""},
		"two nodes": {"SLURM_JOB_ID=95 SLURM_JOB_PARTITION=main SLURM_JOB_NUM_NODES=3 SLURM_JOB_CPUS_PER_NODE=8(x2),4 SLURM_GPUS_PER_NODE=a100:4",
			&launcher.Allocation{Backend: "slurm", JobID: "95", Partition: "main", Nodes: 3, CPUsPerNode: 4, GPUsPerNode: 4}, ""},
		"on a node": {"SLURM_JOB_ID=95 SLURM_JOB_NUM_NODES=1 SLURM_JOB_CPUS_PER_NODE=16 SLURM_GPUS_ON_NODE=2",
			&launcher.Allocation{Backend: "slurm", JobID: "95", Nodes: 1, CPUsPerNode: 16, GPUsPerNode: 2}, ""},
		"no nodes":     {"SLURM_JOB_ID=95", nil, "SLURM_JOB_NUM_NODES"},
		"no CPUs":      {"SLURM_JOB_ID=95 SLURM_JOB_NUM_NODES=1", nil, "SLURM_JOB_CPUS_PER_NODE"},
		"strange CPUs": {"SLURM_JOB_ID=95 SLURM_JOB_NUM_NODES=1 SLURM_JOB_CPUS_PER_NODE=4(x2),99999999999999999999", nil, "not a list of CPUs"},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(c.env) {
			key, value, _ := strings.Cut(v, "=")
			env[key] = value
		}
		got, err := launcher.Enclosing(func(key string) string { return env[key] })
		if d := cmp.Diff(c.want, got); d != "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}
