package collective

import "unsafe"

// number is the set of types that can be summed.
type number interface{ float32 | float64 | int64 }

// bytesOf returns v's memory as bytes. Ranks exchange numbers in memory layout; Join checks that
// all ranks have the same byte order.
func bytesOf[T number](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// view returns the first n numbers in b, which must be aligned for them.
func view[T number](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	_ = b[n*int(unsafe.Sizeof(zero))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// shareOf returns the part [from, to) of an array of n elements that belongs to a rank in
// ReduceScatter and AllGather. Parts differ by at most one element.
func shareOf(rank, size, n int) (from, to int) { return rank * n / size, (rank + 1) * n / size }

// directBytes is the size of the longest array that every rank of a node sums itself: one round
// instead of two, but each rank does the same additions. Two ranks exchange the same number of
// bytes either way, so they always do this, in rounds of directRound bytes.
const (
	directBytes = 8 << 10
	directRound = 128 << 10
)

// parts holds where each part of an array begins, and where the last one ends.
type parts []int

// even cuts n elements into count parts of almost equal size, reusing p's memory.
func (p parts) even(count, n int) parts {
	p = p[:0]
	for i := range count + 1 {
		p = append(p, i*n/count)
	}
	return p
}

// pieces cuts each part of an array into pieces that are exchanged in one round.
type pieces struct {
	parts parts
	most  int // elements in a piece, at most
}

func piecesOf[T number](n *node, p parts) pieces {
	var zero T
	return pieces{p, pieceBytes(len(n.ranks)) / int(unsafe.Sizeof(zero))}
}

// of returns the bounds of the k-th piece of part i; it is empty past the end of the part.
func (p pieces) of(i, k int) (from, to int) {
	from = min(p.parts[i]+k*p.most, p.parts[i+1])
	return from, min(from+p.most, p.parts[i+1])
}

// rounds returns the number of pieces of the longest part. It is 1 for an empty array, so that
// ranks still detect that they run different collectives.
func (p pieces) rounds() int {
	longest := 1
	for i := range len(p.parts) - 1 {
		longest = max(longest, p.parts[i+1]-p.parts[i])
	}
	return (longest + p.most - 1) / p.most
}

// in returns the place in a slot of the piece for rank i, sums the place of the summed piece.
func (n *node) in(slot []byte, i int) []byte { return slot[i*pieceBytes(len(n.ranks)):] }
func (n *node) sums(slot []byte) []byte      { return n.in(slot, len(n.ranks)) }

// An adder sets dst to a + b, element by element.
type adder[T number] func(dst, a, b []T)

// nodeAllReduce replaces v on every rank of a node by the sum over its ranks, added in rank order.
func nodeAllReduce[T number](n *node, add adder[T], v []T) error {
	if len(n.ranks) == 2 || len(bytesOf(v)) <= directBytes {
		return sumDirectly(n, add, v)
	}
	return sumByParts(n, add, v)
}

// sumDirectly has every rank publish all its numbers; each rank then sums everything itself.
func sumDirectly[T number](n *node, add adder[T], v []T) error {
	var zero T
	for first := true; first || len(v) > 0; first = false {
		part := v[:min(len(v), directRound/int(unsafe.Sizeof(zero)))]
		v = v[len(part):]
		copy(n.slot(n.me), bytesOf(part))
		n.post()
		if err := n.awaitAll(); err != nil {
			return err
		}
		sumSlots(n, add, part, part, 0)
		n.end()
	}
	return nil
}

// sumByParts has each rank sum its own part. Round k carries the numbers of piece k to the rank
// that sums it, and the sums of piece k−1 to all ranks.
func sumByParts[T number](n *node, add adder[T], v []T) error {
	n.bounds = n.bounds.even(len(n.ranks), len(v))
	p := piecesOf[T](n, n.bounds)
	rounds := p.rounds()
	for k := range rounds + 1 {
		bring(n, p, v, k)
		n.post()
		if err := n.awaitAll(); err != nil {
			return err
		}
		if from, to := p.of(n.me, k); to > from {
			copy(v[from:to], sumPiece(n, add, v[from:to]))
		}
		if k > 0 {
			take(n, p, v, k-1)
		}
		n.end()
	}
	return nil
}

// nodeReduceScatter sets dst to this rank's part of the sum of src.
func nodeReduceScatter[T number](n *node, add adder[T], dst, src []T, parts parts) error {
	p := piecesOf[T](n, parts)
	start := parts[n.me]
	for k := range p.rounds() {
		bring(n, p, src, k)
		n.post()
		if err := n.awaitAll(); err != nil {
			return err
		}
		if from, to := p.of(n.me, k); to > from {
			copy(dst[from-start:to-start], sumPiece(n, add, src[from:to]))
		}
		n.end()
	}
	return nil
}

// nodeAllGather copies every rank's part of v to all ranks.
func nodeAllGather[T number](n *node, v []T, parts parts) error {
	p := piecesOf[T](n, parts)
	for k := range p.rounds() {
		from, to := p.of(n.me, k)
		copy(n.sums(n.slot(n.me)), bytesOf(v[from:to]))
		n.post()
		if err := n.awaitAll(); err != nil {
			return err
		}
		take(n, p, v, k)
		n.end()
	}
	return nil
}

// bring fills this rank's slot with the k-th piece of every other rank's part.
func bring[T number](n *node, p pieces, v []T, k int) {
	slot := n.slot(n.me)
	for i := range n.ranks {
		if i != n.me {
			from, to := p.of(i, k)
			copy(n.in(slot, i), bytesOf(v[from:to]))
		}
	}
}

// sumPiece adds the numbers that the other ranks brought to this rank's own, and stores the sums in
// its next slot.
func sumPiece[T number](n *node, add adder[T], own []T) []T {
	sums := view[T](n.sums(n.nextSlot()), len(own))
	sumSlots(n, add, sums, own, n.me)
	return sums
}

// sumSlots sets dst to the sum, in rank order, of this rank's own numbers and those the other ranks
// put at a place in their slots. dst may be own.
func sumSlots[T number](n *node, add adder[T], dst, own []T, place int) {
	of := func(i int) []T {
		if i == n.me {
			return own
		}
		return view[T](n.in(n.slot(i), place), len(own))
	}
	if n.me > 1 && len(own) > 0 && &dst[0] == &own[0] {
		own = view[T](n.in(n.slot(n.me), place), len(own)) // use this rank's copy in its slot: dst is written before own is read
	}
	add(dst, of(0), of(1))
	for i := 2; i < len(n.ranks); i++ {
		add(dst, dst, of(i))
	}
}

// take copies the k-th piece of every other rank's part out of its slot.
func take[T number](n *node, p pieces, v []T, k int) {
	for i := range n.ranks {
		if i != n.me {
			from, to := p.of(i, k)
			copy(bytesOf(v[from:to]), n.sums(n.slot(i)))
		}
	}
}

// broadcast replaces b on every rank of a node by its leader's.
func (n *node) broadcast(b []byte) error {
	for first := true; first || len(b) > 0; first = false {
		part := b[:min(len(b), roundBytes/2)]
		b = b[len(part):]
		if n.leader() {
			copy(n.slot(n.me), part)
		}
		n.post()
		if err := n.awaitAll(); err != nil {
			return err
		}
		if !n.leader() {
			copy(part, n.slot(0))
		}
		n.end()
	}
	return nil
}
