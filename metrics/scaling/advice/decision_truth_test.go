package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// A score counts how the answers of a cell's studies compare with the truth.
type score struct {
	studies                          int
	right, equivalent, marked, wrong int // without limits: the best count, one within 2 % of it, a worse one marked provisional, a worse one not marked
	provisional                      int
	bounds, broken, warned           int     // number of printed bounds; wrong ones without and with a warning
	said, held                       float64 // probabilities of decided and undecided answers, and how often they were right
	given                            int
	silent                           int // nothing to measure next although the answer is provisional
	asked, refused, kept, good       [4]int
}

func (s *score) add(o *score) {
	s.studies += o.studies
	s.right, s.equivalent, s.marked, s.wrong, s.provisional = s.right+o.right, s.equivalent+o.equivalent, s.marked+o.marked, s.wrong+o.wrong, s.provisional+o.provisional
	s.bounds, s.broken, s.warned = s.bounds+o.bounds, s.broken+o.broken, s.warned+o.warned
	s.said, s.held, s.given, s.silent = s.said+o.said, s.held+o.held, s.given+o.given, s.silent+o.silent
	for i := range s.asked {
		s.asked[i] += o.asked[i]
		s.refused[i] += o.refused[i]
		s.kept[i] += o.kept[i]
		s.good[i] += o.good[i]
	}
}

func share(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

func (s *score) String() string {
	text := fmt.Sprintf("right %3.0f, equivalent %3.0f, marked %3.0f, wrong %4.1f (provisional %3.0f) | bounds %4d wrong %.1f (warned %.1f) | said %2.0f held %2.0f | silent %d |",
		share(s.right, s.studies), share(s.equivalent, s.studies), share(s.marked, s.studies), share(s.wrong, s.studies), share(s.provisional, s.studies),
		s.bounds, share(s.broken, s.bounds), share(s.warned, s.bounds), 100*s.said/float64(max(1, s.given)), 100*s.held/float64(max(1, s.given)), s.silent)
	for i := range s.asked {
		answered := s.asked[i] - s.refused[i]
		text += fmt.Sprintf(" %2.0f/%3.0f/%3.0f", share(s.refused[i], s.asked[i]), share(s.kept[i], answered), share(s.good[i], answered))
	}
	return text
}

// printed matches, in the first sentence, a comparison of counts: from or to, optionally "per
// doubling", and its bounds.
var printed = regexp.MustCompile(`(?:(?:doubling from|going from) (\d+)(?: to \d+)? (?:trains|reaches [^;]*?)|(\d+) would be) [0-9.e+]+× as fast( per doubling)?(?: with initialisation)? \((?:at least ([0-9.]+)×|at most ([0-9.]+)×|([0-9.]+)× to ([0-9.]+)×)\)`)

// judgeBounds compares the printed bounds with the truth, allowing for rounding to three digits.
func (s *score) judgeBounds(p *play, a *Advice) {
	warned := false
	for _, d := range a.Caveats {
		warned = warned || d.Kind == decision.Order || d.Kind == decision.Drift
	}
	for _, m := range printed.FindAllStringSubmatch(a.Reason[0], -1) {
		from, to := *a.Workers, *a.Workers
		if m[1] != "" {
			from, _ = strconv.Atoi(m[1])
		} else {
			to, _ = strconv.Atoi(m[2])
		}
		truth := p.gain(from, to)
		if m[3] != "" {
			truth = math.Pow(truth, 1/math.Log2(float64(to)/float64(from)))
		}
		check := func(text string, low bool) {
			if text == "" {
				return
			}
			x, _ := strconv.ParseFloat(text, 64)
			s.bounds++
			if low && truth < x*0.995 || !low && truth > x*1.005 {
				if warned {
					s.warned++
				} else {
					s.broken++
				}
			}
		}
		check(m[4], true)
		check(m[5], false)
		check(m[6], true)
		check(m[7], false)
	}
}

func (s *score) judgeDefault(p *play, a *Advice) {
	s.studies++
	if a.Provisional {
		s.provisional++
		if a.Next == nil {
			s.silent++
		}
	}
	best := p.best()
	near := a.Workers != nil && p.value(*a.Workers) >= p.value(best)*(1-decision.Equivalent)
	switch {
	case a.Workers != nil && *a.Workers == best:
		s.right++
	case near:
		s.equivalent++
	case a.Provisional || a.Workers == nil:
		s.marked++
	default:
		s.wrong++
	}
	if a.Probability != nil {
		s.given++
		s.said += *a.Probability
		if near {
			s.held++
		}
	}
	if a.Workers != nil {
		s.judgeBounds(p, a)
	}
}

// ask returns the k-th of four questions, with a limit between the true values of the measured
// counts.
func (p *play) ask(r *rand.Rand, k int) (o Options, keeps func(n int) bool, worth func(n int) float64) {
	last := p.counts[len(p.counts)-1]
	between := func(of func(n int) float64) float64 {
		low, high := math.Inf(1), 0.0
		for _, n := range p.counts {
			low, high = min(low, of(n)), max(high, of(n))
		}
		return low * math.Pow(high/low, r.Float64())
	}
	_ = last
	if !p.target {
		o.Samples = playSamples
	}
	cost := func(n int) float64 { return float64(n) * p.seconds(n) / 3600 }
	hour := func(workers, nodes int, seconds float64) (float64, error) {
		return float64(workers) * seconds / 3600, nil
	}
	switch k {
	case 0:
		o.Deadline, o.Cost, o.Currency = between(p.seconds), hour, "EUR"
		return o, func(n int) bool { return p.seconds(n) <= o.Deadline }, func(n int) float64 { return 1 / cost(n) }
	case 1:
		o.Deadline = between(p.seconds)
		return o, func(n int) bool { return p.seconds(n) <= o.Deadline }, func(n int) float64 { return 1 / float64(n) }
	case 2:
		o.Budget, o.Cost, o.Currency = between(cost)*1.02, hour, "EUR"
		return o, func(n int) bool { return cost(n) <= o.Budget }, func(n int) float64 { return 1 / p.seconds(n) }
	}
	o.MinEfficiency = uniform(r, 0.4, 0.95)
	base := p.typical(float64(p.counts[0]))
	return o, func(n int) bool { return p.typical(float64(n))/float64(n)/base >= o.MinEfficiency }, func(n int) float64 { return float64(n) }
}

func (s *score) judgeLimits(p *play, k int, a *Advice, keeps func(n int) bool, worth func(n int) float64) {
	s.asked[k]++
	if a.Workers == nil {
		s.refused[k]++
		return
	}
	if !keeps(*a.Workers) {
		return
	}
	s.kept[k]++
	// Compare with the best measured count; an answer in between may be better.
	best := 0.0
	for i, n := range p.counts {
		beaten := false
		for _, m := range p.counts[:i] {
			beaten = beaten || keeps(m) && p.seconds(m) <= p.seconds(n)
		}
		if keeps(n) && !beaten {
			best = max(best, worth(n))
		}
	}
	if worth(*a.Workers) >= best*(1-decision.Close) {
		s.good[k]++
	}
}

// TestTruthOfDecisions simulates studies on machines that drift, have slow nodes, or miss targets,
// and with plateaus in their curves, and compares every answer with the truth.
//
// With -short, a tenth of the studies is simulated, and only all of them together are judged.
func TestTruthOfDecisions(t *testing.T) {
	studies := 60
	if testing.Short() {
		studies /= 10
	}
	var all score
	t.Logf("%-34s default answer in %% | printed bounds | probability | deadline, fewest, budget, efficiency: refused / limit kept / within 10 %%", "")
	for i, c := range cells {
		r := rand.New(rand.NewPCG(uint64(i), 34))
		var s score
		for range studies {
			p := drawPlay(r)
			c.draw(r, p)
			obs := p.play(r)
			curves, err := scaling.Analyse(obs, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			free := Options{}
			a, err := Advise(curves[0], obs, free)
			if err != nil {
				t.Fatal(err)
			}
			s.judgeDefault(p, a)
			if p.miss != nil {
				continue
			}
			for k := range 4 {
				o, keeps, worth := p.ask(r, k)
				a, err := Advise(curves[0], obs, o)
				if err != nil {
					t.Fatal(err)
				}
				s.judgeLimits(p, k, a, keeps, worth)
			}
		}
		t.Logf("%-34s %s", c.name, &s)
		all.add(&s)
		if !testing.Short() && (share(s.wrong, s.studies) > 5+3*math.Sqrt(5*95/float64(studies)) || share(s.broken, s.bounds) > 5+3*math.Sqrt(5*95/float64(max(1, s.bounds)))) {
			t.Errorf("%s: wrong without a mark %.1f %%, bounds %.1f %%", c.name, share(s.wrong, s.studies), share(s.broken, s.bounds))
		}
	}
	t.Logf("%-34s %s", "all", &all)
	if all.silent > 0 {
		t.Errorf("nothing to measure next in %d provisional answers", all.silent)
	}
}
