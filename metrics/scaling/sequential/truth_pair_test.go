package sequential

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// pair measures two settings of a machine, whose counts 1 and 2 stand for them, on 4 workers.
func pair(t *testing.T, m *machine, confidence float64) *compare.Pair {
	t.Helper()
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	var sides [2][]scaling.Observation
	for _, o := range m.obs {
		setting := o.Workers
		o.Workers, o.Parameters = 4, map[string]any{"workload.scaling": "strong", "workload.precision": o.Point, "workers": int64(4)}
		sides[setting-1] = append(sides[setting-1], o)
	}
	c, err := compare.Runs(sides[0], sides[1], throughput, compare.Options{Confidence: confidence})
	if err != nil {
		t.Fatal(err)
	}
	return &c.Pairs[0]
}

// A duel counts how comparisons of two settings ended.
type duel struct {
	studies, wrong, decided int
	equal, called           int // settings of equal medians, and those said to differ
	clear, clearDecided     int // the medians differ by 10 % or more
	same, sameDecided       int // the medians differ by 1 % or less
	intervals, broken       int
	hours, clearHours       []float64 // over six runs of each
}

func (s *duel) add(o *duel) {
	s.studies, s.wrong, s.decided = s.studies+o.studies, s.wrong+o.wrong, s.decided+o.decided
	s.equal, s.called = s.equal+o.equal, s.called+o.called
	s.clear, s.clearDecided = s.clear+o.clear, s.clearDecided+o.clearDecided
	s.same, s.sameDecided = s.same+o.same, s.sameDecided+o.sameDecided
	s.intervals, s.broken = s.intervals+o.intervals, s.broken+o.broken
	s.hours, s.clearHours = append(s.hours, o.hours...), append(s.clearHours, o.clearHours...)
}

func (s *duel) log(t *testing.T, family, rule string) {
	t.Helper()
	t.Logf("%-42s %-8s wrong %4.1f, equal called different %4.1f | decided %3.0f, clear %3.0f, same %3.0f | covered %5.1f of %4d | hours %.2f, of clear %.2f", family, rule,
		share(s.wrong, s.studies), share(s.called, s.equal), share(s.decided, s.studies), share(s.clearDecided, s.clear), share(s.sameDecided, s.same),
		100-share(s.broken, s.intervals), s.intervals, quantile(s.hours, 0.5), quantile(s.clearHours, 0.5))
}

// A verdict is what a rule says about two settings: better is 1 if the second is better, -1 if it is
// worse.
type verdict struct {
	decided bool
	better  int
	low, high,
	hours float64 // low, high: interval of the ratio; 0: none
}

func said(p *compare.Pair, hours float64) verdict {
	l := Pair(p, false)
	v := verdict{decided: l.Decided, hours: hours}
	switch p.Verdict {
	case compare.Better:
		v.better = 1
	case compare.Worse:
		v.better = -1
	}
	if p.Ratio != nil && p.Ratio.Interval != nil {
		v.low, v.high = p.Ratio.Interval.Low, p.Ratio.Interval.High
	}
	return v
}

// count notes a verdict. It is wrong if the better setting is not better, or if settings that
// differ by more than 2 % are said to be equal.
func (s *duel) count(truth float64, v verdict) {
	s.studies++
	s.hours = append(s.hours, v.hours)
	away := math.Abs(math.Log(truth))
	if away < 1e-9 {
		s.equal++
		if v.decided && v.better != 0 {
			s.called++
			s.wrong++
		}
	}
	if away <= 0.01 {
		s.same++
	}
	if v.low > 0 {
		s.intervals++
		if truth < v.low || truth > v.high {
			s.broken++
		}
	}
	if away >= math.Log(1.1) {
		s.clear++
		s.clearHours = append(s.clearHours, v.hours)
	}
	if !v.decided {
		return
	}
	s.decided++
	if away >= math.Log(1.1) {
		s.clearDecided++
	}
	if away <= 0.01 {
		s.sameDecided++
	}
	if v.better != 0 && float64(v.better)*math.Log(truth) < -1e-9 || v.better == 0 && away > -math.Log(0.98) {
		s.wrong++
	}
}

// studentPair compares means as AIPerf 0.13 would: each setting from 3 runs on, until Student's 95 %
// interval of its mean reaches 2 % to either side; means that differ by more than 2 % differ.
func studentPair(r *rand.Rand, m *machine, most int) verdict {
	precise, means := true, [2]float64{}
	for i, n := range m.counts {
		mean, half := student(r, m, n, most)
		means[i], precise = mean, precise && half <= 0.02
	}
	v := verdict{decided: precise, hours: float64(len(m.obs)) / 12}
	if away := math.Log(means[1] / means[0]); away > 0.02 {
		v.better = 1
	} else if away < -0.02 {
		v.better = -1
	}
	return v
}

// TestTruthOfPairs compares two settings until the question is decided: a quarter of them have
// equal medians, a quarter differ by up to 1 %, a quarter by 1 to 10 %, and a quarter by 10 to 50
// %. With -short, all families are judged together.
func TestTruthOfPairs(t *testing.T) {
	studies := 400
	if testing.Short() {
		studies /= 20
	}
	design, err := NewDesign(Most)
	if err != nil {
		t.Fatal(err)
	}
	design = design.ForTests()
	var all, allSix, allStudent duel
	for k, f := range families {
		r := rand.New(rand.NewPCG(uint64(k), 46))
		var ours, six, student duel
		for i := range studies {
			m := newMachine(r, f, []int{1, 2}, func(float64) float64 { return 1000 })
			by := []float64{0, between(r, 0, 0.01), between(r, 0.01, 0.1), between(r, 0.1, 0.5)}[i%4] * float64(1-2*r.IntN(2))
			ratio := math.Exp(by)
			// The noise of a setting may shift its median: the speeds make up for it.
			m.speed = func(n float64) float64 { return 1000 * math.Pow(ratio*m.truth[0]/m.truth[1], n-1) }
			one, other := m.again(), m.again()
			one.blocks(r, map[int]int{1: 6, 2: 6})
			six.count(ratio, said(pair(t, one, 0.95), 1))
			student.count(ratio, studentPair(r, other, Most))
			ours.count(ratio, untilPair(t, r, m, design))
		}
		ours.log(t, f.name, "until")
		six.log(t, f.name, "six runs")
		student.log(t, f.name, "Student")
		if !testing.Short() {
			ours.judge(t, f.name)
		}
		all.add(&ours)
		allSix.add(&six)
		allStudent.add(&student)
	}
	all.log(t, "all", "until")
	allSix.log(t, "all", "six runs")
	allStudent.log(t, "all", "Student")
	all.judge(t, "all")
	if share(all.clearDecided, all.clear) < 95-300*math.Sqrt(0.05*0.95/float64(all.clear)) {
		t.Errorf("%.0f %% of clear studies are decided", share(all.clearDecided, all.clear))
	}
}

// untilPair measures two settings until the question is decided.
func untilPair(t *testing.T, r *rand.Rand, m *machine, design Design) verdict {
	q := Question{Design: design, Hours: func(int) float64 { return 1 }}
	m.blocks(r, map[int]int{1: First, 2: First})
	for {
		p := pair(t, m, design.Confidence)
		b, _ := q.Next(Pair(p, false), -1)
		if b == nil {
			return said(p, float64(len(m.obs))/12)
		}
		m.blocks(r, map[int]int{1: b.Target[4], 2: b.Target[4]})
	}
}

// judge allows three standard errors of a share of 5 %.
func (s *duel) judge(t *testing.T, name string) {
	t.Helper()
	chance := func(n int) float64 { return 300 * math.Sqrt(0.05*0.95/float64(max(1, n))) }
	if share(s.wrong, s.studies) > 5+chance(s.studies) {
		t.Errorf("%s: %.1f %% of verdicts are wrong", name, share(s.wrong, s.studies))
	}
	if share(s.called, s.equal) > 5+chance(s.equal) {
		t.Errorf("%s: %.1f %% of equal settings are said to differ", name, share(s.called, s.equal))
	}
	if share(s.broken, s.intervals) > 5+chance(s.intervals) {
		t.Errorf("%s: intervals cover the truth in %.1f %%", name, 100-share(s.broken, s.intervals))
	}
}
