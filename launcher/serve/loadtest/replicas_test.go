package loadtest

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A stall lasts from an answer, or from a request sent when none is in flight, to the next right answer. It
// belongs to the window in which it began. Times are in tenths of a second.
func TestStalls(t *testing.T) {
	const tenth = time.Second / 10
	r, err := newRecord(12*time.Second, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := func(sent, now time.Duration, err error) {
		r.done(request{at: sent * tenth, sent: sent * tenth, now: now * tenth, replica: -1, err: err})
	}
	late, wrong := os.ErrDeadlineExceeded, errors.New("wrong")
	r.sent(0)
	done(0, 1, nil) // 1
	r.sent(2 * tenth)
	done(2, 32, nil) // 30: no request was in flight
	r.sent(40 * tenth)
	r.sent(405 * tenth / 10)
	done(40, 41, nil) // 1
	done(40, 60, nil) // 19 since the previous answer
	r.sent(70 * tenth)
	done(70, 80, late)
	r.sent(85 * tenth)
	done(85, 90, nil) // 20: the late request got no answer
	r.sent(95 * tenth)
	done(95, 97, wrong)
	r.sent(98 * tenth)
	done(98, 110, late) // 15: not ended by an answer
	var stalls []time.Duration
	list := r.list()
	for _, w := range list {
		stalls = append(stalls, w.Stall/tenth)
	}
	if diff := cmp.Diff([]time.Duration{30, 0, 0, 0, 19, 0, 0, 20, 0, 15, 0, 0}, stalls); diff != "" {
		t.Error(diff)
	}
	if total := Merge(list); total.Stall != 30*tenth {
		t.Errorf("the longest is %v", total.Stall)
	}
}

// Requests to a replica count for it and for the total. The replicas of a window add up to the total.
func TestReplicasAddUp(t *testing.T) {
	r, err := newRecord(2*time.Second, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, latency := range []time.Duration{10, 30, 10, 30, 20, 90} { // in turns, three in each window
		at := time.Duration(i) * time.Second / 3
		r.sent(at)
		var err error
		if i == 5 {
			err = os.ErrDeadlineExceeded
		}
		r.done(request{at: at, sent: at, now: at + latency*time.Millisecond, replica: i % 2, err: err})
	}
	total := Merge(r.list())
	if len(total.Replicas) != 2 || total.Good != 5 || total.Late != 1 {
		t.Fatalf("%+v", total)
	}
	first, second := total.Replicas[0], total.Replicas[1]
	if first.Good != 3 || second.Good != 2 || second.Late != 1 || first.Length != 2*time.Second {
		t.Errorf("%+v, %+v", first, second)
	}
	// First replica: 10, 10 and 20 ms; second: 30 and 30 ms.
	a, _ := first.Mean()
	b, _ := second.Mean()
	if a < 0.0133 || a > 0.0134 || b != 0.03 {
		t.Errorf("means %g and %g", a, b)
	}
	v := Verdict{Total: total, windows: r.list()}
	if i, times, _, ok := v.Slowest(); i != 1 || times < 2.24 || times > 2.26 || !ok {
		t.Errorf("replica %d is the slowest, %g times the other's", i, times)
	}
	if i, share, others, _ := v.Worst(); i != 1 || share != 1.0/3 || others != 0 {
		t.Errorf("replica %d is the worst: %g, the other %g", i, share, others)
	}
}

// replicated simulates replicas with a queue each, asked in turn at half the first one's capacity. The last one
// takes slower times as long, or pauses once.
func replicated(r *rand.Rand, replicas, requests int, slower float64, pause float64, wrong float64) Verdict {
	const utilisation = 0.5
	mean := 1 / (utilisation * float64(replicas)) // between requests, in services
	span := time.Duration(float64(requests) * mean * float64(tick))
	rec, err := newRecord(span, span/Windows+1, nil)
	if err != nil {
		panic(err)
	}
	free := make([]float64, replicas)
	now := 0.0
	for i := 0; ; i++ {
		now += r.ExpFloat64() * mean
		at := time.Duration(now * float64(tick))
		if at >= span {
			break
		}
		k := i % replicas
		service := r.ExpFloat64()
		last := k == replicas-1
		if last {
			service *= slower
		}
		if last && pause > 0 && at > span/2 {
			service, pause = pause, 0
		}
		free[k] = max(free[k], now) + service
		var err error
		if last && r.Float64() < wrong {
			err = errors.New("wrong")
		}
		rec.sent(at)
		rec.done(request{at: at, sent: at, now: time.Duration(free[k] * float64(tick)), replica: k, err: err})
	}
	return (&Result{Windows: rec.list()}).Judge()
}

// Equal replicas are reported as different in one load in a hundred, a slower one in nearly all, and one that
// only paused hardly ever.
func TestTruthOfReplicas(t *testing.T) {
	loads, few := 300, 1
	if testing.Short() {
		loads, few = 30, 10
	}
	for _, test := range []struct {
		name          string
		replicas      int
		slower        float64
		pause, wrong  float64
		least, most   int // loads in which the last replica is reported as slower
		leastW, mostW int // loads in which it is reported for its errors
	}{
		// At a probability of 1 in 100, more than 10 of 300 loads occur once in a thousand test runs.
		{"2 alike", 2, 1, 0, 0, 0, 10, 0, 0},
		{"8 alike", 8, 1, 0, 0, 0, 10, 0, 0},
		// A service time of 1.3 at utilization 0.5 gives 1/(1/1.3-0.5) = 3.7; the others have 2.
		{"one of 2 slower", 2, 1.3, 0, 0, 285, 300, 0, 0},
		{"one of 8 slower", 8, 1.3, 0, 0, 285, 300, 0, 0},
		{"one pause of 100 services", 2, 1, 100, 0, 0, 10, 0, 0},
		{"one wrong in 20", 2, 1, 0, 0.05, 0, 10, 285, 300},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(11, uint64(test.replicas)))
			told, wrong, refused := 0, 0, 0
			for range loads {
				v := replicated(r, test.replicas, 10_000*test.replicas/2, test.slower, test.pause, test.wrong)
				if v.Why != "" {
					refused++
				}
				if _, _, sure, _ := v.Slowest(); sure {
					told++
				}
				if _, _, _, sure := v.Worst(); sure {
					wrong++
				}
			}
			t.Logf("told apart %d by latency, %d by errors, of %d; %d refused", told, wrong, loads, refused)
			within := func(n, least, most int) bool { return n >= least/few-few/5 && n <= (most+few*2)/few }
			if !within(told, test.least, test.most) || !within(wrong, test.leastW, test.mostW) {
				t.Errorf("of 300: want %d to %d, and %d to %d", test.least, test.most, test.leastW, test.mostW)
			}
		})
	}
}
