package worker

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The test binary can act as a supervisor: it prints its mark and runs until its input ends.
func TestMain(m *testing.M) {
	if program := os.Getenv("SCALEBENCH_TEST_BELOW"); program != "" {
		_ = AdoptOrphans()
		_ = exec.Command("python3", "-c", program).Run()
		os.Stdout.WriteString(endBelow(func(int) bool { return false }).String())
		return
	}
	if os.Getenv("SCALEBENCH_TEST_ORPHANS") != "" {
		_ = AdoptOrphans()
		cmd := exec.Command("sh", "-c", "sleep 1000 &")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		_ = cmd.Run()
		os.Stdout.WriteString(EndOrphans(func(int) bool { return false }).String())
		return
	}
	if os.Getenv("SCALEBENCH_TEST_AS_SUPERVISOR") != "" {
		os.Stdout.WriteString(supervisorMark() + "\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// ours marks the processes of this test run, so that it spares the processes of tests running at the
// same time.
var ours = "of " + strconv.Itoa(os.Getpid())

// supervisor starts a supervisor, and returns its mark and a function that ends it.
func supervisor(t *testing.T) (mark string, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SCALEBENCH_TEST_AS_SUPERVISOR=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	end = func() { in.Close(); _ = cmd.Wait() }
	t.Cleanup(end)
	return strings.TrimSpace(line), end
}

// sleeper starts a process with the given environment; ended reports how it ended.
func sleeper(t *testing.T, env ...string) (ended <-chan syscall.Signal) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := make(chan syscall.Signal, 1)
	go func() {
		_ = cmd.Wait()
		c <- cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return c
}

// Only processes of ended supervisors of this test are ended.
func TestEndAbandoned(t *testing.T) {
	dead, end := supervisor(t)
	end()
	living, _ := supervisor(t)
	abandoned := sleeper(t, dead, "WORK="+ours)
	spared := map[string]<-chan syscall.Signal{
		"supervised":     sleeper(t, living, "WORK="+ours),
		"of other work":  sleeper(t, dead, "WORK=theirs"),
		"without a mark": sleeper(t, "WORK="+ours),
		"on other hosts": sleeper(t, strings.Replace(dead, "pid:[", "pid:[1", 1), "WORK="+ours),
		"of other marks": sleeper(t, supervisorVariable+"=something", "WORK="+ours),
	}
	r := EndAbandoned(func(v map[string]string) bool { return v["WORK"] == ours })
	if r.Ended != 1 || len(r.Names) != 1 || !strings.HasPrefix(r.Names[0], "sleep (pid ") || len(r.Alive) != 0 {
		t.Errorf("%+v: want one process", r)
	}
	if s := <-abandoned; s != syscall.SIGTERM {
		t.Errorf("it ended by %v, want SIGTERM", s)
	}
	for which, ended := range spared {
		select {
		case s := <-ended:
			t.Errorf("one %s was ended by %v", which, s)
		default:
		}
	}
}

// Another user's process is left running, even if its environment matches.
func TestEndAbandonedIsOfOneUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	dead, end := supervisor(t)
	end()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{dead, "WORK=" + ours}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if r := EndAbandoned(func(v map[string]string) bool { return v["WORK"] == ours }); r.String() != "" {
		t.Errorf("%v", r)
	}
	if p, err := look(cmd.Process.Pid); err != nil || p.ended {
		t.Errorf("it has ended: %+v, %v", p, err)
	}
}

// A process that has reused another's PID is not signalled.
func TestSignalKnowsTheProcess(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	p, err := look(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier := p
	earlier.start = "1"
	if err := earlier.signal(syscall.SIGKILL); err == nil {
		t.Error("the process that has the number now got the signal")
	}
	if now, err := look(p.pid); err != nil || now.ended {
		t.Error("it has ended")
	}
	if got := p.String(); !strings.HasPrefix(got, "sleep (pid ") {
		t.Errorf("it is called %q", got)
	}
}

// A shell that has replaced itself with this program keeps its other jobs; processes adopted since are ended.
func TestEndOrphansOfOthers(t *testing.T) {
	cmd := exec.Command("sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 & echo $!; exec "+os.Args[0])
	cmd.Env = append(os.Environ(), "SCALEBENCH_TEST_ORPHANS=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	number, said, _ := strings.Cut(string(out), "\n")
	job, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%q", out)
	}
	defer func() { _ = syscall.Kill(job, syscall.SIGKILL) }()
	if p, err := look(job); err != nil || p.ended {
		t.Errorf("the shell's own job was ended: %v", err)
	}
	if !strings.HasPrefix(said, "1 process ") {
		t.Errorf("ended were %q, want the one adopted", said)
	}
}
