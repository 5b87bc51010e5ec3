package slurm

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"
)

// answering returns a client whose command is a shell script.
func answering(t *testing.T, command, script string) *Client {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Client{Env: []string{"PATH=" + dir + ":/usr/bin:/bin"}}
}

// How a command's end is classified: Slurm refused, or it did not answer, and then a submission may
// be queued.
func TestHowCommandsEnd(t *testing.T) {
	submit := func(c *Client) error { _, err := c.Submit(context.Background(), "/dev/null"); return err }
	cancel := func(c *Client) error { return c.Cancel(context.Background(), "95") }
	for _, c := range []struct {
		name, command, script string
		call                  func(*Client) error
		unreachable           bool
		queued                bool
		why                   string // "": no error
	}{
		{"cancelled", "scancel", "exit 0", cancel, false, false, ""},
		{"ended already", "scancel", "echo 'scancel: error: Kill job error on job id 95: Invalid job id specified' >&2; exit 1", cancel, false, false, ""},
		{"refused", "scancel", "echo 'scancel: error: Kill job error on job id 95: Access/permission denied' >&2; exit 1", cancel, false, false, "Access/permission denied"},
		{"refused without a word", "scancel", "exit 3", cancel, false, false, "scancel: exit status 3"},
		{"ended by a signal", "scancel", "echo dying >&2; kill -9 $$", cancel, true, false, "dying signal: killed"},
		{"a submission ended by a signal", "sbatch", "kill -9 $$", submit, true, true, "(the job may be queued nevertheless)"},
		{"a submission refused", "sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1", submit, false, false, "invalid partition"},
		{"no command", "other", "exit 0", submit, true, false, "command not found on PATH"},
	} {
		client := answering(t, c.command, c.script)
		if c.command == "other" {
			client.Env[0], _, _ = strings.Cut(client.Env[0], ":")
		}
		err := c.call(client)
		var unreachable *UnreachableError
		is := errors.As(err, &unreachable)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) || is != c.unreachable || is && unreachable.Queued() != c.queued {
			t.Errorf("%s: %v; want unreachable %v, queued %v, %q", c.name, err, c.unreachable, c.queued, c.why)
		}
		if is && strings.Contains(err.Error(), "may be queued") != c.queued {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	slow := answering(t, "scancel", "exec sleep 60")
	slow.Timeout = 50 * time.Millisecond
	var unreachable *UnreachableError
	if err := cancel(slow); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("a command that hangs: %v", err)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	if err := slow.Cancel(ended, "95"); !errors.As(err, &unreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// The options and the environment of a command, and where it is found.
func TestHowCommandsStart(t *testing.T) {
	dir := t.TempDir()
	client := answering(t, "scancel", "echo \"$@\" > "+dir+"/args; env > "+dir+"/env")
	client.Cluster = "other"
	client.Env = append(client.Env, "SBATCH_PARTITION=x", "HOME=/h")
	if err := client.Signal(context.Background(), "7.0", "USR1"); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := read("args"); got != "--clusters=other --signal=USR1 7.0\n" {
		t.Errorf("arguments %q", got)
	}
	if env := "\n" + read("env"); !strings.Contains(env, "\nSLURM_TIME_FORMAT=%s\n") || !strings.Contains(env, "\nSLURM_BITSTR_LEN=0\n") || !strings.Contains(env, "\nHOME=/h\n") {
		t.Errorf("environment %s", env)
	}
	for _, path := range []string{"PATH=", "PATH=:", "OTHER=" + dir, "PATH=" + dir} {
		if file, err := lookPath([]string{path}, "scancel"); err == nil {
			t.Errorf("%s: %s", path, file)
		}
	}
	own := strings.TrimPrefix(strings.Split(client.Env[0], ":")[0], "PATH=")
	for _, env := range [][]string{{"PATH=" + own}, {"PATH=:" + own}, {"PATH=/nowhere", "PATH=" + dir + ":" + own}} {
		if file, err := lookPath(env, "scancel"); err != nil || file != own+"/scancel" {
			t.Errorf("%v: %s, %v", env, file, err)
		}
	}
}

// The answers about one job, and about its steps.
func TestOneJob(t *testing.T) {
	const gone = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
	if _, err := answering(t, "scontrol", gone).Show(context.Background(), "95"); !errors.Is(err, ErrNoJob) {
		t.Errorf("a job that is gone: %v", err)
	}
	if _, err := answering(t, "scontrol", "exit 1").Show(context.Background(), "95"); err == nil || errors.Is(err, ErrNoJob) {
		t.Errorf("refused: %v", err)
	}
	one := "JobId=95 JobName=j UserId=u(1000) GroupId=g(1000) JobState=RUNNING Reason=None ExitCode=0:0 NodeList=n1"
	if j, err := answering(t, "scontrol", "echo '"+one+"'").Show(context.Background(), "95"); err != nil || j.ID != "95" || j.Name != "j" {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := answering(t, "scontrol", "echo '"+one+"'; echo '"+strings.Replace(one, "95", "96", 1)+"'").Show(context.Background(), "95"); err == nil || !strings.Contains(err.Error(), "scontrol show job 95: 2 jobs, not one") {
		t.Errorf("two jobs: %+v, %v", j, err)
	}
	steps, err := answering(t, "squeue", "printf '95.0"+separator+"run\\n95.1"+separator+"tail\\n'").Steps(context.Background(), "95")
	if err != nil || len(steps) != 2 || steps["run"] != "95.0" || steps["tail"] != "95.1" {
		t.Errorf("steps %v, %v", steps, err)
	}
	if steps, err := answering(t, "squeue", gone).Steps(context.Background(), "95"); err != nil || steps != nil {
		t.Errorf("steps of a job that is gone: %v, %v", steps, err)
	}
	if steps, err := answering(t, "squeue", "exit 1").Steps(context.Background(), "95"); err == nil {
		t.Errorf("refused: %v", steps)
	}
	if steps, err := answering(t, "squeue", "exit 0").Steps(context.Background(), "95,96"); err == nil {
		t.Errorf("two jobs: %v", steps)
	}
	if jobs, err := answering(t, "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1").Accounting(context.Background(), time.Now(), Filter{}); !errors.Is(err, ErrNoAccounting) {
		t.Errorf("without accounting: %v, %v", jobs, err)
	}
	if jobs, err := answering(t, "sacct", "exit 0").Accounting(context.Background(), time.Now(), Filter{IDs: []string{"95"}, Names: []string{"j"}}); err == nil {
		t.Errorf("by ids and names: %v", jobs)
	}
	size := answering(t, "scontrol", "echo 'MaxArraySize            = 1001'")
	if n, err := size.MaxArraySize(context.Background()); err != nil || n != 1001 {
		t.Errorf("%d, %v", n, err)
	}
	var unreachable *UnreachableError
	if n, err := answering(t, "scontrol", "echo nothing").MaxArraySize(context.Background()); !errors.As(err, &unreachable) {
		t.Errorf("%d, %v", n, err)
	}
	var refused *RefusedError
	if n, err := answering(t, "scontrol", "echo 'MaxArraySize = 1'").MaxArraySize(context.Background()); !errors.As(err, &refused) {
		t.Errorf("%d, %v", n, err)
	}
}

// Loops in every branch of a template are bounded, although they print nothing.
func TestLoopsInBranches(t *testing.T) {
	const loop = `{{range $i := .}}{{end}}`
	for name, text := range map[string]string{
		"a loop": loop, "if": `{{if true}}` + loop + `{{end}}`, "else": `{{if false}}{{else}}` + loop + `{{end}}`,
		"with": `{{with $ := .}}{{range $i := $}}{{end}}{{end}}`, "else of with": `{{with ""}}{{else}}` + loop + `{{end}}`, "else of range": `{{range 0}}{{else}}` + loop + `{{end}}`,
		"a loop in a loop": `{{range 1}}{{range $i := $}}{{end}}{{end}}`,
	} {
		for turns, valid := range map[int]bool{maxTurns - 2: true, maxTurns + 1: false} {
			one, err := template.New("x").Funcs(boundedFuncs()).Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := bound(one); err != nil {
				t.Fatal(err)
			}
			if err := one.Execute(io.Discard, turns); (err == nil) != valid {
				t.Errorf("%s of %d turns: %v", name, turns, err)
			}
		}
	}
	// A branch without a loop takes no turn: 99,999 of them are within the limit.
	one, err := template.New("x").Funcs(boundedFuncs()).Parse(`{{range $i := .}}{{if $i}}a{{else}}b{{end}}{{with $i}}c{{else}}d{{end}}{{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := bound(one); err != nil {
		t.Fatal(err)
	}
	if err := one.Execute(io.Discard, maxTurns-2); err != nil {
		t.Errorf("branches take turns: %v", err)
	}
	if _, err := (&boundedWriter{}).Write(make([]byte, maxScript)); err != nil {
		t.Errorf("the longest script: %v", err)
	}
	if _, err := (&boundedWriter{}).Write(make([]byte, maxScript+1)); err == nil {
		t.Error("a longer script is written")
	}
}
