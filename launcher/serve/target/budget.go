package target

import (
	"fmt"
	"net"
	"sync/atomic"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

const (
	// mostRequest bounds the tensors of one request, as they are sent. A server's
	// metadata decides the shapes, so the size is checked before anything is allocated.
	mostRequest = 256 << 20
	// mostAnswer is the maximum size of one answer as received, in bytes.
	mostAnswer = 256 << 20
	// mostAnswers bounds what this process holds of answers at once: as received, and
	// as numbers to compare. A single answer uses part of it.
	mostAnswers = 1 << 30
	// mostKept bounds the first answers to all requests, which later ones are compared to.
	mostKept = 1 << 30
	// mostParsed is the maximum memory, in bytes, for the parsed numbers of one answer.
	mostParsed = 512 << 20
)

// answers is the budget of this process. It is shared by all connections, because the
// node's memory is.
var answers = &budget{most: mostAnswers, each: mostAnswer}

// A budget is a number of bytes that several goroutines share.
type budget struct {
	most int64
	each int64 // limit for one received answer
	used atomic.Int64
}

// take reserves n bytes of the budget, or returns an error if fewer are left.
func (b *budget) take(n int64) error {
	if used := b.used.Add(n); used > b.most {
		b.used.Add(-n)
		return fmt.Errorf("the answers in flight need more than %d MiB; send fewer requests at once or smaller ones", b.most>>20)
	}
	return nil
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// A share is the part of a budget that the numbers of one answer use.
type share struct {
	of    *budget
	most  int64
	taken int64
}

func newShare() *share { return &share{of: answers, most: mostParsed} }

// take reserves n more bytes for an answer; what describes them in an error.
func (s *share) take(n int64, what string) error {
	if n > s.most-s.taken {
		return fmt.Errorf("%s needs %d MiB; at most %d MiB of an answer are read", what, (s.taken+n)>>20, s.most>>20)
	}
	if err := s.of.take(n); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.taken += n
	return nil
}

// end returns all bytes of the share to the budget.
func (s *share) end() {
	s.of.give(s.taken)
	s.taken = 0
}

// meterStep is the number of bytes that a metered connection reserves at a time. An answer up to this
// size reserves nothing.
const meterStep = 1 << 20

// A metered connection counts the bytes of each answer against the budget, so that an endless answer becomes an
// error instead of using up the memory. One goroutine reads at a time; another may call begin and Close.
type metered struct {
	net.Conn
	budget *budget
	read   atomic.Int64 // bytes of this answer
	most   atomic.Int64 // bytes it may have before more are reserved
}

func newMetered(c net.Conn, of *budget) *metered {
	m := &metered{Conn: c, budget: of}
	m.most.Store(meterStep)
	return m
}

// begin returns the bytes that the previous answer used to the budget.
func (m *metered) begin() {
	m.read.Store(0)
	m.give()
}

func (m *metered) give() {
	if n := m.most.Swap(meterStep) - meterStep; n > 0 {
		m.budget.give(n)
	}
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if read := m.read.Add(int64(n)); read > m.most.Load() {
		if more := m.reserve(read); more != nil {
			return 0, more
		}
	}
	return n, err
}

// reserve takes from the budget what an answer of n bytes needs.
func (m *metered) reserve(n int64) error {
	if n > m.budget.each+meterStep { // headers come on top
		return fmt.Errorf("the answer has over %d MiB, the most that is read", m.budget.each>>20)
	}
	had := m.most.Load()
	if n <= had {
		return nil
	}
	want := (n + meterStep - 1) / meterStep * meterStep
	if err := m.budget.take(want - had); err != nil {
		return err
	}
	m.most.Store(want)
	return nil
}

func (m *metered) Close() error {
	m.give()
	return m.Conn.Close()
}

// ReadBody reads the file with the body that every request posts. It must be a regular file no larger than a
// request may be.
func ReadBody(path string) ([]byte, error) { return sharedfs.ReadFile(path, mostRequest) }
