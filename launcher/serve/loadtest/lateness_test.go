package loadtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A client that pauses sends to a one-server queue (M/M/1 or M/D/1, 1 ms per request): at random times it sends
// nothing for a while, then everything that is due. The same arrivals without pauses give the true latencies. A
// percentile is only reported if the pauses raised it by at most 1.1 times the tolerance of 5 %; otherwise it
// is refused.
func TestLatenessIsBounded(t *testing.T) {
	given, refused := 0, 0
	for _, q := range queues[:2] {
		for _, utilisation := range []float64{0.3, 0.6, 0.8} {
			for _, pause := range []float64{0, 0.5, 3, 30} { // ms, each after 1000 ms on average
				r := rand.New(rand.NewPCG(5, uint64(1000*utilisation+pause)))
				late, truth := q.paused(r, utilisation, pause)
				for _, share := range []float64{0.5, 0.95, 0.99} {
					want, _ := truth.Total.Percentile(Latency, share)
					got, _ := late.Total.Percentile(Latency, share)
					why := late.lateAt(Latency, share, got)
					name := fmt.Sprintf("%s at %g, pauses of %g ms, P%g", q.name, utilisation, pause, 100*share)
					switch {
					case why == "" && got > want*(1+1.1*apart):
						t.Errorf("%s: %g is given, %g is true", name, got, want)
					case why == "":
						given++
					default:
						refused++
					}
					if pause == 0 && why != "" {
						t.Errorf("%s: %s", name, why)
					}
				}
			}
		}
	}
	if t.Logf("%d given, %d refused", given, refused); given < 45 || refused < 3 {
		t.Errorf("%d figures are given and %d refused; want most to be given, as pauses change few", given, refused)
	}
}

// paused simulates a queue with a client that pauses, and with one that does not.
func (q queueModel) paused(r *rand.Rand, utilisation, pause float64) (late, truth *Verdict) {
	const n = 50_000
	span := time.Duration(n / utilisation * float64(tick))
	width := span/Windows + 1
	records := [2]*record{}
	for i := range records {
		var err error
		if records[i], err = newRecord(span, width, nil); err != nil {
			panic(err)
		}
	}
	var free [2]float64
	at, next, until := 0.0, r.ExpFloat64()*1000, 0.0
	for i := 0; i < n; i++ {
		at += r.ExpFloat64() / utilisation
		for pause > 0 && at > next {
			until, next = next+pause, next+pause+r.ExpFloat64()*1000
		}
		service := q.service(r)
		for k, sent := range []float64{max(at, until), at} {
			free[k] = max(free[k], sent) + service
			ms := func(x float64) time.Duration { return time.Duration(x * float64(tick)) }
			records[k].sent(ms(sent))
			records[k].done(request{at: ms(at), sent: ms(sent), now: ms(free[k]), late: ms(sent) - ms(at), replica: -1})
			records[k].flying = 1 // this test ignores whether the queue was empty
		}
	}
	of := func(rec *record) *Verdict {
		list := rec.list()
		return &Verdict{Total: Merge(list), windows: list}
	}
	return of(records[0]), of(records[1])
}

// A client that was 5.7 ms late at P99 does not invalidate a P95 of 500 ms.
func TestLateByLittle(t *testing.T) {
	rec, err := newRecord(40*time.Second, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4000 {
		at, late := time.Duration(i)*10*time.Millisecond, time.Duration(0)
		if i%50 == 0 {
			late = 5700 * time.Microsecond
		}
		latency := time.Duration(100+(i*7919)%420) * time.Millisecond
		rec.sent(at + late)
		rec.done(request{at: at, sent: at + late, now: at + latency + late, late: late, replica: -1})
	}
	v := (&Result{Windows: rec.list(), Asked: 4000}).Judge()
	p95, why := v.Percentile(Latency, 0.95)
	if v.Why != "" || why != "" || p95 < 0.497 || p95 > 0.502 || v.Lag() < 0.0056 {
		t.Errorf("P95 %g, late by %g: %s%s", p95, v.Lag(), v.Why, why)
	}
}

// If most requests were late by as much as they take, the latency is refused with the reason.
// The rate is still reported.
func TestLateByMuch(t *testing.T) {
	rec, err := newRecord(40*time.Second, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4000 {
		at := time.Duration(i) * 10 * time.Millisecond
		late := 5 * time.Millisecond
		rec.sent(at + late)
		rec.done(request{at: at, sent: at + late, now: at + late + 5*time.Millisecond, late: late, replica: -1})
	}
	v := (&Result{Windows: rec.list(), Asked: 4000}).Judge()
	_, why := v.Percentile(Latency, 0.95)
	if want := "the client sent requests late, which may cause up to 5ms of the 10ms measured"; v.Why != "" || !strings.Contains(why, want) || !strings.Contains(v.lateMean(), want) || v.Total.Rate() != 100 {
		t.Errorf("%q, %q, %g/s", v.Why, why, v.Total.Rate())
	}
}
