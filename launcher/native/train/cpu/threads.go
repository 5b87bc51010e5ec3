package cpu

import "sync"

// threads runs a layer's work in parallel. Work is cut into one part per
// thread, at places that depend only on how much there is and how many threads
// there are; partial sums are added up in the order of the parts. So results
// depend on the number of threads, in their last bits, but never on chance.
type threads struct {
	n    int
	job  work            // the running one
	size int             // of it
	wake []chan struct{} // of threads 1 to n-1; the caller is thread 0
	done sync.WaitGroup
}

// work does one part of a job: the elements [from, to). Layers keep theirs, so
// that none is made in a step.
type work func(part, from, to int)

func newThreads(n int) *threads {
	t := &threads{n: max(n, 1)}
	for part := 1; part < t.n; part++ {
		wake := make(chan struct{}, 1)
		t.wake = append(t.wake, wake)
		go func() {
			for range wake {
				t.part(part)
				t.done.Done()
			}
		}()
	}
	return t
}

func (t *threads) part(i int) { t.job(i, i*t.size/t.n, (i+1)*t.size/t.n) }

// each calls f for every part of 0 to n and waits for all.
func (t *threads) each(n int, f work) {
	t.job, t.size = f, n
	t.done.Add(len(t.wake))
	for _, c := range t.wake {
		c <- struct{}{}
	}
	t.part(0)
	t.done.Wait()
}

func (t *threads) close() {
	for _, c := range t.wake {
		close(c)
	}
}
