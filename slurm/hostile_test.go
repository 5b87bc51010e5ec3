package slurm

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostile lists values that a careless script would run, split or expand.
var hostile = []string{
	"$(touch pwned)", "`touch pwned`", "; touch pwned", "' ; touch pwned ; '", `" ; touch pwned ; "`,
	"a\ntouch pwned\nb", "$HOME", "*", "~", "a  b", "", "\\", "!!", "-n", "A=b", "é€", "\xff", "\t", "#x", "&", "%s%n",
}

// runScript runs a rendered script under bash with a fake srun on PATH that records its arguments and
// environment. It returns the folder in which the script ran, its output, and its exit code.
func runScript(t *testing.T, s Script, env ...string) (dir, output string, code int) {
	t.Helper()
	dir = t.TempDir()
	bin := filepath.Join(dir, "bin")
	write := func(name, text string) string {
		path := filepath.Join(bin, name)
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("srun", "#!/bin/bash\nprintf '%s\\0' \"$@\" >\"$FAKE_OUT/argv\"\nenv -0 >\"$FAKE_OUT/env\"\nexit \"${FAKE_EXIT:-0}\"\n")
	write("scontrol", "#!/bin/bash\n[ \"$*\" = 'show hostnames node[1-2]' ] && printf 'node1\\nnode2\\n'\n")
	if s.Worker == "" {
		s.Worker = write("worker", "#!/bin/bash\nprintf '%s\\0' \"$@\" >\"$FAKE_OUT/worker-argv\"\necho 10.0.0.7 40123\n")
	}
	if s.RunDir == "" && s.Pack == nil {
		s.RunDir = filepath.Join(dir, "it's $(touch pwned) a run")
		if err := os.Mkdir(s.RunDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "job.sh")
	if err := os.WriteFile(script, render(t, s), 0o644); err != nil {
		t.Fatal(err)
	}
	checkShell(t, script)
	cmd := exec.Command("bash", script)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "FAKE_OUT=" + dir,
		"SLURM_JOB_ID=41", "SLURM_JOB_NODELIST=node[1-2]"}, env...)
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		if filepath.Base(path) == "pwned" {
			t.Errorf("a value ran as a command: %s exists", path)
		}
		return nil
	})
	return dir, string(out), cmd.ProcessState.ExitCode()
}

func readNulls(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// free returns a script whose run folder and worker runScript creates.
func free() Script {
	s := plainScript()
	s.RunDir, s.Worker = "", ""
	return s
}

func TestHostileValuesStayValues(t *testing.T) {
	s := free()
	s.Command = append([]string{"/bin/prog"}, hostile...)
	s.Environment = map[string]string{}
	for i, v := range hostile {
		s.Environment["V"+string(rune('A'+i))] = v
	}
	s.Interface = "$(touch pwned)'\""
	s.CPUBind = "$(touch pwned) '"
	s.Partition, s.Account = `"; touch pwned; "`, "$(touch pwned)"
	s.Options = map[string]string{"comment": "`touch pwned`\" # '"}
	dir, out, code := runScript(t, s)
	if code != 0 || out != "" {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	argv := readNulls(t, filepath.Join(dir, "argv"))
	if len(argv) < len(s.Command) {
		t.Fatalf("argv %q", argv)
	}
	options := len(argv) - len(s.Command)
	if d := cmp.Diff(s.Command, argv[options:]); d != "" {
		t.Errorf("command (-want +got):\n%s", d)
	}
	want := []string{"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=2",
		"--cpu-bind=$(touch pwned) '", "--kill-on-bad-exit=1", "--export=ALL"}
	if d := cmp.Diff(want, argv[:options]); d != "" {
		t.Errorf("srun options (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"address", "--interface", s.Interface}, readNulls(t, filepath.Join(dir, "worker-argv"))); d != "" {
		t.Errorf("worker (-want +got):\n%s", d)
	}
	seen := map[string]string{}
	for _, v := range readNulls(t, filepath.Join(dir, "env")) {
		name, value, _ := strings.Cut(v, "=")
		seen[name] = value
	}
	for name, value := range s.Environment {
		if seen[name] != value {
			t.Errorf("%s is %q, want %q", name, seen[name], value)
		}
	}
	for name, value := range map[string]string{
		"SCALEBENCH_RUN":     filepath.Join(dir, "it's $(touch pwned) a run"),
		"SCALEBENCH_RESTART": "0", "SCALEBENCH_INTERFACE": s.Interface,
		"MASTER_ADDR": "10.0.0.7", "MASTER_PORT": "40123", "OMP_NUM_THREADS": "2",
	} {
		if seen[name] != value {
			t.Errorf("%s is %q, want %q", name, seen[name], value)
		}
	}
}

// An exitRecord is the record that a script writes at its end.
type exitRecord struct {
	ExitCode int     `json:"exit_code"`
	Signal   string  `json:"signal"`
	Start    float64 `json:"start_unix"`
	End      float64 `json:"end_unix"`
	JobID    string  `json:"job_id"`
	Nodelist string  `json:"nodelist"`
	Restart  int     `json:"restart"`
}

func readExit(t *testing.T, path string) exitRecord {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r exitRecord
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, b)
	}
	return r
}

func TestExitRecord(t *testing.T) {
	s := free()
	run := func(env ...string) exitRecord {
		dir, _, code := runScript(t, s, env...)
		records, _ := filepath.Glob(filepath.Join(dir, "it's*", "exit-*"))
		if len(records) != 1 {
			t.Fatalf("exit records: %q", records)
		}
		r := readExit(t, records[0])
		if r.ExitCode != code || r.Start < 1e9 || r.End < r.Start {
			t.Errorf("exit %d, record %+v", code, r)
		}
		if want := filepath.Base(records[0]); want != "exit-0.json" && want != "exit-2.json" {
			t.Errorf("record is called %s", want)
		}
		r.Start, r.End = 0, 0
		return r
	}
	for _, tt := range []struct {
		env  []string
		want exitRecord
	}{
		{nil, exitRecord{JobID: "41", Nodelist: "node[1-2]"}},
		{[]string{"FAKE_EXIT=3", "SLURM_RESTART_COUNT=2"}, exitRecord{ExitCode: 3, JobID: "41", Nodelist: "node[1-2]", Restart: 2}},
		{[]string{`SLURM_JOB_NODELIST=a"b\c`, `SLURM_JOB_ID=4"1`}, exitRecord{JobID: "41", Nodelist: "abc"}},
	} {
		if d := cmp.Diff(tt.want, run(tt.env...)); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.env, d)
		}
	}
}

func TestScriptStopsWithItsReason(t *testing.T) {
	const ran = "argv" // written by srun
	tests := []struct {
		name string
		mod  func(*Script)
		want string
	}{
		{"setup line", func(s *Script) { s.Setup = []string{"false # not there"} }, "setup failed: false"},
		{"module", func(s *Script) { s.Modules = []string{"GCC/12"} }, "setup failed: module load GCC/12"},
		{"worker missing", func(s *Script) { s.Worker = "/nonexistent/worker" }, "/nonexistent/worker address failed"},
		{"worker silent", func(s *Script) { s.Worker = "/bin/true" }, "printed ''"},
		{"workdir", func(s *Script) { s.Workdir = "/nonexistent" }, "the working folder is missing"},
		{"run folder", func(s *Script) { s.RunDir = "/nonexistent/run" }, "cannot write in the run folder /nonexistent/run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := free()
			tt.mod(&s)
			dir, out, code := runScript(t, s)
			if code == 0 || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %q in:\n%s", code, tt.want, out)
			}
			if _, err := os.Stat(filepath.Join(dir, ran)); err == nil {
				t.Error("srun ran nevertheless")
			}
			if s.RunDir == "" && s.Pack == nil {
				if r := readExit(t, filepath.Join(dir, "it's $(touch pwned) a run", "exit-0.json")); r.ExitCode != code {
					t.Errorf("recorded %+v, exited %d", r, code)
				}
			}
		})
	}
}

func TestSecondCopyEndsImmediately(t *testing.T) {
	run := t.TempDir()
	s := free()
	s.RunDir = run
	if _, out, code := runScript(t, s); code != 0 {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	before, err := os.ReadFile(filepath.Join(run, "exit-0.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  []string
		code int
	}{
		{"another job", []string{"SLURM_JOB_ID=42"}, DuplicateExit},
		{"another job, requeued before the first", []string{"SLURM_JOB_ID=42", "SLURM_RESTART_COUNT=1"}, DuplicateExit},
		{"the same incarnation again", nil, DuplicateExit},
		{"the first job's requeue", []string{"SLURM_RESTART_COUNT=1"}, 0},
	} {
		dir, out, code := runScript(t, s, tt.env...)
		_, err := os.Stat(filepath.Join(dir, "argv"))
		if code != tt.code || (err == nil) != (tt.code == 0) || (code != 0 && !strings.Contains(out, "second copy")) {
			t.Errorf("%s: exit %d, srun called: %t\n%s", tt.name, code, err == nil, out)
		}
	}
	after, err := os.ReadFile(filepath.Join(run, "exit-0.json"))
	if err != nil || string(before) != string(after) {
		t.Errorf("the first copy's record changed from %s to %s (%v)", before, after, err)
	}
}

// A site's template cannot use up memory or time: the error names the template and the limit.
func TestHostileTemplates(t *testing.T) {
	const body = "#!/bin/bash\n{{template \"body\" .}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"nested loops":          {"{{range 1000000}}{{range 1000000}}x{{end}}{{end}}", "loops and templates take over 100000 turns"},
		"loops without output":  {"{{range 1000000}}{{range 1000000}}{{end}}{{end}}", "loops and templates take over 100000 turns"},
		"in a branch":           {"{{if true}}{{with 1}}{{range 1000000}}{{range 1000000}}{{if false}}x{{end}}{{end}}{{end}}{{end}}{{end}}", "loops and templates take over 100000 turns"},
		"in an else":            {"{{range 0}}{{else}}{{range 1000000}}{{end}}{{end}}", "loops and templates take over 100000 turns"},
		"a template by itself":  {`{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`, "loops and templates take over 100000 turns"},
		"in a block":            {`{{block "b" .}}{{range 1000000}}{{end}}{{end}}`, "loops and templates take over 100000 turns"},
		"a long text, repeated": {"{{range 1000}}" + strings.Repeat("x", 2000) + "{{end}}", "the script has over 1024 KiB"},
		"print that doubles":    {`{{$x := "x"}}{{range 100}}{{$x = print $x $x}}{{end}}`, "a text of over 1024 KiB"},
		"printf that doubles":   {`{{$x := "x"}}{{range 100}}{{$x = printf "%s%s" $x $x}}{{end}}`, "a text of over 1024 KiB"},
		"html that grows":       {`{{$x := "<"}}{{range 100}}{{$x = html $x $x}}{{end}}`, "a text of over 1024 KiB"},
		"a wide printf":         {`{{printf "%999999d%999999d" 1 1}}`, "a text of over 1024 KiB"},
		"many wide verbs":       {`{{printf "` + strings.Repeat("%999999d", 1000) + `" 1}}`, "a printf with over 32 verbs"},
	} {
		err := plainScript().RenderWith(io.Discard, "etc/site.tmpl", body+c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "etc/site.tmpl") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// The built-in template is unaffected, and an ordinary loop is allowed.
	if err := plainScript().Render(io.Discard); err != nil {
		t.Error(err)
	}
	if err := plainScript().RenderWith(io.Discard, "etc/site.tmpl", body+"{{range 1000}}# {{printf \"%d of %s\" . $.JobName}}\n{{end}}"); err != nil {
		t.Error(err)
	}
}
