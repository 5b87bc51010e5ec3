//go:build python

package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A program that forks faster than processes can be listed is ended too. With many such programs, some listings
// fall between two forks and find nothing.
func TestEndBelowChain(t *testing.T) {
	for i := range 10 {
		t.Run(strconv.Itoa(i), func(t *testing.T) { t.Parallel(); endChain(t) })
	}
}

// endChain ends a program in which each process starts the next one and ends; all of them share
// a lock.
func endChain(t *testing.T) {
	folder := t.TempDir()
	const program = `
import fcntl, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setpgid(0, 0)
with open("group", "w") as file:
    file.write(str(os.getpid()))
lock = open("lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
while not os.fork():
    pass
os._exit(0)
`
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "SCALEBENCH_TEST_BELOW="+program)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(filepath.Join(folder, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("some go on after all were ended: %v", err)
		text, _ := os.ReadFile(filepath.Join(folder, "group"))
		if group, err := strconv.Atoi(string(text)); err == nil {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
	if !strings.Contains(string(out), "were ended") || strings.Contains(string(out), "could not") {
		t.Errorf("it said %q", out)
	}
}

// A process whose main thread has ended still runs in its other threads.
func TestProcessWithoutItsFirstThread(t *testing.T) {
	const program = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)
`
	cmd := exec.Command("python3", "-c", program)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ") Z ") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if p, err := look(cmd.Process.Pid); err != nil || p.ended {
		t.Errorf("it is taken for ended: %+v, %v", p, err)
	}
}
