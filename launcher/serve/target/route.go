package target

import (
	"math/rand/v2"

	"github.com/scalebench/scalebench/launcher/study"
)

// route returns the replica for the next request. turn is the replica that round robin chose for a request
// that is not part of a session.
func (s *sender) route(turn int) int {
	h, n := s.of, len(s.replicas)
	switch {
	case n == 1:
		turn = 0
	case h.Routing == study.Random:
		turn = rand.IntN(n)
	case h.Routing == study.LeastBusy:
		return h.leastBusy(rand.IntN(n))
	case h.Routing == study.Sticky:
		turn = s.home
	case h.Prompts != nil:
		turn = int((h.routed.Add(1) - 1) % uint64(n))
	}
	return turn
}

// leastBusy reserves the replica with the fewest requests in flight. Of equals it takes the first from the
// given one on.
func (h *HTTP) leastBusy(from int) int {
	h.choosing.Lock()
	defer h.choosing.Unlock()
	best := from
	for i := range h.inFlight {
		k := (from + i) % len(h.inFlight)
		if h.inFlight[k].Load() < h.inFlight[best].Load() {
			best = k
		}
	}
	h.inFlight[best].Add(1)
	return best
}
