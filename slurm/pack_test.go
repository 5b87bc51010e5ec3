package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestList(t *testing.T) {
	got, err := List([]Step{
		{RunDir: "/runs/a b", Nodes: 2, TasksPerNode: 4, CPUsPerTask: 8, GPUsPerNode: 4, GPUType: "a100", CPUBind: "cores", MPI: "pmix", Time: 90 * time.Second},
		{},
		{RunDir: "/runs/$c", Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1},
	})
	want := "8\t--nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=8 --gres=gpu:a100:4 --cpu-bind=cores --mpi=pmix --time=2\t/runs/a b\n" +
		"\n" +
		"1\t--nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=1\t/runs/$c\n"
	if d := cmp.Diff(want, string(got)); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for _, s := range []Step{{RunDir: "runs/a"}, {RunDir: "/runs/a\tb"}, {RunDir: "/runs/a\nb"}, {RunDir: "/runs/a", CPUBind: "a b"}} {
		if text, err := List([]Step{s}); err == nil {
			t.Errorf("%+v became %q", s, text)
		}
	}
}

func TestExpandArray(t *testing.T) {
	for _, tt := range []struct {
		id   string
		want []string
	}{
		{"41", []string{"41"}},
		{"95_3", []string{"95_3"}},
		{"48+0", []string{"48+0"}},
		{"95_[4-6%2]", []string{"95_4", "95_5", "95_6"}},
		{"95_[0]", []string{"95_0"}},
		{"95_[0,3,5-6]", []string{"95_0", "95_3", "95_5", "95_6"}},
		{"95_[0-8:4]", []string{"95_0", "95_4", "95_8"}},
		// A list that cannot be parsed stays as it is; the job can then only be found by name.
		{"95_[1,3,...]", []string{"95_[1,3,...]"}},
		{"95_[6-4]", []string{"95_[6-4]"}},
		{"95_[0-131072]", []string{"95_[0-131072]"}}, // more than a study can have
		{"95_[0-4:0]", []string{"95_[0-4:0]"}},
	} {
		var got []string
		for _, j := range ExpandArray([]Job{{ID: tt.id, Name: "n"}}) {
			if j.Name != "n" {
				t.Errorf("%s: other fields of the job were lost: %+v", tt.id, j)
			}
			got = append(got, j.ID)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s:\n%s", tt.id, d)
		}
	}
}

func FuzzExpandArray(f *testing.F) {
	for _, id := range []string{"41", "95_3", "95_[4-9%2]", "95_[0,3,5-6]", "95_[0-8:4]", "95_[1,...]", "95_[]", "95_[-]"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if len(id) > 40 {
			t.Skip("long lists of long ranges would only take time")
		}
		jobs := ExpandArray([]Job{{ID: id}})
		if len(jobs) == 0 {
			t.Fatalf("%q vanished", id)
		}
		// Either the id stays unexpanded, or every part is a task of the same array. The tasks written as a
		// list expand to themselves.
		if len(jobs) == 1 && jobs[0].ID == id {
			return
		}
		var indices []string
		for _, j := range jobs {
			array, index, ok := ArrayTask(j.ID)
			if !ok || !strings.HasPrefix(id, array+"_[") {
				t.Fatalf("%q holds %q", id, j.ID)
			}
			indices = append(indices, fmt.Sprint(index))
		}
		array, _, _ := strings.Cut(id, "_")
		if again := ExpandArray([]Job{{ID: array + "_[" + strings.Join(indices, ",") + "]"}}); !slices.EqualFunc(again, jobs, func(a, b Job) bool { return a.ID == b.ID }) {
			t.Fatalf("%q: %v, then %v", id, jobs, again)
		}
	})
}

func TestParseMaxArraySize(t *testing.T) {
	for text, want := range map[string]int{
		"AccountingStoreFlags    = (null)\nMaxArraySize            = 1001\nMaxBatchRequeue         = 5\n": 1001,
		"MaxArraySize = 0\n": 0, "": 0, "MaxArraySize = 99999999999999999999\n": 0,
	} {
		got, err := parseMaxArraySize([]byte(text))
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// packed creates run folders and a script that serves them.
func packed(t *testing.T, runs int, array bool) (s Script, dirs []string) {
	t.Helper()
	study := filepath.Join(t.TempDir(), "it's $(touch pwned) a study")
	pack := filepath.Join(study, "pack")
	if err := os.MkdirAll(pack, 0o755); err != nil {
		t.Fatal(err)
	}
	var steps []Step
	for i := range runs {
		dir := filepath.Join(study, fmt.Sprintf("run %d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
		steps = append(steps, Step{RunDir: dir, Nodes: 1, TasksPerNode: i + 1, CPUsPerTask: 1})
	}
	list, err := List(steps)
	if err == nil {
		err = os.WriteFile(filepath.Join(pack, ListName), list, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = plainScript()
	s.Worker, s.RunDir, s.Output = "", "", filepath.Join(pack, "job.log")
	s.Pack = &Pack{Dir: pack, Runs: runs, Array: array}
	return s, dirs
}

func TestArrayTaskTakesItsRun(t *testing.T) {
	s, dirs := packed(t, 3, true)
	out, said, code := runScript(t, s, "SLURM_ARRAY_JOB_ID=95", "SLURM_ARRAY_TASK_ID=1", "FAKE_EXIT=3")
	if code != 3 {
		t.Fatalf("exit %d: %s", code, said)
	}
	if argv := strings.Join(readNulls(t, filepath.Join(out, "argv")), " "); !strings.HasPrefix(argv, "--nodes=1 --ntasks=2 --ntasks-per-node=2 --cpus-per-task=1 --kill-on-bad-exit=1") {
		t.Errorf("srun %s", argv)
	}
	if r := readExit(t, filepath.Join(dirs[1], "exit-0.json")); r.ExitCode != 3 || r.JobID != "95_1" {
		t.Errorf("record %+v", r)
	}
	for _, i := range []int{0, 2} {
		if entries, _ := os.ReadDir(dirs[i]); len(entries) > 0 {
			t.Errorf("run %d was touched: %v", i, entries)
		}
	}
	// Another copy of the same array.
	if _, _, code := runScript(t, s, "SLURM_ARRAY_JOB_ID=97", "SLURM_ARRAY_TASK_ID=1"); code != DuplicateExit {
		t.Errorf("a second copy ended with %d", code)
	}
	if _, said, code := runScript(t, s, "SLURM_ARRAY_JOB_ID=95", "SLURM_ARRAY_TASK_ID=7"); code != 1 || !strings.Contains(said, "names no run folder") {
		t.Errorf("a task beyond the list ended with %d: %s", code, said)
	}
}

func TestAllocationContinuesAfterAFailure(t *testing.T) {
	s, dirs := packed(t, 3, false)
	out, said, code := runScript(t, s, "FAKE_EXIT=3")
	if code != 3 {
		t.Fatalf("exit %d: %s", code, said)
	}
	// A run on 1 of the job's 2 nodes must name that node.
	if argv := readNulls(t, filepath.Join(out, "argv")); !slices.Contains(argv, "--nodes=1") || !slices.Contains(argv, "--nodelist=node1") {
		t.Errorf("srun %q does not pin its step to the first node", argv)
	}
	for i, dir := range append(dirs, s.Pack.Dir) {
		if r := readExit(t, filepath.Join(dir, "exit-0.json")); r.ExitCode != 3 || r.JobID != "41" {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	// A second copy with another id changes nothing.
	if _, _, code := runScript(t, s, "SLURM_JOB_ID=42"); code != DuplicateExit {
		t.Errorf("a second copy ended with %d", code)
	}
	// A requeue runs only the runs that its predecessor did not finish.
	if err := os.WriteFile(filepath.Join(dirs[1], "exit-0.json"), []byte(`{"exit_code":143,"signal":"TERM"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, code := runScript(t, s, "SLURM_RESTART_COUNT=1"); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	for i, want := range []bool{false, true, false} {
		if _, err := os.Stat(filepath.Join(dirs[i], "claim-1")); (err == nil) != want {
			t.Errorf("run %d restarted: %v, want %v", i, err == nil, want)
		}
	}
}

// A job skips cancelled runs and runs the others.
func TestCancelledRunsAreLeftOut(t *testing.T) {
	s, dirs := packed(t, 3, false)
	if err := os.WriteFile(filepath.Join(dirs[1], "cancel.json"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, code := runScript(t, s); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	for i, want := range []bool{true, false, true} {
		if _, err := os.Stat(filepath.Join(dirs[i], "exit-0.json")); (err == nil) != want {
			t.Errorf("run %d was run: %v, want %v", i, err == nil, want)
		}
	}
	// The same for an array task that Slurm requeues after it claimed its run.
	a, dirs := packed(t, 2, true)
	if err := os.WriteFile(filepath.Join(dirs[1], "cancel.json"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"SLURM_RESTART_COUNT=0", "SLURM_RESTART_COUNT=1"} {
		if _, said, code := runScript(t, a, "SLURM_ARRAY_JOB_ID=95", "SLURM_ARRAY_TASK_ID=1", more); code != DuplicateExit {
			t.Errorf("%s: a cancelled task ended with %d: %s", more, code, said)
		}
	}
	if entries, _ := filepath.Glob(filepath.Join(dirs[1], "claim-*")); len(entries) > 0 {
		t.Errorf("a cancelled task claimed its run: %v", entries)
	}
}
