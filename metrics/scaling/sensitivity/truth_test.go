package sensitivity

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// trial simulates a user's study of one machine: one factor at a time, six blocks, and then up to
// three times the measurements that the answer suggests. With a price list, the user measures
// the combinations that decide about machines, the cheapest first.
func trial(r *rand.Rand, s scenario, m machine, prices []Machine) (Answer, error) {
	var obs []scaling.Observation
	began := 1e9
	blocks := func(list []map[string]scaling.Value, first int) {
		for block := range 6 {
			shared := math.Exp(m.drift * r.NormFloat64())
			for _, i := range r.Perm(len(list)) {
				at := list[i]
				rate := m.rate(r, int(at[coresKey].Number), at[memoryKey].Number, 2000) * shared * math.Exp(m.luck*r.NormFloat64())
				obs = append(obs, scaling.Observation{
					Run: fmt.Sprintf("s/%d", len(obs)), Point: nameOf(at, []string{coresKey, memoryKey}), Repeat: first + block, Kind: "train", Framework: "native", Workers: 1, Nodes: 1, BeganUnix: began,
					Parameters: map[string]any{"resources.device": "cpu", coresKey: at[coresKey].Number, memoryKey: at[memoryKey].Number},
					Values:     map[string]float64{measure.Throughput: rate, measure.TrainSeconds: 50},
				})
				began += 60
			}
		}
	}
	plenty := map[string]scaling.Value{coresKey: {Number: s.cores[0]}, memoryKey: {Number: s.bytes[0]}}
	list := []map[string]scaling.Value{plenty}
	for _, f := range []struct {
		key     string
		amounts []float64
	}{{coresKey, s.cores}, {memoryKey, s.bytes}} {
		for _, amount := range f.amounts[1:] {
			at := maps.Clone(plenty)
			at[f.key] = scaling.Value{Number: amount}
			list = append(list, at)
		}
	}
	blocks(list, 1)
	throughput, _ := measure.Find(measure.Throughput)
	var a Answer
	for round := range 4 {
		answers, err := Analyse(obs, Options{Measure: throughput, Factors: []string{coresKey, memoryKey}})
		if err != nil || len(answers) != 1 {
			return a, fmt.Errorf("%d answers: %w", len(answers), err)
		}
		// The reference is measured with them, for a comparison at the same time.
		more := []map[string]scaling.Value{plenty}
		a = answers[0]
		for _, n := range a.Next {
			if prices == nil {
				more = append(more, n.At)
			}
		}
		if next := a.Machines(prices).Next; len(next) > 0 {
			for _, o := range next[:min(3, len(next))] {
				if !slices.ContainsFunc(more, func(at map[string]scaling.Value) bool { return Same(at, o.Of.At) }) {
					more = append(more, o.Of.At)
				}
			}
		}
		if len(more) == 1 || round == 3 {
			break
		}
		blocks(more, 7+6*round)
	}
	return a, nil
}

// TestTruthOfSpecs simulates studies of machines with known needs. 95 % of the answers must be
// sufficient, and 90 % at most one step too large. Studies without an answer do not
// count.
func TestTruthOfSpecs(t *testing.T) {
	studies := 200
	if testing.Short() {
		studies = 20
	}
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 20261123))
			answered, sufficient, tight, wrongFactor, levels := 0, 0, 0, 0, 0
			for range studies {
				m := s.draw(r)
				a, err := trial(r, s, m, nil)
				if err != nil {
					t.Fatal(err)
				}
				full := m.truth(s.cores[0], s.bytes[0])
				enough := func(cores, bytes float64) bool { return m.truth(cores, bytes) >= (1-Usual)*full }
				for _, f := range a.Factors {
					for _, l := range f.Levels[1:] {
						cores, bytes := l.At.Number, s.bytes[0]
						if f.Key == memoryKey {
							cores, bytes = s.cores[0], l.At.Number
						}
						if l.Verdict != Undecided {
							levels++
							if enough(cores, bytes) != (l.Verdict == Enough) {
								wrongFactor++
							}
						}
					}
				}
				if a.Spec == nil {
					continue
				}
				answered++
				cores, bytes := a.Spec.At[coresKey].Number, a.Spec.At[memoryKey].Number
				if enough(cores, bytes) {
					sufficient++
				}
				// Two steps less of one resource, or one step less of both, must be too little.
				if !(cores/4 >= 1 && enough(cores/4, bytes)) && !(bytes/4 >= s.bytes[len(s.bytes)-1] && enough(cores, bytes/4)) {
					tight++
				}
			}
			share := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
			t.Logf("%d studies: %.1f %% answered, of these %.1f %% sufficient and %.1f %% at most a step too large; of %d verdicts on single amounts %.1f %% wrong",
				studies, share(answered, studies), share(sufficient, answered), share(tight, answered), levels, share(wrongFactor, levels))
			slack := 0.0
			if testing.Short() {
				slack = 10 // one of twenty is 5 %
			}
			if share(sufficient, answered) < 95-slack {
				t.Errorf("only %.1f %% of the answers are sufficient", share(sufficient, answered))
			}
			if share(tight, answered) < 90-slack {
				t.Errorf("only %.1f %% of the answers are at most a step too large", share(tight, answered))
			}
		})
	}
}

// TestTruthOfMachines chooses machines from simulated price lists, for known needs. 95 % of the
// choices must be sufficient, and 90 % at most one step too large: the smallest has less than
// four times the cores or memory of a sufficient machine, and the cheapest costs less than twice
// as much.
func TestTruthOfMachines(t *testing.T) {
	studies := 200
	if testing.Short() {
		studies = 20
	}
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 20261124))
			var answered, sufficient, tight, best [2]int // of the smallest, and of the cheapest
			offers, wrong := 0, 0
			for range studies {
				m, list := s.draw(r), priceList(r)
				var prices []Machine
				for k, o := range list {
					prices = append(prices, Machine{Name: fmt.Sprint(k), VCPUs: o.cores, Bytes: o.bytes, Hour: o.hour})
				}
				a, err := trial(r, s, m, prices)
				if err != nil {
					t.Fatal(err)
				}
				full := m.truth(s.cores[0], s.bytes[0])
				enough := make([]bool, len(list))
				var does []Machine
				for k, o := range list {
					// The answer does not cover more than the largest amounts of the study.
					o.cores, o.bytes = min(o.cores, s.cores[0]), min(o.bytes, s.bytes[0])
					if enough[k] = m.rented(o) >= (1-Usual)*full; enough[k] {
						does = append(does, prices[k])
					}
				}
				market := a.Machines(prices)
				for _, o := range market.Offers {
					if o.Verdict == Enough || o.Verdict == TooLittle {
						offers++
						if enough[slices.IndexFunc(prices, func(p Machine) bool { return p.Name == o.Name })] != (o.Verdict == Enough) {
							wrong++
						}
					}
				}
				for k, o := range []*Offer{market.Smallest, market.Cheapest} {
					if o == nil {
						continue
					}
					answered[k]++
					if slices.ContainsFunc(does, func(d Machine) bool { return d.Name == o.Name }) {
						sufficient[k]++
					}
					better := slices.ContainsFunc(does, func(d Machine) bool {
						return k == 0 && (d.VCPUs*4 <= o.VCPUs && d.Bytes <= o.Bytes || d.Bytes*4 <= o.Bytes && d.VCPUs <= o.VCPUs) || k == 1 && d.Hour*2 < o.Hour
					})
					if !better {
						tight[k]++
					}
					if !slices.ContainsFunc(does, func(d Machine) bool { return k == 0 && d.Size(o.Machine) < 0 || k == 1 && d.Hour < o.Hour }) {
						best[k]++
					}
				}
			}
			share := func(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }
			slack := 0.0
			if testing.Short() {
				slack = 10 // one of twenty is 5 %
			}
			for k, name := range []string{"smallest", "cheapest"} {
				t.Logf("%s: %.1f %% answered, of these %.1f %% sufficient, %.1f %% at most a step too large, %.1f %% the best of the list",
					name, share(answered[k], studies), share(sufficient[k], answered[k]), share(tight[k], answered[k]), share(best[k], answered[k]))
				if share(sufficient[k], answered[k]) < 95-slack || share(tight[k], answered[k]) < 90-slack {
					t.Errorf("of the answers on the %s machine too few are sufficient, or no more than a step too large", name)
				}
			}
			t.Logf("%d verdicts on machines, %.1f %% of them wrong", offers, share(wrong, offers))
		})
	}
}
