//go:build python

package framework

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
)

const meetingNonce = "0123456789abcdef0123456789abcdef"

// A meetingRank is a process that takes part in programs/meeting.py.
type meetingRank struct {
	*exec.Cmd
	output bytes.Buffer
}

// meet starts a rank that contributes the text "word of N". patience is in seconds; files, unless 0, limits its
// file descriptors.
func meet(t *testing.T, address string, rank, size, patience, files int) *meetingRank {
	t.Helper()
	run := rundir.Folder(t.TempDir())
	if err := os.WriteFile(run.Nonce(), []byte(meetingNonce+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	w := world.World{Rank: rank, Size: size, LocalSize: 1, Nodes: 1, Address: host}
	if _, err := fmt.Sscan(port, &w.Port); err != nil {
		t.Fatal(err)
	}
	m := &meetingRank{Cmd: exec.Command(debianPython, "-B", "-c", fmt.Sprintf(`
import json, resource, meeting, world
meeting.PATIENCE = %d
if %d:
    resource.setrlimit(resource.RLIMIT_NOFILE, (%[2]d, %[2]d))
place = world.World()
print(json.dumps(meeting.exchange(place, "word of %%d" %% place.rank)))`, patience, files))}
	m.Env = append(append(os.Environ(), w.Environ()...), "PYTHONPATH=programs", RunVariable+"="+run.Path())
	m.Stdout, m.Stderr = &m.output, &m.output
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Process.Kill() })
	return m
}

// agreed checks that a rank received the texts of all ranks.
func (m *meetingRank) agreed(t *testing.T, size int) {
	t.Helper()
	err := m.Wait()
	checkWords(t, m.output.Bytes(), size)
	if err != nil {
		t.Error(err)
	}
}

func checkWords(t *testing.T, line []byte, size int) {
	t.Helper()
	var got, want []string
	for r := range size {
		want = append(want, fmt.Sprint("word of ", r))
	}
	if err := json.Unmarshal(line, &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%s, %v", line, err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}

// call connects with rank 0, as soon as it listens.
func call(t *testing.T, address string) net.Conn {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(end)
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// proven connects and proves that it knows the nonce.
func proven(t *testing.T, address string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := world.Dial(ctx, net.Dialer{}, "tcp", address, meetingNonce, "meeting")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// The ranks meet despite strangers and despite nonsense from callers that know the nonce. One rank
// is written in Go, so both languages must sign alike.
func TestMeetingAmongStrangers(t *testing.T) {
	address := freeAddress(t)
	zero := meet(t, address, 0, 3, 60, 0)
	for i := range 200 {
		_, _ = call(t, address).Write([]byte([]string{"", "scalehs\n", strings.Repeat("[", 4000) + "\n", strings.Repeat("x", 100_000)}[i%4]))
	}
	for name, line := range map[string]string{
		"nested":        strings.Repeat("[", 4000) + "\n",
		"a fraction":    `{"rank": 1.5, "word": "x"}` + "\n",
		"a truth":       `{"rank": true, "word": "x"}` + "\n",
		"a huge number": `{"rank": 1` + strings.Repeat("0", 4000) + `, "word": "x"}` + "\n",
		"NaN":           `{"rank": NaN, "word": "x"}` + "\n",
		"rank 0":        `{"rank": 0, "word": "x"}` + "\n",
		"outside":       `{"rank": 3, "word": "x"}` + "\n",
		"negative":      `{"rank": -1, "word": "x"}` + "\n",
		"no word":       `{"rank": 1}` + "\n",
		"a wrong word":  `{"rank": 1, "word": NaN}` + "\n",
		"a list":        `[1, "x"]` + "\n",
		"nothing":       "\n",
		"not UTF-8":     "{\"rank\": 1, \"word\": \"\xff\"}\n",
		"too long":      strings.Repeat(" ", 5000) + "\n",
	} {
		c := proven(t, address)
		_, _ = io.WriteString(c, line)
		if said, err := io.ReadAll(c); len(said) > 0 || os.IsTimeout(err) {
			t.Errorf("%s: %q, %v; want to be hung up on", name, said, err)
		}
	}
	one := meet(t, address, 1, 3, 60, 0)
	two := proven(t, address)
	if _, err := io.WriteString(two, `{"rank": 2, "word": "word of 2"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	words, err := io.ReadAll(two)
	if err != nil {
		t.Error(err)
	}
	checkWords(t, words, 3)
	zero.agreed(t, 3)
	one.agreed(t, 3)
}

// A rank whose connection broke may reconnect; two processes with the same rank are refused.
func TestMeetingTwice(t *testing.T) {
	address := freeAddress(t)
	zero := meet(t, address, 0, 3, 60, 0)
	say := func(rank int) net.Conn {
		c := proven(t, address)
		if _, err := fmt.Fprintf(c, "{\"rank\": %d, \"word\": \"word of %[1]d\"}\n", rank); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// All ranks have sent their texts, but one has disconnected: the meeting waits for it.
	say(1).Close()
	say(2)
	again := say(1)
	words, _ := io.ReadAll(again)
	checkWords(t, words, 3)
	zero.agreed(t, 3)

	address = freeAddress(t)
	zero = meet(t, address, 0, 3, 60, 0)
	say(1)
	say(1)
	if err := zero.Wait(); err == nil || !strings.Contains(zero.output.String(), "two processes have rank 1") {
		t.Errorf("%v: %s", err, &zero.output)
	}
}

// Rank 0 recovers from being out of file descriptors, and reports it if it lasts.
func TestMeetingOutOfDescriptors(t *testing.T) {
	address := freeAddress(t)
	zero := meet(t, address, 0, 2, 60, 24)
	for range 100 {
		call(t, address)
	}
	one := meet(t, address, 1, 2, 60, 0)
	zero.agreed(t, 2)
	one.agreed(t, 2)

	zero = meet(t, address, 0, 2, 3, 24)
	for range 100 {
		call(t, address)
	}
	if err := zero.Wait(); err == nil || !strings.Contains(zero.output.String(), "heard nothing from rank 1 within 3 s; see their logs; accepting connections failed") {
		t.Errorf("%v: %s", err, &zero.output)
	}
}

// A process that listens at rank 0's address learns nothing about the run and is named in the
// error.
func TestMeetingWithSquatter(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan []byte, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(append([]byte("scalehs\n\x00\x01"), make([]byte, 64)...))
			said, _ := io.ReadAll(c)
			c.Close()
			heard <- said
		}
	}()
	one := meet(t, l.Addr().String(), 1, 2, 1, 0)
	want := fmt.Sprintf("rank 0 does not answer at %s after 1 s: the process listening there does not know this run's nonce; another program may hold the port", l.Addr())
	if err := one.Wait(); err == nil || !strings.Contains(one.output.String(), want) {
		t.Errorf("%v: %s, want %q", err, &one.output, want)
	}
	for len(heard) > 0 {
		if said := <-heard; len(said) != 42+32 || !bytes.Equal(said[42:], make([]byte, 32)) {
			t.Errorf("the squatter heard %q", said)
		}
	}

	// The other program exits, and rank 0 starts.
	one = meet(t, l.Addr().String(), 1, 2, 60, 0)
	<-heard
	l.Close()
	zero := meet(t, l.Addr().String(), 0, 2, 60, 0)
	zero.agreed(t, 2)
	one.agreed(t, 2)
}

// A nonce that other users can read or wrote, or that is not a regular file, stops every rank.
func TestMeetingWithoutSecret(t *testing.T) {
	write := func(text string, mode os.FileMode) func(string) error {
		return func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode))
		}
	}
	for want, make := range map[string]func(path string) error{
		"is empty":                             write(" \n", 0o600),
		"can be read or written by every user": write(meetingNonce, 0o644),
		"has more than 4096 bytes": func(path string) error {
			return errors.Join(write(meetingNonce, 0o600)(path), os.Truncate(path, 1<<40))
		},
		"is not a regular file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		run := rundir.Folder(t.TempDir())
		if err := make(run.Nonce()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, debianPython, "-B", "-c", "import handshake, sys; handshake.run_nonce(sys.argv[1])", run.Path())
		cmd.Env = append(os.Environ(), "PYTHONPATH=programs")
		if out, err := cmd.CombinedOutput(); err == nil || ctx.Err() != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s; want %q", err, out, want)
		}
	}
}
