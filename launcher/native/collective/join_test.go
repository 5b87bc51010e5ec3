package collective

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// joinTwo joins ranks 0 and 1 after calling change for each.
func joinTwo(t *testing.T, change func(rank int, j *attempt)) (errs [2]error) {
	t.Helper()
	places, l := worlds(t, 2)
	var wg sync.WaitGroup
	for r, w := range places {
		a := attempt{nonce: "nonce", options: Options{JoinTimeout: 30 * time.Second, Timeout: 30 * time.Second}}
		a.world.Rank, a.world.Size, a.world.Address, a.world.Port = r, w.Size, w.Address, w.Port
		if r == 0 {
			a.options.Listener = l
		}
		change(r, &a)
		wg.Go(func() {
			w.Rank, w.Size, w.Address, w.Port, w.Interface = a.world.Rank, a.world.Size, a.world.Address, a.world.Port, a.world.Interface
			g, err := Join(context.Background(), w, a.nonce, a.options)
			if err == nil {
				g.Close()
			}
			errs[r] = err
		})
	}
	wg.Wait()
	return errs
}

type attempt struct {
	world struct {
		Rank, Size, Port   int
		Address, Interface string
	}
	nonce   string
	options Options
}

func TestJoinRefusals(t *testing.T) {
	// Long enough for ranks that do come, also on a busy machine.
	const untilMissing = 20 * time.Second // the two ranks' deadlines differ by a tenth of it
	for _, test := range []struct {
		name   string
		change func(rank int, a *attempt)
		want   [2]string // in the errors of ranks 0 and 1
	}{
		{"wrong nonce", func(r int, a *attempt) {
			a.options.JoinTimeout = untilMissing
			if r == 1 {
				a.nonce = "another"
			}
		}, [2]string{"wrong nonce: it belongs to another run", "does not know this run's nonce; another program may hold the port"}},
		{"wrong world size", func(r int, a *attempt) {
			if r == 1 {
				a.world.Size = 3
			}
		}, [2]string{"world of 3 ranks, rank 0 for 2", "world of 3 ranks, rank 0 for 2"}},
		{"another build", func(r int, a *attempt) { a.options.Build = []string{"v1.0.0", "v1.0.1"}[r] },
			[2]string{`rank 1 is build "v1.0.1" of the program, rank 0 "v1.0.0"`, `rank 1 is build "v1.0.1" of the program, rank 0 "v1.0.0"`}},
		{"another transport", func(r int, a *attempt) { a.options.Transport = []Transport{TCP, SharedMemory}[r] },
			[2]string{"different transports", "different transports"}},
		{"no nonce", func(r int, a *attempt) { a.nonce = "" }, [2]string{"the run's nonce is empty", "the run's nonce is empty"}},
		{"unknown transport", func(r int, a *attempt) { a.options.Transport = "pigeon" }, [2]string{`"pigeon"; want tcp or shm`, "want tcp or shm"}},
		{"one rank missing", func(r int, a *attempt) {
			a.world.Size, a.options.JoinTimeout = 3, untilMissing
		}, [2]string{"from rank 2", "from rank 2"}},
		{"unknown interface", func(r int, a *attempt) {
			a.options.JoinTimeout = untilMissing
			if r == 1 {
				a.world.Interface = "nope0"
			}
		}, [2]string{"rank 1", "lo"}},
		{"rank outside", func(r int, a *attempt) { a.world.Rank = r + 2 }, [2]string{"outside", "outside"}},
		{"no definite address", func(r int, a *attempt) {
			a.world.Address = "0.0.0.0"
			a.options.Listener = nil
		}, [2]string{"0.0.0.0", "0.0.0.0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			errs := joinTwo(t, test.change)
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), test.want[r]) {
					t.Errorf("rank %d: %v, want %q in it", r, err, test.want[r])
				}
			}
		})
	}
}

func TestJoinDuplicateRank(t *testing.T) {
	places, l := worlds(t, 3)
	places[2].Rank = 1
	var wg sync.WaitGroup
	for r, w := range places {
		wg.Go(func() {
			o := Options{JoinTimeout: 30 * time.Second}
			if r == 0 {
				o.Listener = l
			}
			_, err := Join(context.Background(), w, "n", o)
			if err == nil || !strings.Contains(err.Error(), "two processes have rank 1") {
				t.Errorf("process %d: %v", r, err)
			}
		})
	}
	wg.Wait()
}

// Callers that send nothing, random bytes or the wrong nonce do not prevent a run from
// starting.
func TestJoinAmongStrangers(t *testing.T) {
	places, l := worlds(t, 2)
	var strangers []net.Conn
	for _, words := range []string{"", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 10_000)} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, words); err != nil {
			t.Fatal(err)
		}
		strangers = append(strangers, c)
	}
	var wg sync.WaitGroup
	for r, w := range places {
		wg.Go(func() {
			o := Options{JoinTimeout: 30 * time.Second}
			if r == 0 {
				o.Listener = l
			}
			g, err := Join(context.Background(), w, "n", o)
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				return
			}
			defer g.Close()
			if g.Size() != 2 {
				t.Errorf("rank %d counts %d ranks", r, g.Size())
			}
		})
	}
	wg.Wait()
	_ = strangers[1].SetReadDeadline(time.Now().Add(time.Second))
	answer := make([]byte, 11)
	if _, err := io.ReadFull(strangers[1], answer); err == nil && answer[8] == answerAccepted {
		t.Error("a stranger was accepted")
	}
}

func TestJoinMissingPeer(t *testing.T) {
	places, l := worlds(t, 3)
	begin := time.Now()
	_, err := Join(context.Background(), places[0], "n", Options{JoinTimeout: 300 * time.Millisecond, Listener: l})
	if err == nil || !strings.Contains(err.Error(), "rank 1, 2") {
		t.Errorf("rank 0: %v, want ranks 1 and 2 named", err)
	}
	_, err = Join(context.Background(), places[2], "n", Options{JoinTimeout: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "rank 0 does not answer at 127.0.0.1") {
		t.Errorf("rank 2: %v, want rank 0 named", err)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("gave up after %v", d)
	}
}

func TestJoinCancelled(t *testing.T) {
	places, _ := worlds(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	places[1].Port = 1 // no process listens there
	if _, err := Join(ctx, places[1], "n", Options{}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("%v, want cancelled", err)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestJoinOnInterface(t *testing.T) {
	errs := joinTwo(t, func(r int, a *attempt) { a.world.Interface = "lo" })
	noErrors(t, errs[:])
}

func FuzzHello(f *testing.F) {
	self := hello{rank: 0, size: 4}
	good := hello{rank: 3, size: 4, ring: netip.MustParseAddrPort("10.1.2.3:4567")}
	f.Add(good.encode())
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := receiveHello(bytes.NewReader(data))
		if err != nil {
			return
		}
		h, err := readHello(text, self)
		if err != nil {
			return
		}
		// An accepted hello names a rank of the world, and encoding it gives the same bytes.
		if h.rank < 0 || h.rank >= 4 || h.size != 4 {
			t.Fatalf("accepted rank %d of %d", h.rank, h.size)
		}
		again, err := readHello([helloBytes]byte(h.encode()), self)
		if err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}

func TestHelloRoundTrip(t *testing.T) {
	self := hello{rank: 0, size: 9}
	for _, address := range []string{"127.0.0.1:1", "[fd00::1]:65535"} {
		h := hello{rank: 8, size: 9, ring: netip.MustParseAddrPort(address)}
		b := h.encode()
		if len(b) != helloBytes {
			t.Fatalf("%d bytes, want %d", len(b), helloBytes)
		}
		if got, err := readHello([helloBytes]byte(b), self); err != nil || got != h {
			t.Errorf("%+v, %v, want %+v", got, err, h)
		}
	}
	// Each kind of error is distinguished.
	h := hello{rank: 8, size: 9, ring: netip.MustParseAddrPort("127.0.0.1:1")}
	for _, test := range []struct {
		at   int
		want string
	}{{0, "something other"}, {9, "version"}, {10, "transports"}, {12, "byte order"}, {23, "world of"}, {19, "outside"}} {
		b := [helloBytes]byte(h.encode())
		b[test.at] ^= 1
		if _, err := readHello(b, self); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("byte %d changed: %v, want %q", test.at, err, test.want)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(encodeAnswer(answerAccepted, encodeAddress(netip.MustParseAddrPort("10.1.2.3:4567"))))
	f.Add(encodeAnswer(answerRefused, []byte("wrong nonce")))
	f.Add([]byte("SSH-2.0-OpenSSH_9.2p1\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		status, payload, err := decodeAnswer(bytes.NewReader(data))
		if err != nil {
			return
		}
		// An accepted answer has a bounded length, and encoding it gives the same bytes.
		if again := encodeAnswer(status, payload); len(payload) > maxAnswer || !bytes.HasPrefix(data, again) {
			t.Fatalf("%q became %q", data, again)
		}
	})
}
