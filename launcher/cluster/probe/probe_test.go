package probe

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
)

func TestMidpoint(t *testing.T) {
	// The other clock is 100 s ahead. The way there takes 0.3 s, processing 0.2 s, and the way back 0.1 s. The
	// midpoint is wrong by half the difference of the ways, 0.1 s, which is within half the round trip of 0.4
	// s.
	c := Midpoint(10, 110.3, 110.5, 10.6)
	if math.Abs(c.Offset-100.1) > 1e-9 || math.Abs(c.RoundTrip-0.4) > 1e-9 {
		t.Errorf("%+v", c)
	}
}

// login acts as the login node for one node.
func login(ctx context.Context, dir rundir.Probe, node int) error {
	if _, err := AwaitFile(ctx, dir.Ready(node), time.Minute); err != nil {
		return err
	}
	for round := range Rounds {
		if err := rundir.WriteFile(dir.Ping(node, round), []byte("word "+strconv.Itoa(round)), 0o600); err != nil {
			return err
		}
		text, err := AwaitFile(ctx, dir.Pong(node, round), time.Minute)
		if err != nil {
			return err
		}
		var p Pong
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		if p.Word != "word "+strconv.Itoa(round) || p.Sent < p.Seen {
			return errors.New(string(text))
		}
	}
	return nil
}

// Two nodes on this host, with a shell script as interpreter, complete every phase and record its facts.
func TestRunTwoNodes(t *testing.T) {
	dir := rundir.Probe(t.TempDir())
	python := filepath.Join(dir.Path(), "python")
	script := "#!/bin/sh\ncase \"$4\" in *missing*) echo 'Traceback' >&2; echo \"ModuleNotFoundError: No module named 'missing'\" >&2; exit 1;; *) sleep 0.05; echo 3.99;; esac\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(dir.Question(), Question{Token: "0123456789abcdef", Interface: "lo", Python: python, Imports: []string{"present", "missing", "os; evil()"}}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 4)
	for node := range 2 {
		go func() { ended <- login(t.Context(), dir, node) }()
		go func() {
			ended <- Run(t.Context(), dir, world.World{Rank: node, Size: 2, Node: node, Nodes: 2, LocalSize: 1}, Look(t.Context(), "v1"))
		}()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	var a [2]Answer
	for rank := range a {
		text, err := os.ReadFile(dir.Answer(rank))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &a[rank]); err != nil {
			t.Fatal(err)
		}
		if f := a[rank]; f.Phase != Done || f.Host == "" || f.Version != "v1" || len(f.CPUs) == 0 || f.Link.Name != "lo" || f.Files == nil || f.Files.Rounds != Rounds || f.Files.Error != "" {
			t.Errorf("%+v", f)
		}
		if p := a[rank].Python; p == nil || p.Error != "" || p.Version != "3.99" || p.Seconds == nil || *p.Seconds < 0.05 {
			t.Errorf("interpreter: %+v", p)
		}
		if i := a[rank].Imports; len(i) != 3 || i[0].Seconds == nil || i[1].Seconds != nil || !strings.Contains(i[1].Error, "No module named 'missing'") || !strings.Contains(i[2].Error, "is not a module name") {
			t.Errorf("imports: %+v", i)
		}
	}
	x := a[1].Exchange
	if a[0].Exchange != nil || x == nil || x.Error != "" {
		t.Fatalf("%+v, %+v", a[0].Exchange, x)
	}
	// There is only one clock, so its offset against itself is within the uncertainty.
	if x.Trips != trips || x.RoundTrip <= 0 || x.RoundTripMedian < x.RoundTrip || math.Abs(x.Offset) > x.RoundTrip/2+1e-6 || x.Sent < 1e6 || x.Received < 1e6 {
		t.Errorf("%+v", x)
	}
}

func TestRunWithoutInterface(t *testing.T) {
	dir := rundir.Probe(t.TempDir())
	if err := writeJSON(dir.Question(), Question{Token: "x", Interface: "nosuch0"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 4)
	for node := range 2 {
		go func() { ended <- login(t.Context(), dir, node) }()
		go func() {
			ended <- Run(t.Context(), dir, world.World{Rank: node, Size: 2, Node: node, Nodes: 2}, Look(t.Context(), "v1"))
		}()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(dir.Answer(1))
	if err != nil || !strings.Contains(string(text), `no network interface \"nosuch0\" on this host; it has:`) || !strings.Contains(string(text), `"phase":"done"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// Connections from other programs that send nothing or something wrong are not served or counted, and do not
// keep the nodes from being measured. Neither does a node that disconnects.
func TestServeAmongStrangers(t *testing.T) {
	for _, strangers := range []int{8, 200} {
		dir := rundir.Probe(t.TempDir())
		ended := make(chan error, 1)
		go func() {
			ended <- serve(t.Context(), dir, "right", Link{Name: "lo", Address: "127.0.0.1"}, 3)
		}()
		text, err := AwaitFile(t.Context(), dir.Listen(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var l listening
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		var said []net.Conn
		for i := range strangers {
			c, err := net.Dial("tcp", l.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if i%2 == 0 {
				if _, err := c.Write([]byte("rightt" + strings.Repeat("t", 100))); err != nil {
					t.Fatal(err)
				}
				said = append(said, c)
			}
		}
		gone, err := world.Dial(t.Context(), net.Dialer{}, "tcp", l.Address, "right", purpose)
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		exchanged := make(chan *Exchange)
		for range 2 {
			go func() { exchanged <- exchange(t.Context(), dir, "right", Link{Address: "127.0.0.1"}) }()
		}
		for range 2 {
			if x := <-exchanged; x.Error != "" || x.Sent == 0 || x.Received == 0 {
				t.Errorf("among %d strangers: %+v", strangers, x)
			}
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), gone.LocalAddr().String()) {
			t.Errorf("%v, want that it ended with the node that broke off", err)
		}
		for _, c := range said {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Error("a stranger was answered")
			}
		}
	}
}

// If another program listens on the port that node 0 released, it is not measured with, and the error names it.
func TestExchangeWithSquatter(t *testing.T) {
	dir := rundir.Probe(t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := writeJSON(dir.Listen(), listening{l.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example ESMTP, which is longer than a greeting and a proof of this run's nonce\r\n"))
			defer c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	want := "the process listening at " + l.Addr().String() + " is not a rank of a scalebench run; another program may hold the port"
	if x := exchange(ctx, dir, "right", Link{Address: "127.0.0.1"}); !strings.Contains(x.Error, want) || x.Trips != 0 {
		t.Errorf("%+v, want %q", x, want)
	}
}

func TestAwaitFileGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "never")
	if _, err := AwaitFile(t.Context(), path, 20*time.Millisecond); err == nil || !strings.Contains(err.Error(), path+" did not appear on ") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := AwaitFile(ctx, path, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
