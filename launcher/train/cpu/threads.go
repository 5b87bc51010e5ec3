package cpu

import "sync"

// threads runs a layer's work in parallel. Work is cut into one part per
// thread, at places that depend only on how much there is and how many threads
// there are; partial sums are added up in the order of the parts. So results
// depend on the number of threads, in their last bits, but never on chance.
type threads struct {
	n    int
	work []chan func() // to threads 1 to n-1; the caller is thread 0
	done sync.WaitGroup
}

func newThreads(n int) *threads {
	t := &threads{n: max(n, 1)}
	for range t.n - 1 {
		c := make(chan func())
		t.work = append(t.work, c)
		go func() {
			for f := range c {
				f()
				t.done.Done()
			}
		}()
	}
	return t
}

// each calls f(part, from, to) for every part of 0 to n and waits for all.
func (t *threads) each(n int, f func(part, from, to int)) {
	for i, c := range t.work {
		part := i + 1
		t.done.Add(1)
		c <- func() { f(part, part*n/t.n, (part+1)*n/t.n) }
	}
	f(0, 0, n/t.n)
	t.done.Wait()
}

func (t *threads) close() {
	for _, c := range t.work {
		close(c)
	}
}
