package cpu

import "sync"

// threads runs a layer's work in parallel. Work is divided into one part per thread, depending only
// on the amount of work and the number of threads. Partial sums are added in the order of the
// parts. So the last bits of results depend on the number of threads, but not on timing.
type threads struct {
	n    int
	job  work            // running job
	size int             // number of items of the job
	wake []chan struct{} // for threads 1 to n-1; the caller is thread 0
	done sync.WaitGroup
}

// work does one part of a job: the elements [from, to). Layers store their functions, so that steps
// allocate none.
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
