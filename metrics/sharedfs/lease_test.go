package sharedfs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func take(t *testing.T, path string) *Lease {
	t.Helper()
	l, err := TakeLease(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// write creates the lease file of another process, last touched the given time ago.
func write(t *testing.T, path string, h Holder, age time.Duration) {
	t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-age)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
}

func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	first := take(t, path)
	var held *LeaseHeldError
	if _, err := TakeLease(t.Context(), path, 0); !errors.As(err, &held) || held.Holder.PID != os.Getpid() || held.Lost {
		t.Errorf("a lease that is held: %v", err)
	}
	if err := first.Check(); err != nil {
		t.Error(err)
	}
	release(t, first)
	release(t, take(t, path))
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 || left[0] != path {
		t.Errorf("left behind beside the file: %v, %v", left, err)
	}
}

func TestHoldersAreJudgedByAge(t *testing.T) {
	gone := Holder{Host: "here", PID: 1<<22 + 1, Space: space(), Nonce: "x"} // larger than any pid
	for name, c := range map[string]struct {
		holder Holder
		age    time.Duration
		lapsed bool
	}{
		"another host, fresh":           {Holder{Host: "other", PID: 1, Nonce: "x"}, 0, false},
		"another host, nearly lapsed":   {Holder{Host: "other", PID: 1, Nonce: "x"}, LeaseTime - 5*time.Second, false},
		"another host, lapsed":          {Holder{Host: "other", PID: 1, Nonce: "x"}, LeaseTime + time.Second, true},
		"this host, process gone":       {gone, 0, true},
		"this pid in another namespace": {Holder{Host: gone.Host, PID: gone.PID, Space: "else", Nonce: "x"}, 0, false},
		"a clock that is ahead":         {Holder{Host: "other", PID: 1, Nonce: "x"}, -time.Hour, false},
	} {
		path := filepath.Join(t.TempDir(), "lease")
		write(t, path, c.holder, c.age)
		l, err := TakeLease(t.Context(), path, 0)
		if lapsed := err == nil; lapsed != c.lapsed {
			t.Errorf("%s: taken over %v, want %v (%v)", name, lapsed, c.lapsed, err)
		}
		if err == nil {
			release(t, l)
		}
	}
}

func TestLosingALease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	first := take(t, path)
	old := time.Now().Add(-2 * LeaseTime)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	second := take(t, path)
	var held *LeaseHeldError
	if err := first.Check(); !errors.As(err, &held) || !held.Lost || !held.Holder.same(second.owner) {
		t.Errorf("the one that lost it: %v", err)
	}
	release(t, first) // must not release the second's lease
	if err := second.Check(); err != nil {
		t.Error(err)
	}
	release(t, second)
	third := take(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := third.Check(); !errors.As(err, &held) {
		t.Errorf("a lease whose file is gone: %v", err)
	}
	release(t, third)
}

func TestRenewing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	l := take(t, path)
	defer release(t, l)
	old := time.Now().Add(-LeaseTime / 2)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if err := l.touch(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > LeaseTime/4 {
		t.Errorf("not renewed: %v, %v", info.ModTime(), err)
	}
}

func TestTakeIsInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	write(t, path, Holder{Host: "other", PID: 1, Nonce: "x"}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := TakeLease(ctx, path, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// With many concurrent processes, never do two have the lease.
func TestManyTakers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	var inside, turns atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				l, err := TakeLease(t.Context(), path, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it at once", n)
				}
				turns.Add(1)
				inside.Add(-1)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if turns.Load() != 160 {
		t.Errorf("%d turns, want 160", turns.Load())
	}
}
