//go:build slurm

package sharedfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
)

func TestMain(m *testing.M) {
	if os.Getenv("LEASE_TAKER") != "" {
		os.Exit(taker(os.Args[1], os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// taker takes the lease a few times, in a separate process. Each time it enters a ledger outside
// the file system under test: a kernel lock, which only one process can have.
func taker(path, ledger, seed string) int {
	n, _ := strconv.ParseUint(seed, 10, 64)
	rng := rand.New(rand.NewPCG(n, 2))
	book, err := os.OpenFile(ledger, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for range 3 {
		l, err := TakeLease(context.Background(), path, time.Minute)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if rng.IntN(3) == 0 { // pauses for longer than LeaseTime, by its own clock and the server's
			old := time.Now().Add(-2 * LeaseTime).Unix()
			if err := syscall.Futimes(int(l.file.Fd()), []syscall.Timeval{{Sec: old}, {Sec: old}}); err != nil && !errors.Is(err, fs.ErrNotExist) {
				fmt.Println(err)
				return 1
			}
			l.renewed.Add(-int64(2 * LeaseTime))
			time.Sleep(time.Duration(rng.IntN(int(150 * time.Millisecond))))
		}
		switch err := l.Check(); {
		case err == nil:
			if syscall.Flock(int(book.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
				fmt.Fprintln(book, "doubled")
			}
			fmt.Fprintln(book, "entered")
			time.Sleep(time.Duration(rng.IntN(int(5 * time.Millisecond))))
			if rng.IntN(10) == 0 {
				fmt.Fprintln(book, "killed")
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			syscall.Flock(int(book.Fd()), syscall.LOCK_UN)
		case errors.As(err, new(*LeaseHeldError)):
			fmt.Fprintln(book, "lost")
		default:
			fmt.Println(err)
			return 1
		}
		if err := l.Release(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

// Several processes on two hosts, some of which are suspended or killed, use a file system that
// loses replies and repeats requests. Never do two have the lease, and none waits forever.
func TestNFSManyTakers(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(24) {
		folder, ledger := t.TempDir(), filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(ledger, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var hosts []*nfstest.Client
		for i := range uint64(2) {
			hosts = append(hosts, nfstest.Mount(t, folder, nfstest.Plan{Seed: 2*seed + i, Lost: 0.2, Twice: 0.1, Stale: 0.1,
				Delay: time.Duration(seed%3) * 4 * time.Millisecond, Memory: time.Duration(seed%4) * 20 * time.Millisecond, NoLinks: seed%6 == 5}))
		}
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				cmd := exec.Command("/proc/self/exe", filepath.Join(hosts[i%2].Path, "lease"), ledger, fmt.Sprint(10*seed+uint64(i)))
				cmd.Env = append(os.Environ(), "LEASE_TAKER=1")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				err := cmd.Run()
				if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && !(ok && status.Signaled() && status.Signal() == syscall.SIGKILL) {
					t.Errorf("seed %d: a taker: %v: %s", seed, err, out.String())
				}
			})
		}
		all.Wait()
		text, err := os.ReadFile(ledger)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(text))
		for _, line := range lines {
			seen[line]++
		}
		if slices.Contains(lines, "doubled") {
			t.Errorf("seed %d: two held it at once: %v", seed, lines)
		}
		for _, h := range hosts {
			a, b, c, _ := h.Fired()
			seen["lost answers"] += int(a)
			seen["repeated"] += int(b)
			seen["stale"] += int(c)
		}
	}
	t.Log(seen)
	for _, what := range []string{"entered", "lost", "killed", "lost answers", "repeated", "stale"} {
		if seen[what] == 0 {
			t.Errorf("never: %s", what)
		}
	}
}
