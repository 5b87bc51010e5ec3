package collective

import "fmt"

// Inputs are whole numbers from 0 to period-1, shifted by turn for each rank. Their sums are exact
// in float32 in any order of addition, and an element from a wrong position or rank has a different
// value.
const (
	period = 251
	turn   = 37
	// maxRanks is the largest number of ranks whose inputs add up to less than 2^24, the limit of
	// exact integers in float32.
	maxRanks = (1 << 24) / (period - 1)
)

// chunk is the number of elements written or read at a time.
const chunk = 64 << 10

func input(rank, i int) float32 { return float32((i + turn*rank) % period) }

// sent returns the number of elements a rank contributes, received the number it gets.
func (r *runner) sent(c Call) int {
	if c.Op == ReduceScatter {
		return c.Count * r.size
	}
	return c.Count
}

func (r *runner) received(c Call) int {
	if c.Op == AllGather {
		return c.Count * r.size
	}
	return c.Count
}

// spoil overwrites the destination so that an earlier result cannot pass for the new one.
func (r *runner) spoil(c Call) error {
	n := r.received(c)
	values := make([]float32, min(n, chunk))
	for i := range values {
		values[i] = -1
	}
	for at := 0; at < n; at += chunk {
		if err := r.backend.Write(c.Receive.Buffer, c.Receive.Offset+at, values[:min(chunk, n-at)]); err != nil {
			return err
		}
	}
	return nil
}

// fill writes this rank's input to the buffer that the call reads.
func (r *runner) fill(c Call) error {
	n := r.sent(c)
	values := make([]float32, min(n, chunk))
	for at := 0; at < n; at += chunk {
		part := values[:min(chunk, n-at)]
		for i := range part {
			part[i] = input(r.rank, at+i)
		}
		if err := r.backend.Write(c.Send.Buffer, c.Send.Offset+at, part); err != nil {
			return err
		}
	}
	return nil
}

// check repeats the operation on fresh inputs and compares every element of the result. If an
// element is wrong on one rank, all ranks return an error.
func (r *runner) check(c Call) error {
	for _, step := range []func() error{
		func() error { return r.spoil(c) },
		func() error { return r.fill(c) },
		func() error { return r.backend.Do(r.ctx, c) },
	} {
		if err := step(); err != nil {
			return r.failed(c, err)
		}
	}
	n := r.received(c)
	want := r.expected(c)
	wrong, first := int64(0), ""
	values := make([]float32, min(n, chunk))
	for at := 0; at < n; at += chunk {
		part := values[:min(chunk, n-at)]
		if err := r.backend.Read(c.Receive.Buffer, c.Receive.Offset+at, part); err != nil {
			return r.failed(c, err)
		}
		for i, v := range part {
			if w := want(at + i); v != w {
				if wrong == 0 {
					first = fmt.Sprintf("; the first here is element %d: %g instead of %g", at+i, v, w)
				}
				wrong++
			}
		}
	}
	total := []int64{wrong}
	if err := r.group.AllReduceInt64(r.ctx, total); err != nil {
		return err
	}
	if total[0] == 0 {
		return nil
	}
	place := "out of place"
	if c.Send.Buffer == c.Receive.Buffer {
		place = "in place"
	}
	return r.failed(c, fmt.Errorf("%d elements of the result are wrong over %d ranks (%s), %d of them on rank %d%s", total[0], r.size, place, wrong, r.rank, first))
}

// expected returns a function that gives the correct result on this rank, by element.
func (r *runner) expected(c Call) func(i int) float32 {
	switch c.Op {
	case AllGather:
		return func(i int) float32 { return input(i/c.Count, i%c.Count) }
	case Broadcast:
		return func(i int) float32 { return input(0, i) }
	}
	var sums [period]float32
	for i := range sums {
		for rank := range r.size {
			sums[i] += input(rank, i)
		}
	}
	first := 0
	if c.Op == ReduceScatter {
		first = r.rank * c.Count
	}
	return func(i int) float32 { return sums[(first+i)%period] }
}
